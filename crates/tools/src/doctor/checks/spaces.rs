//! Checks of spaces of the layout besides keys and data: latency (in the scratch space), unknown rows, databases, the
//! trash, operations of unknown result, and published messages.

use std::time::{Duration, Instant};

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::{DoctorTarget, LATENCY_TRIES, PAGE_ROWS, rows};
use quoin_base::size::counted;
use quoin_layout::{Id, Space, TrashKind, successor};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

pub(super) async fn check_rows(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let layout = &target.layout;
    let everything = layout.everything();
    let mut begin = everything.begin.clone();
    let mut known = 0_u64;
    let mut unknown = Finding::default();
    // Bounded, in case everything there is of another kind.
    for _ in 0..PAGE_ROWS {
        let first = target
            .read(async |transaction: &dyn ReadTransaction| {
                rows(transaction, &begin, &everything.end, 1, Isolation::Snapshot).await
            })
            .await?;
        let Some(row) = first.into_iter().next() else {
            break;
        };
        begin = match layout.read_space(&row.key) {
            Ok(number) => {
                match Space::from_number(number) {
                    Some(_) => known += 1,
                    None => unknown.add(|| format!("space {number}")),
                }
                layout.space(number).end
            }
            Err(_) => {
                unknown.add(|| shown(&row.key));
                successor(&row.key)
            }
        };
    }
    let scratch = scratch(target).await?;
    let mut outcome = Outcome::new(format!(
        "{} in use",
        counted(known, "kind of row is", "kinds of rows are")
    ));
    outcome.finding(
        Level::Warn,
        &unknown,
        [
            "kind that this Quoin does not know",
            "kinds that this Quoin does not know",
        ],
        "from a newer Quoin, or from another program under the same root prefix: they are left \
         alone",
    );
    outcome.finding(
        Level::Warn,
        &scratch,
        [
            "row of a doctor that was stopped while it measured",
            "rows of a doctor that was stopped while it measured",
        ],
        "--repair removes them",
    );
    Ok(outcome.line(name))
}

/// Rows left by other doctors. A doctor that is measuring now finds its row gone, and writes it
/// again.
async fn scratch(target: &DoctorTarget<'_>) -> Result<Finding, StoreError> {
    let range = target.layout.rows_of(Space::Scratch);
    let found = target
        .read(async |transaction: &dyn ReadTransaction| {
            let limit = PAGE_ROWS;
            rows(
                transaction,
                &range.begin,
                &range.end,
                limit,
                Isolation::Snapshot,
            )
            .await
        })
        .await?;
    let mut finding = Finding::default();
    for row in found {
        finding.add(|| shown(&row.key));
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.clear(&row.key);
                Ok(true)
            })
            .await?;
        if is_repaired {
            finding.count_repaired();
        }
    }
    Ok(finding)
}

pub(super) async fn check_latency(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    if target.is_standby {
        let text = "not measured: a commit would end this standby";
        return Ok(Line::ok(name, text));
    }
    // A separate key, so that several doctors may measure at the same time.
    let key = target.layout.scratch_key(target.random.next_u64());
    let measured = measure(target, &key).await;
    // Also if measuring has failed.
    let cleared = target
        .write(async |transaction: &dyn Transaction| {
            transaction.clear(&key);
            Ok(())
        })
        .await;
    let text = measured?;
    cleared?;
    Ok(Line::ok(name, text))
}

async fn measure(target: &DoctorTarget<'_>, key: &[u8]) -> Result<String, StoreError> {
    let mut reads = Vec::with_capacity(LATENCY_TRIES);
    let mut commits = Vec::with_capacity(LATENCY_TRIES);
    for number in 0..LATENCY_TRIES as u64 {
        let begun = Instant::now();
        target
            .read(async |transaction: &dyn ReadTransaction| {
                transaction.get(key, Isolation::Snapshot).await.map(drop)
            })
            .await?;
        reads.push(begun.elapsed());
        let begun = Instant::now();
        target
            .write(async |transaction: &dyn Transaction| {
                transaction.set(key, &number.to_be_bytes());
                Ok(())
            })
            .await?;
        commits.push(begun.elapsed());
    }
    Ok(format!(
        "snapshot and read of a row {}, commit of a row {} (median, 99th percentile of {})",
        percentiles(reads),
        percentiles(commits),
        LATENCY_TRIES
    ))
}

/// Median and 99th percentile, for people.
pub(in crate::doctor) fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| {
        let index = (times.len() * part / 100).min(times.len().saturating_sub(1));
        times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    format!("{:.2}, {:.2} ms", at(50), at(99))
}

pub(super) async fn check_databases(
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
                // It may have been cleared in the meantime.
                Ok(row.is_some() || !has_keys(target, transaction, namespace).await?)
            })
            .await?;
        if is_trash {
            continue;
        }
        lost.add(|| format!("{} {}", namespace.instance, namespace.sequence));
        // A namespace that no database shows never returns: FLUSHDB creates new ones, and SWAPDB
        // exchanges current ones. The next server clears the trash.
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
        "empty one with FLUSHDB, after copying what is needed: the other loses its keys too",
    );
    outcome.finding(
        Level::Warn,
        &lost,
        [
            "namespace with keys that no database shows",
            "namespaces with keys that no database shows",
        ],
        "--repair moves them to the trash",
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
        // The scan of keys reports unreadable rows.
        let Ok((namespace, _)) = target.layout.read_namespaced_key(&row.key) else {
            return Ok(used);
        };
        begin = target.layout.end_of_namespace(namespace);
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

pub(super) async fn check_trash(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let mut count = 0_u64;
    let mut unreadable = Finding::default();
    target
        .each_row(&target.layout.trash(), |row| {
            count += 1;
            if target.layout.read_trash_key(&row.key).is_err() {
                unreadable.add(|| shown(&row.key));
            }
        })
        .await?;
    let mut outcome = Outcome::new(match count {
        0 => "nothing is left to clear".to_owned(),
        _ => format!(
            "{}: a running server clears what is there",
            counted(
                count,
                "removed value or database",
                "removed values or databases"
            )
        ),
    });
    outcome.finding(
        Level::Fail,
        &unreadable,
        [
            "row that cannot be read, which keeps servers from clearing what comes after it",
            "rows that cannot be read, which keep servers from clearing what comes after them",
        ],
        "report this to the authors of Quoin, with these rows",
    );
    Ok(outcome.line(name))
}

/// Every start of a server on a cluster leaves one row for each batch in flight, and no server
/// removes it. The doctor cannot know whether that server still runs, perhaps stopped during a
/// commit. The rows are small. If no server runs, they can be removed.
pub(super) async fn check_operations(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let range = target.layout.rows_of(Space::Operations);
    let mut count = 0_u64;
    let (mut starts, mut last_instance) = (0_u64, None);
    let mut unreadable = Finding::default();
    target
        .each_row(&range, |row| {
            count += 1;
            match target.layout.read_operation_key(&row.key) {
                Ok(instance) if last_instance == Some(instance) => {}
                Ok(instance) => {
                    starts += 1;
                    last_instance = Some(instance);
                }
                Err(_) => unreadable.add(|| shown(&row.key)),
            }
        })
        .await?;
    if count == 0 {
        return Ok(Line::ok(name, "none"));
    }
    let mut outcome = Outcome::new(format!(
        "{} of {}",
        counted(count, "small row", "small rows"),
        counted(starts, "server start", "server starts")
    ));
    if target.is_offline {
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.clear_range(&range.begin, &range.end);
                Ok(true)
            })
            .await?;
        if is_repaired {
            outcome.note(Level::Ok, "removed");
        }
    } else if target.repairs {
        outcome.note(
            Level::Ok,
            "kept: a running server may need its own (--offline removes them)",
        );
    }
    outcome.finding(
        Level::Warn,
        &unreadable,
        ["row that cannot be read", "rows that cannot be read"],
        "with all servers stopped, --repair --offline removes them",
    );
    Ok(outcome.line(name))
}

/// A server that publishes or listens clears messages after some seconds. A killed server does not,
/// so its messages stay until another starts, publishes or listens.
pub(super) async fn check_messages(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let (count, last) = count_messages(target).await?;
    let Some(last) = last else {
        return Ok(Line::ok(name, "none is on its way to other servers"));
    };
    tokio::time::sleep(target.message_grace).await;
    let range = target.layout.messages();
    let is_there = target
        .read(async |transaction: &dyn ReadTransaction| {
            let end = successor(&last);
            let rows = rows(transaction, &range.begin, &end, 1, Isolation::Snapshot).await?;
            Ok(!rows.is_empty())
        })
        .await?;
    let mut outcome = Outcome::new(format!(
        "{} on their way to other servers",
        counted(count, "row", "rows")
    ));
    if is_there {
        // Like a server: all servers have read them long ago.
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.clear_range(&range.begin, &successor(&last));
                Ok(true)
            })
            .await?;
        if is_repaired {
            outcome.note(Level::Ok, "cleared");
        } else {
            outcome.note(
                Level::Warn,
                "which no server cleared in time: a killed server left them; the next server that \
                 starts or publishes clears them, or --repair does",
            );
        }
    }
    Ok(outcome.line(name))
}

async fn count_messages(
    target: &DoctorTarget<'_>,
) -> Result<(u64, Option<bytes::Bytes>), StoreError> {
    let mut count = 0;
    let mut last = None;
    target
        .each_row(&target.layout.messages(), |row| {
            count += 1;
            last = Some(row.key.clone());
        })
        .await?;
    Ok((count, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentiles(times), "51.00, 100.00 ms");
        assert_eq!(percentiles(Vec::new()), "0.00, 0.00 ms");
    }
}
