//! Metadata and length of keys, and the index of expiries in both directions.

use futures_util::future::try_join_all;

use super::counters;
use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::{
    Answer, DoctorTarget, FoundKey, KeyCheck, KeyPage, OVERDUE_MS, READS_AT_ONCE, rows,
};
use quoin_base::size::counted;
use quoin_data::keyspace::kind::{TypeKind, ValueKind};
use quoin_data::keyspace::presence::Presence;
use quoin_layout::{KeyName, KeysRow, Meta, Space, decode_length, successor};
use quoin_store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

/// Maximum number of keys without elements that is normal on a cluster.
const RETAINED_MAX: u64 = 10_000;

#[derive(Default)]
pub(super) struct Keys {
    count: u64,
    retained: u64,
    swept: u64,
    unreadable: Finding,
    misnamed: Finding,
    stray_lengths: Finding,
    empty: Finding,
    not_indexed: Finding,
}

impl KeyCheck for Keys {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn check<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            for row in &page.unreadable {
                self.unreadable.add(|| shown(row));
            }
            for row in &page.stray_lengths {
                self.stray_length(target, row).await?;
            }
            for key in &page.keys {
                self.count += 1;
                self.check_key(target, key).await?;
            }
            for some in page.keys.chunks(READS_AT_ONCE) {
                self.check_expiry(target, some).await?;
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut summary = counted(self.count - self.retained, "key", "keys");
        if self.retained > 0 {
            let retained = counted(
                self.retained,
                "that is empty and waits",
                "that are empty and wait",
            );
            summary.push_str(&format!(" and {retained} for a push"));
        }
        let mut outcome = Outcome::new(summary);
        if self.swept > 0 {
            outcome.note(Level::Ok, format!("{} of the empty removed", self.swept));
        } else if self.retained > RETAINED_MAX && self.retained > self.count - self.retained {
            outcome.note(
                Level::Warn,
                "most are empty: no server has swept them for a long time - run a server, or \
                 --repair",
            );
        }
        outcome.finding(
            Level::Fail,
            &self.unreadable,
            ["row that cannot be read", "rows that cannot be read"],
            "commands on these keys return an error; report this to the authors of Quoin, with \
             these rows",
        );
        outcome.finding(
            Level::Fail,
            &self.misnamed,
            [
                "key that cannot be found by its name",
                "keys that cannot be found by their names",
            ],
            "report this to the authors of Quoin",
        );
        outcome.finding(
            Level::Warn,
            &self.stray_lengths,
            [
                "length of a key that does not exist",
                "lengths of keys that do not exist",
            ],
            "harmless; --repair removes them",
        );
        outcome.finding(
            Level::Fail,
            &self.empty,
            [
                "key that exists but counts no elements",
                "keys that exist but count no elements",
            ],
            "--repair counts their elements, and removes the lengths of those that have none",
        );
        outcome.finding(
            Level::Fail,
            &self.not_indexed,
            [
                "key that no server would remove when it expires",
                "keys that no server would remove when they expire",
            ],
            "--repair puts them into the index of expiries",
        );
        outcome.line(self.name())
    }
}

impl Keys {
    async fn stray_length(
        &mut self,
        target: &DoctorTarget<'_>,
        length_key: &[u8],
    ) -> Result<(), StoreError> {
        let layout = &target.layout;
        let Ok((namespace, KeysRow::Length(name))) = layout.read_namespaced_key(length_key) else {
            return Ok(());
        };
        self.stray_lengths
            .add(|| target.name(namespace, &name, None));
        let meta_key = layout.meta_key(namespace, &name);
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                let isolation = Isolation::Serializable;
                if transaction.get(&meta_key, isolation).await?.is_none() {
                    transaction.clear(length_key);
                }
                Ok(true)
            })
            .await?;
        if is_repaired {
            self.stray_lengths.count_repaired();
        }
        Ok(())
    }

    async fn check_key(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
    ) -> Result<(), StoreError> {
        let is_named = key
            .meta
            .full_name(&key.name)
            .is_ok_and(|full| KeyName::new(full) == key.name);
        if !is_named {
            self.misnamed.add(|| shown(&key.meta_key));
        }
        match key.length {
            None => self
                .unreadable
                .add(|| target.name(key.namespace, &key.name, Some(&key.meta))),
            Some(0) => self.check_empty(target, key).await?,
            Some(_) => {}
        }
        Ok(())
    }

    async fn check_empty(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
    ) -> Result<(), StoreError> {
        match target.presence(&key.meta, 0) {
            Presence::Exists => {}
            Presence::Retained => {
                self.retained += 1;
                let is_swept = target
                    .repair(async |transaction: &dyn Transaction| {
                        sweep(target, transaction, key).await
                    })
                    .await?;
                self.swept += u64::from(is_swept);
            }
            Presence::Emptied => {
                self.empty
                    .add(|| target.name(key.namespace, &key.name, Some(&key.meta)));
                if counters::repair(target, key).await? {
                    self.empty.count_repaired();
                }
            }
        }
        Ok(())
    }

    /// Checks whether the index has the keys that expire, both at one moment.
    async fn check_expiry(
        &mut self,
        target: &DoctorTarget<'_>,
        keys: &[FoundKey],
    ) -> Result<(), StoreError> {
        let expiring: Vec<&FoundKey> = keys
            .iter()
            .filter(|key| key.meta.expire_at_ms.is_some())
            .collect();
        if expiring.is_empty() {
            return Ok(());
        }
        let missing = target
            .read(async |transaction: &dyn ReadTransaction| {
                let reads = expiring
                    .iter()
                    .map(|key| missing_expiry(target, transaction, key, Isolation::Snapshot));
                try_join_all(reads).await
            })
            .await?;
        for (key, missing) in expiring.iter().zip(missing) {
            if missing.is_none() {
                continue;
            }
            self.not_indexed
                .add(|| target.name(key.namespace, &key.name, Some(&key.meta)));
            let is_repaired = target
                .repair(async |transaction: &dyn Transaction| {
                    let isolation = Isolation::Serializable;
                    let missing = missing_expiry(target, transaction, key, isolation).await?;
                    if let Some(expiry_key) = missing {
                        transaction.set(&expiry_key, b"");
                    }
                    Ok(true)
                })
                .await?;
            if is_repaired {
                self.not_indexed.count_repaired();
            }
        }
        Ok(())
    }
}

/// The row that the index of expiries lacks for a key.
async fn missing_expiry(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    isolation: Isolation,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(value) = transaction.get(&key.meta_key, isolation).await? else {
        return Ok(None);
    };
    let Some(at_ms) = Meta::decode(&value)?.expire_at_ms else {
        return Ok(None);
    };
    let expiry_key = target.layout.expiry_key(at_ms, key.namespace, &key.name);
    let row = transaction.get(&expiry_key, isolation).await?;
    Ok(row.is_none().then_some(expiry_key))
}

/// Removes a key that is empty and has no expiry, like the background work of servers
/// (`WriteContext::sweep_retained`). Conflicts with a concurrent push.
async fn sweep(
    target: &DoctorTarget<'_>,
    transaction: &dyn Transaction,
    key: &FoundKey,
) -> Result<bool, StoreError> {
    let isolation = Isolation::Serializable;
    let length_key = target.layout.length_key(&key.meta_key);
    let Some(value) = transaction.get(&key.meta_key, isolation).await? else {
        return Ok(false);
    };
    let meta = Meta::decode(&value)?;
    let length = transaction.get(&length_key, isolation).await?;
    let length = decode_length(length.as_ref())?;
    if target.presence(&meta, length) != Presence::Retained {
        return Ok(false);
    }
    // Elements that were popped for a dead server return to it.
    if target.has_grants(transaction, meta.data).await? {
        return Ok(false);
    }
    transaction.clear(&key.meta_key);
    transaction.clear(&length_key);
    let copies = meta.value_type.meta_copy_keys(&target.layout, meta.data);
    copies.for_each(|copy| transaction.clear(&copy));
    if ValueKind::keeps_rows_when_empty(&meta) {
        target.discard_data(transaction, meta.data);
    }
    Ok(true)
}

#[derive(Default)]
struct Expiries {
    rows: u64,
    due: u64,
    oldest_due_ms: Option<i64>,
    leads_nowhere: Finding,
    unreadable: Finding,
}

pub(super) async fn check_expiries(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let range = target.layout.rows_of(Space::Expiry);
    let mut begin = range.begin.clone();
    let mut found = Expiries::default();
    let now_ms = target.clock.now_ms();
    loop {
        // Rows and their keys, at one moment.
        let (page, leads_nowhere) = target
            .read(async |transaction: &dyn ReadTransaction| {
                let limit = READS_AT_ONCE;
                let page =
                    rows(transaction, &begin, &range.end, limit, Isolation::Snapshot).await?;
                let reads = page
                    .iter()
                    .map(|row| leads_nowhere(target, transaction, &row.key, Isolation::Snapshot));
                let leads_nowhere = try_join_all(reads).await?;
                Ok((page, leads_nowhere))
            })
            .await?;
        for (row, leads_nowhere) in page.iter().zip(leads_nowhere) {
            found.rows += 1;
            judge_expiry(target, &mut found, row, leads_nowhere, now_ms).await?;
        }
        target.progress.count("expiries checked", found.rows);
        match page.last() {
            Some(last) if page.len() >= READS_AT_ONCE => begin = successor(&last.key),
            _ => break,
        }
    }
    let mut outcome = Outcome::new(format!(
        "{} to expire, {} of them by now",
        counted(found.rows, "key is", "keys are"),
        found.due
    ));
    let is_overdue = found
        .oldest_due_ms
        .is_some_and(|at_ms| at_ms.saturating_add(OVERDUE_MS) < now_ms);
    if is_overdue && !target.is_offline {
        outcome.note(
            Level::Warn,
            "some more than a minute ago: no server runs, or none keeps up (clients do not see \
             them any more; any running server removes them)",
        );
    }
    outcome.finding(
        Level::Warn,
        &found.leads_nowhere,
        [
            "row of the index that leads to no key",
            "rows of the index that lead to no key",
        ],
        "harmless; --repair removes them, and so do servers when their time comes",
    );
    outcome.finding(
        Level::Fail,
        &found.unreadable,
        [
            "row that cannot be read, which keeps servers from removing expired keys",
            "rows that cannot be read, which keep servers from removing expired keys",
        ],
        "report this to the authors of Quoin, with these rows",
    );
    Ok(outcome.line(name))
}

async fn judge_expiry(
    target: &DoctorTarget<'_>,
    found: &mut Expiries,
    row: &KeyValue,
    leads_nowhere: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Ok((at_ms, namespace, name)) = target.layout.read_expiry_key(&row.key) else {
        found.unreadable.add(|| shown(&row.key));
        return Ok(());
    };
    if at_ms <= now_ms {
        found.due += 1;
        found.oldest_due_ms.get_or_insert(at_ms);
    }
    if !leads_nowhere {
        return Ok(());
    }
    found
        .leads_nowhere
        .add(|| target.name(namespace, &name, None));
    let is_repaired = target
        .repair(async |transaction: &dyn Transaction| {
            let isolation = Isolation::Serializable;
            let is_wrong = self::leads_nowhere(target, transaction, &row.key, isolation).await?;
            if is_wrong {
                transaction.clear(&row.key);
            }
            Ok(true)
        })
        .await?;
    if is_repaired {
        found.leads_nowhere.count_repaired();
    }
    Ok(())
}

/// Whether no key expires then. Keys with unreadable metadata are reported elsewhere.
async fn leads_nowhere(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    expiry_key: &[u8],
    isolation: Isolation,
) -> Result<bool, StoreError> {
    let Ok((at_ms, namespace, name)) = target.layout.read_expiry_key(expiry_key) else {
        return Ok(false);
    };
    let meta_key = target.layout.meta_key(namespace, &name);
    let meta = transaction.get(&meta_key, isolation).await?;
    Ok(match meta.map(|value| Meta::decode(&value)) {
        None => true,
        Some(Ok(meta)) => meta.expire_at_ms != Some(at_ms),
        Some(Err(_)) => false,
    })
}
