//! Which namespaces databases show, and namespaces that none shows.

use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{DoctorTarget, rows};
use quoin_base::size::counted;
use quoin_layout::{Id, Space, TrashKind};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let layout = &target.layout;
    let (shown, used) = target
        .read(async |transaction: &dyn ReadTransaction| {
            let shown = target
                .current_namespaces(transaction, Isolation::Snapshot)
                .await?;
            Ok((shown, used_namespaces(target, transaction).await?))
        })
        .await?;
    let mut twice = Finding::default();
    for (number, (namespace, database)) in shown.iter().enumerate() {
        for (other, other_database) in shown.iter().take(number) {
            if other == namespace {
                twice.add(|| format!("{other_database} and {database}"));
            }
        }
    }
    let mut lost = Finding::default();
    let mut in_use = 0;
    for namespace in used {
        if shown.iter().any(|(known, _)| *known == namespace) {
            in_use += 1;
            continue;
        }
        let trash_key = layout.trash_key(TrashKind::Namespace, namespace);
        let is_trash = target
            .read(async |transaction: &dyn ReadTransaction| {
                let row = transaction.get(&trash_key, Isolation::Snapshot).await?;
                // It may have been cleared meanwhile.
                Ok(row.is_some() || !has_keys(target, transaction, namespace).await?)
            })
            .await?;
        if is_trash {
            continue;
        }
        lost.add(|| format!("{} {}", namespace.instance, namespace.sequence));
        // A namespace that no database shows will never be shown again: FLUSHDB makes new ones,
        // SWAPDB exchanges those that are shown. The trash is cleared by the next server.
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                let shown = target
                    .current_namespaces(transaction, Isolation::Serializable)
                    .await?;
                let is_lost = shown.iter().all(|(known, _)| *known != namespace);
                if is_lost {
                    transaction.set(&trash_key, b"");
                }
                Ok(is_lost)
            })
            .await?;
        if is_repaired {
            lost.count_repaired();
        }
    }
    let mut outcome = Outcome::new(counted(in_use, "has keys", "have keys"));
    outcome.finding(
        Level::Fail,
        &twice,
        [
            "shows the same keys as another",
            "show the same keys as another",
        ],
        "empty one by FLUSHDB, after copying what is needed: the other loses its keys too",
    );
    outcome.finding(
        Level::Warn,
        &lost,
        [
            "namespace with keys that no database shows",
            "namespaces with keys that no database shows",
        ],
        "--repair puts them into the trash",
    );
    Ok(outcome.line(name))
}

/// The namespaces that have keys.
async fn used_namespaces(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
) -> Result<Vec<Id>, StoreError> {
    let range = target.layout.rows_of(Space::Keys);
    let mut begin = range.begin;
    let mut used = Vec::new();
    loop {
        let first = rows(transaction, &begin, &range.end, 1, Isolation::Snapshot).await?;
        let Some(row) = first.first() else {
            return Ok(used);
        };
        // What cannot be read is found by the scan of keys.
        let Ok((namespace, _)) = target.layout.read_namespaced_key(&row.key) else {
            return Ok(used);
        };
        begin = target.layout.behind_namespace(namespace);
        used.push(namespace);
    }
}

async fn has_keys(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    namespace: Id,
) -> Result<bool, StoreError> {
    let range = target.layout.keys_from(namespace, 0);
    let first = rows(
        transaction,
        &range.begin,
        &range.end,
        1,
        Isolation::Snapshot,
    )
    .await?;
    Ok(!first.is_empty())
}
