//! Rows that repeat others: indexes, and copies of metadata.
//!
//! The descriptor of a type says which entries of its indexes to look up, and how. They are looked
//! up page by page, each page at one moment. So keys of any size can be checked while they change.

use futures_util::future::try_join_all;

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::{
    Answer, DoctorTarget, FoundKey, KeyCheck, KeyPage, READS_AT_ONCE, rows,
};
use quoin_base::size::counted;
use quoin_data::keyspace::kind::{Entries, EntryCheck, EntryFault, TypeKind, ValueKind};
use quoin_layout::{Meta, MetaCopy, Section, successor};
use quoin_store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

pub(super) struct Indexes {
    entries: u64,
    /// Possible faults of entries, over all types.
    faults: Vec<(&'static EntryFault, Finding)>,
}

impl Default for Indexes {
    fn default() -> Self {
        let sections = ValueKind::all().flat_map(|kind| kind.sections);
        let checks = sections.filter_map(|section| section.check.as_ref());
        let mut faults: Vec<(&'static EntryFault, Finding)> = Vec::new();
        for check in checks {
            if !faults
                .iter()
                .any(|(known, _)| std::ptr::eq(*known, check.fault))
            {
                faults.push((check.fault, Finding::default()));
            }
        }
        Self { entries: 0, faults }
    }
}

impl KeyCheck for Indexes {
    fn name(&self) -> &'static str {
        "indexes"
    }

    fn check<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            for key in &page.keys {
                for section in key.meta.value_type.kind().sections {
                    if let Some(check) = &section.check {
                        self.check_key(target, key, section.section, check).await?;
                    }
                }
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut outcome = Outcome::new(format!(
            "{} looked up",
            counted(self.entries, "entry", "entries")
        ));
        for (fault, finding) in &self.faults {
            outcome.finding(Level::Fail, finding, fault.text, fault.advice);
        }
        outcome.line(self.name())
    }
}

impl Indexes {
    async fn check_key(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
        section: Section,
        check: &EntryCheck,
    ) -> Result<(), StoreError> {
        let range = target.layout.section(key.meta.data, section);
        let mut begin = range.begin;
        loop {
            let (page, are_sound) = target
                .read(async |transaction: &dyn ReadTransaction| {
                    let isolation = Isolation::Snapshot;
                    let limit = check.entries_at_once;
                    let page = rows(transaction, &begin, &range.end, limit, isolation).await?;
                    let entries = Entries {
                        layout: &target.layout,
                        transaction,
                        isolation,
                        kind: key.meta.value_type.kind(),
                        data: key.meta.data,
                        rows: &page,
                    };
                    let are_sound = (check.are_sound)(entries).await?;
                    Ok((page, are_sound))
                })
                .await?;
            for (row, is_sound) in page.iter().zip(are_sound) {
                self.entries += 1;
                if !is_sound {
                    self.report(target, key, row, check).await?;
                }
            }
            target.progress.count("entries checked", self.entries);
            match page.last() {
                Some(last) if page.len() >= check.entries_at_once => begin = successor(&last.key),
                _ => return Ok(()),
            }
        }
    }

    async fn report(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
        row: &KeyValue,
        check: &EntryCheck,
    ) -> Result<(), StoreError> {
        let mut faults = self.faults.iter_mut();
        let Some((fault, finding)) = faults.find(|(fault, _)| std::ptr::eq(*fault, check.fault))
        else {
            return Ok(());
        };
        finding.add(|| {
            let name = target.name(key.namespace, &key.name, Some(&key.meta));
            let entry = fault
                .entry_name
                .and_then(|read| read(&target.layout, key.meta.data, &row.key).ok());
            match entry {
                Some(entry) => format!("{} of {name}", shown(&entry)),
                None => name,
            }
        });
        if fault.is_removable && remove(target, key, row, check).await? {
            finding.count_repaired();
        }
        Ok(())
    }
}

/// Removes an entry if it is still wrong. Returns whether it is right now.
async fn remove(
    target: &DoctorTarget<'_>,
    key: &FoundKey,
    row: &KeyValue,
    check: &EntryCheck,
) -> Result<bool, StoreError> {
    target
        .repair(async |transaction: &dyn Transaction| {
            let isolation = Isolation::Serializable;
            let Some(value) = transaction.get(&row.key, isolation).await? else {
                return Ok(true);
            };
            let now = [KeyValue {
                key: row.key.clone(),
                value,
            }];
            let entries = Entries {
                layout: &target.layout,
                transaction,
                isolation,
                kind: key.meta.value_type.kind(),
                data: key.meta.data,
                rows: &now,
            };
            if (check.are_sound)(entries).await? == [false] {
                transaction.clear(&row.key);
                if let Some(recount) = check.recount {
                    recount(entries, transaction).await?;
                }
            }
            Ok(true)
        })
        .await
}

#[derive(Default)]
pub(super) struct MetaCopies {
    count: u64,
    wrong: Finding,
}

impl KeyCheck for MetaCopies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn check<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
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
            [
                "key whose copies of metadata differ from the metadata",
                "keys whose copies of metadata differ from the metadata",
            ],
            "commands may not find them; --repair removes the wrong copies, and servers then read \
             the metadata itself",
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

/// The number of metadata copies that a key has, and the keys of those that are wrong. An absent
/// copy is not a fault, because keys of older versions have none.
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
        // The key was renamed meanwhile, and its name belongs to another key.
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
