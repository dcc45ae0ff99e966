//! Copies of metadata: what they say of a queue's metadata.

use futures_util::future::try_join_all;

use super::super::scan::{FoundKey, KeyPage};
use super::key_check::KeyCheck;
use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{Answer, DoctorTarget, READS_AT_ONCE};
use quoin_base::size::counted;
use quoin_data::keyspace::kind::TypeKind;
use quoin_layout::{Meta, MetaCopy};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

#[derive(Default)]
pub(super) struct MetaCopies {
    count: u64,
    wrong: Finding,
}

impl KeyCheck for MetaCopies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn look<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            for some in page.keys.chunks(READS_AT_ONCE) {
                let found = target
                    .read(async |transaction: &dyn ReadTransaction| {
                        let isolation = Isolation::Snapshot;
                        let reads = some
                            .iter()
                            .map(|key| copies(target, transaction, key, isolation));
                        try_join_all(reads).await
                    })
                    .await?;
                for (key, (count, wrong)) in some.iter().zip(found) {
                    self.count += count;
                    if !wrong.is_empty() {
                        self.repair(target, key).await?;
                    }
                }
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut outcome = Outcome::new(counted(
            self.count,
            "copy of metadata",
            "copies of metadata",
        ));
        outcome.finding(
            Level::Fail,
            &self.wrong,
            ["key whose copies of metadata differ from the metadata", "keys whose copies of metadata differ from the metadata"],
            "commands may not find them; --repair removes what is wrong, which is read elsewhere then",
        );
        outcome.line(self.name())
    }
}

impl MetaCopies {
    async fn repair(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
    ) -> Result<(), StoreError> {
        self.wrong
            .add(|| target.name(key.namespace, &key.name, Some(&key.meta)));
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                let isolation = Isolation::Serializable;
                let (_, wrong) = copies(target, transaction, key, isolation).await?;
                for meta_copy_key in wrong {
                    transaction.clear(&meta_copy_key);
                }
                Ok(true)
            })
            .await?;
        if is_repaired {
            self.wrong.count_repaired();
        }
        Ok(())
    }
}

/// How many copies of metadata a key has, and the keys of those that are wrong. None is missing
/// that is not there: keys of older versions have none.
async fn copies(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    isolation: Isolation,
) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
    let layout = &target.layout;
    let (mut count, mut wrong) = (0, Vec::new());
    let Some(meta) = transaction.get(&key.meta_key, isolation).await? else {
        return Ok((count, wrong));
    };
    if Meta::decode(&meta)?.data != key.meta.data {
        // It was renamed meanwhile, and the name was given to another.
        return Ok((count, wrong));
    }
    let expected = MetaCopy {
        meta_key: key.meta_key.clone(),
        meta,
    };
    for meta_copy_key in key.meta.value_type.meta_copy_keys(layout, key.meta.data) {
        let Some(value) = transaction.get(&meta_copy_key, isolation).await? else {
            continue;
        };
        count += 1;
        if value != expected.encode() {
            wrong.push(meta_copy_key);
        }
    }
    Ok((count, wrong))
}
