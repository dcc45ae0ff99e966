//! The index by which expired keys are found: rows that lead to no key, keys that it misses (see
//! [`super::keys`] for those), and what is overdue.

use futures_util::future::try_join_all;

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::{DoctorTarget, OVERDUE_MS, READS_AT_ONCE, rows};
use quoin_base::size::counted;
use quoin_layout::{Meta, Space, successor};
use quoin_store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

#[derive(Default)]
struct Found {
    rows: u64,
    due: u64,
    oldest_due_ms: Option<i64>,
    leads_nowhere: Finding,
    unreadable: Finding,
}

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let range = target.layout.rows_of(Space::Expiry);
    let mut begin = range.begin.clone();
    let mut found = Found::default();
    let now_ms = target.clock.now_ms();
    loop {
        // Rows and the keys that they lead to, at one moment.
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
            judge(target, &mut found, row, leads_nowhere, now_ms).await?;
        }
        target.progress.show("expiries looked at", found.rows);
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
            "some more than a minute ago: no server runs, or none keeps up (clients see them as \
             gone all the same; any running server removes them)",
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
        "tell the authors of Quoin, with these rows",
    );
    Ok(outcome.line(name))
}

async fn judge(
    target: &DoctorTarget<'_>,
    found: &mut Found,
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

/// Whether no key expires then. (A key whose metadata cannot be read is another check's finding.)
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
