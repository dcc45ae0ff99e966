//! What servers of older versions popped for each other: requests that no server waits for, and
//! popped elements that the requesting server has not fetched.

use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::target::{DoctorTarget, OVERDUE_MS, READS_AT_ONCE, rows};
use quoin_base::size::counted;
use quoin_data::cluster::delegation::{read_granted_elements, remove_request};
use quoin_data::error::CommandError;
use quoin_data::unit::context::{Environment, NamespaceCache, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_data::unit::startup::{StartError, prepare};
use quoin_layout::{Grant, Id, KeyRange, successor};
use quoin_store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

#[derive(Default)]
struct Found {
    requests: u64,
    grants: u64,
    old_requests: Finding,
    expired: Finding,
    without_elements: Finding,
    stray_pieces: Finding,
    unreadable: Finding,
    /// The environment for servers' code, created for the first repair.
    environment: Option<Environment>,
}

/// The kind of rows that are checked.
#[derive(Clone, Copy)]
enum Rows {
    Requests,
    Grants,
    Pieces,
}

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    let layout = &target.layout;
    let mut found = Found::default();
    for (rows, range) in [
        (Rows::Requests, layout.all_pop_requests()),
        (Rows::Grants, layout.all_grants()),
        (Rows::Pieces, layout.all_grant_pieces()),
    ] {
        check_rows(target, rows, range, &mut found).await?;
    }
    let mut outcome = Outcome::new(format!(
        "{} to pop for a server, {} of what was popped",
        counted(found.requests, "request", "requests"),
        counted(found.grants, "grant", "grants")
    ));
    // If no server runs, the next one will do it.
    let overdue = if target.is_offline {
        Level::Ok
    } else {
        Level::Warn
    };
    outcome
        .finding(
            overdue,
            &found.expired,
            [
                "grant that expired more than a minute ago",
                "grants that expired more than a minute ago",
            ],
            "no server runs, or its clock is far behind: the next server to start puts their \
             elements back into their queues, or --repair does",
        )
        .finding(
            overdue,
            &found.old_requests,
            [
                "request that no server waits for any more",
                "requests that no server waits for any more",
            ],
            "no server runs: the next server to start removes them, or --repair does",
        )
        .finding(
            Level::Fail,
            &found.stray_pieces,
            [
                "element that belongs to no grant",
                "elements that belong to no grant",
            ],
            "no queue gets them back, and nothing removes them; report this to the authors of Quoin",
        )
        .finding(
            Level::Fail,
            &found.without_elements,
            [
                "grant whose elements are missing",
                "grants whose elements are missing",
            ],
            "report this to the authors of Quoin",
        )
        .finding(
            Level::Fail,
            &found.unreadable,
            [
                "row that cannot be read, which keeps servers from reading others",
                "rows that cannot be read, which keep servers from reading others",
            ],
            "report this to the authors of Quoin, with these rows",
        );
    Ok(outcome.line(name))
}

async fn check_rows(
    target: &DoctorTarget<'_>,
    kind: Rows,
    range: KeyRange,
    found: &mut Found,
) -> Result<(), StoreError> {
    let mut begin = range.begin;
    loop {
        // Rows, and whether the rows that belong to them exist, at one moment.
        let (page, is_whole) = target
            .read(async |transaction: &dyn ReadTransaction| {
                let isolation = Isolation::Snapshot;
                let limit = READS_AT_ONCE;
                let page = rows(transaction, &begin, &range.end, limit, isolation).await?;
                let checks = page
                    .iter()
                    .map(|row| is_whole(target, transaction, kind, row));
                let is_whole = try_join_all(checks).await?;
                Ok((page, is_whole))
            })
            .await?;
        for (row, is_whole) in page.iter().zip(is_whole) {
            judge(target, kind, row, is_whole, found).await?;
        }
        match page.last() {
            Some(last) if page.len() >= READS_AT_ONCE => begin = successor(&last.key),
            _ => return Ok(()),
        }
    }
}

/// Whether a grant has elements, or an element has its grant. `None` if the row cannot be read.
async fn is_whole(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    kind: Rows,
    row: &KeyValue,
) -> Result<Option<bool>, StoreError> {
    let layout = &target.layout;
    let isolation = Isolation::Snapshot;
    match kind {
        Rows::Requests => Ok(layout
            .read_pop_request(&row.key, &row.value)
            .ok()
            .map(|_| true)),
        Rows::Grants => {
            let (Ok((data, id)), Ok(grant)) =
                (layout.read_grant_key(&row.key), Grant::decode(&row.value))
            else {
                return Ok(None);
            };
            let pieces = layout.grant_pieces(data, id);
            let first = rows(transaction, &pieces.begin, &pieces.end, 1, isolation).await?;
            // If the queue was empty, the grant says so and has no elements.
            Ok(Some(grant.is_exhausted || !first.is_empty()))
        }
        Rows::Pieces => {
            let Ok((data, id)) = layout.read_grant_piece_key(&row.key) else {
                return Ok(None);
            };
            let grant = layout.grant_key(data, id);
            Ok(Some(transaction.get(&grant, isolation).await?.is_some()))
        }
    }
}

async fn judge(
    target: &DoctorTarget<'_>,
    kind: Rows,
    row: &KeyValue,
    is_whole: Option<bool>,
    found: &mut Found,
) -> Result<(), StoreError> {
    let now_ms = target.clock.now_ms();
    let is_overdue = |at_ms: i64| at_ms.saturating_add(OVERDUE_MS) < now_ms;
    let Some(is_whole) = is_whole else {
        found.unreadable.add(|| shown(&row.key));
        return Ok(());
    };
    match kind {
        Rows::Requests => {
            found.requests += 1;
            let read = target.layout.read_pop_request(&row.key, &row.value);
            if let Ok((_, request)) = read
                && is_overdue(request.at_ms)
            {
                let Id { instance, sequence } = request.id;
                found.old_requests.add(|| format!("{instance} {sequence}"));
                // Like a server: either this conflicts, or a server that grants it concurrently.
                let is_repaired = target
                    .repair(async |transaction: &dyn Transaction| {
                        remove_request(transaction, &row.key);
                        Ok(true)
                    })
                    .await?;
                if is_repaired {
                    found.old_requests.count_repaired();
                }
            }
        }
        Rows::Grants => {
            found.grants += 1;
            let Ok(grant) = Grant::decode(&row.value) else {
                return Ok(());
            };
            let name = || {
                let full = grant.name.inline().or(grant.long_name.as_ref());
                full.map_or_else(|| "a long name".to_owned(), |full| shown(full))
            };
            if !is_whole {
                found.without_elements.add(name);
            } else if is_overdue(grant.expires_at_ms) {
                match is_readable(target, row).await? {
                    None => {}
                    Some(false) => found.unreadable.add(|| shown(&row.key)),
                    Some(true) => {
                        found.expired.add(name);
                        if target.repairs && put_back(target, row, found).await? {
                            found.expired.count_repaired();
                        }
                    }
                }
            }
        }
        Rows::Pieces => {
            if !is_whole {
                found.stray_pieces.add(|| shown(&row.key));
            }
        }
    }
    Ok(())
}

/// Whether the elements of a grant can be read. `None` if the grant has ended meanwhile.
async fn is_readable(
    target: &DoctorTarget<'_>,
    row: &KeyValue,
) -> Result<Option<bool>, StoreError> {
    let layout = &target.layout;
    let (data, id) = layout.read_grant_key(&row.key)?;
    target
        .read(async |transaction: &dyn ReadTransaction| {
            let grant = transaction.get(&row.key, Isolation::Snapshot).await?;
            if grant.is_none() {
                return Ok(None);
            }
            match read_granted_elements(layout, transaction, data, id).await {
                Ok(_) => Ok(Some(true)),
                Err(StoreError::Corrupt(_)) => Ok(Some(false)),
                Err(error) => Err(error),
            }
        })
        .await
}

/// Returns the elements of a grant to their queue, with the code that servers use.
async fn put_back(
    target: &DoctorTarget<'_>,
    row: &KeyValue,
    found: &mut Found,
) -> Result<bool, StoreError> {
    let environment = match found.environment.take() {
        Some(environment) => environment,
        None => environment(target).await?,
    };
    let environment = &*found.environment.insert(environment);
    let result = target
        .repair(async |transaction: &dyn Transaction| {
            let namespaces = NamespaceCache::default();
            let signals = Signals::default();
            let now_ms = target.clock.now_ms();
            let context =
                WriteContext::new(transaction, environment, &namespaces, &signals, now_ms, 0);
            match context.end_grant(&row.key).await {
                Ok(_) => Ok(true),
                Err(CommandError::Store(error)) => Err(error),
                Err(error) => Err(StoreError::Unavailable(Arc::new(error))),
            }
        })
        .await;
    match result {
        // The queue's metadata is damaged, which the check of keys reports.
        Err(StoreError::Corrupt(_)) => Ok(false),
        result => result,
    }
}

/// The repair writes with new ids, which belong to another server start.
async fn environment(target: &DoctorTarget<'_>) -> Result<Environment, StoreError> {
    prepare(
        target.store,
        target.layout.clone(),
        Arc::clone(&target.clock),
        Arc::clone(&target.random),
    )
    .await
    .map_err(|error| match error {
        StartError::Store(error) => error,
        error => StoreError::Unavailable(Arc::new(error)),
    })
}
