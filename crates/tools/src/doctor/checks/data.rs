//! Data without a key.
//!
//! Ids of data and keys are in different orders, and neither need fit into memory. So ids are read a million
//! at a time, and for each million all keys are scanned once.
//!
//! The scan may miss a key that is renamed meanwhile. So data that seems to have no key is looked up again,
//! among all keys at one moment. That decides: an id without a key at one moment never gets a key again,
//! because a transaction that gives a key an id either creates the id, or has read (and conflicts on) another
//! key with that id.
//!
//! If the metadata of any key cannot be read, data that seems to have no key may belong to it. An operator
//! may still recover it, so nothing is removed.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{self, DATA_PAGE_ROWS, DoctorTarget, READS_AT_ONCE, rows};
use quoin_base::size::counted;
use quoin_layout::{Id, KeyRange, Space, TrashKind, successor};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

/// Data ids that are kept in memory at a time. All keys are scanned once per that number of ids.
const IDS_AT_ONCE: usize = 1_000_000;

/// Data ids without a key that are checked further. If there are more, the report says so.
const SUSPECTS_MAX: usize = 10_000;
const ADVICE: &str = "they only take up space; --repair removes them";

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let mut begin = Some(target.layout.rows_of(Space::Data).begin);
    let mut count = 0_u64;
    let mut unreadable = 0_u64;
    let mut suspects = BTreeSet::new();
    let mut all_names_are_known = true;
    while let Some(from) = begin.take() {
        let page = ids(target, from, IDS_AT_ONCE).await?;
        count += page.ids.len() as u64;
        unreadable += page.unreadable;
        begin = page.next;
        let found = unnamed(target, page.ids).await?;
        all_names_are_known &= found.all_names_are_known;
        for id in found.ids {
            if suspects.len() <= SUSPECTS_MAX {
                suspects.insert(id);
            }
        }
    }
    let there_are_more = suspects.len() > SUSPECTS_MAX;
    let mut outcome = Outcome::new(counted(count, "value", "values"));
    let confirmed = target
        .read_much(async |transaction: &dyn ReadTransaction| {
            confirm(target, transaction, suspects.clone()).await
        })
        .await?;
    if let Some(confirmed) = &confirmed {
        all_names_are_known &= confirmed.all_names_are_known;
    }
    let lost = match confirmed {
        _ if !all_names_are_known => {
            if !suspects.is_empty() {
                outcome.note(
                    Level::Warn,
                    format!(
                        "{} to belong to no key, but the metadata of some keys cannot be read: nothing \
                         is removed",
                        counted(suspects.len() as u64, "value seems", "values seem")
                    ),
                );
            }
            BTreeSet::new()
        }
        Some(confirmed) => confirmed.ids.into_iter().collect(),
        None if target.is_offline => suspects,
        None => {
            outcome.note(
                Level::Warn,
                format!(
                    "{} to belong to no key, but there are too many keys to check all of them at \
                     one moment - with all servers stopped, --offline finds out, and --repair \
                     --offline removes what belongs to no key",
                    counted(suspects.len() as u64, "value seems", "values seem")
                ),
            );
            BTreeSet::new()
        }
    };
    let mut finding = Finding::default();
    for id in lost {
        finding.add(|| format!("{} {}", id.instance, id.sequence));
        let range = KeyRange::children(&target.layout.data_prefix(id));
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                let isolation = Isolation::Serializable;
                let first = rows(transaction, &range.begin, &range.end, 1, isolation).await?;
                if !first.is_empty() {
                    target.discard_data(transaction, id);
                }
                Ok(true)
            })
            .await?;
        if is_repaired {
            finding.count_repaired();
        }
    }
    outcome.finding(
        Level::Warn,
        &finding,
        ["that belongs to no key", "that belong to no key"],
        ADVICE,
    );
    if there_are_more {
        outcome.note(Level::Warn, "and more: run it again");
    }
    if unreadable > 0 {
        outcome.note(
            Level::Warn,
            format!(
                "{} that cannot be read: Quoin did not write them",
                counted(unreadable, "row", "rows")
            ),
        );
    }
    Ok(outcome.line(name))
}

#[derive(Default)]
struct IdPage {
    /// In their order.
    ids: Vec<Id>,
    unreadable: u64,
    next: Option<Vec<u8>>,
}

/// Ids that have data, from `begin` on. Reads only the first rows of each.
async fn ids(
    target: &DoctorTarget<'_>,
    begin: Vec<u8>,
    limit: usize,
) -> Result<IdPage, StoreError> {
    let layout = &target.layout;
    let end = layout.rows_of(Space::Data).end;
    let mut page = IdPage::default();
    let mut begin = begin;
    while page.ids.len() < limit {
        let rows = target
            .read(async |transaction: &dyn ReadTransaction| {
                let limit = DATA_PAGE_ROWS;
                rows(transaction, &begin, &end, limit, Isolation::Snapshot).await
            })
            .await?;
        let Some(last) = rows.last() else {
            return Ok(page);
        };
        begin = successor(&last.key);
        for row in &rows {
            match layout.read_data_key(&row.key) {
                Ok((id, _)) => {
                    if page.ids.last() != Some(&id) {
                        page.ids.push(id);
                    }
                    // After everything that belongs to the last id.
                    begin = KeyRange::children(&layout.data_prefix(id)).end;
                }
                Err(_) => page.unreadable += 1,
            }
        }
        begin = begin.max(successor(&last.key));
        target
            .progress
            .count("values checked", page.ids.len() as u64);
    }
    page.next = Some(begin);
    Ok(page)
}

/// Ids that no key names.
struct Unnamed {
    ids: Vec<Id>,
    /// The metadata of all keys could be read.
    all_names_are_known: bool,
}

/// The ids that no key names during a scan of all keys.
async fn unnamed(target: &DoctorTarget<'_>, ids: Vec<Id>) -> Result<Unnamed, StoreError> {
    let mut all_names_are_known = true;
    if ids.is_empty() {
        return Ok(Unnamed {
            ids,
            all_names_are_known,
        });
    }
    let mut is_named = vec![false; ids.len()];
    let mut begin = Some(target::first_key(&target.layout));
    let mut count = 0;
    while let Some(from) = begin {
        let (page, next) = target
            .read(async |transaction: &dyn ReadTransaction| {
                target::read_key_page(transaction, &target.layout, &from).await
            })
            .await?;
        for key in &page.keys {
            if let Ok(at) = ids.binary_search(&key.meta.data)
                && let Some(is_named) = is_named.get_mut(at)
            {
                *is_named = true;
            }
        }
        all_names_are_known &= page.unreadable.is_empty();
        count += page.keys.len() as u64;
        target.progress.count("keys compared with values", count);
        begin = next;
    }
    let unnamed = ids.into_iter().zip(is_named).filter(|(_, named)| !named);
    Ok(Unnamed {
        ids: unnamed.map(|(id, _)| id).collect(),
        all_names_are_known,
    })
}

/// The ids that have data, are not in the trash, and are not named by any key at one moment.
async fn confirm(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    suspects: BTreeSet<Id>,
) -> Result<Unnamed, StoreError> {
    let mut all_names_are_known = true;
    let mut lost = BTreeSet::new();
    let all: Vec<Id> = suspects.into_iter().collect();
    for some in all.chunks(READS_AT_ONCE) {
        let checks = some.iter().map(|id| is_there(target, transaction, *id));
        let found = try_join_all(checks).await?;
        let there = some.iter().zip(found).filter(|(_, is_there)| *is_there);
        lost.extend(there.map(|(id, _)| *id));
    }
    let mut begin = Some(target::first_key(&target.layout));
    while let Some(from) = begin
        && !lost.is_empty()
    {
        let (page, next) = target::read_key_page(transaction, &target.layout, &from).await?;
        for key in &page.keys {
            lost.remove(&key.meta.data);
        }
        all_names_are_known &= page.unreadable.is_empty();
        begin = next;
    }
    Ok(Unnamed {
        ids: lost.into_iter().collect(),
        all_names_are_known,
    })
}

async fn is_there(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    id: Id,
) -> Result<bool, StoreError> {
    let trash_key = target.layout.trash_key(TrashKind::Data, id);
    if transaction
        .get(&trash_key, Isolation::Snapshot)
        .await?
        .is_some()
    {
        return Ok(false);
    }
    let range = KeyRange::children(&target.layout.data_prefix(id));
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
