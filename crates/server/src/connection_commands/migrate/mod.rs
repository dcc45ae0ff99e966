//! MIGRATE: sends keys to another server, and removes those that it has acknowledged.
//!
//! The keys are read, sent and removed one after the other, and no batch waits for the network. So a
//! key may change between being read and removed: the transaction that removes it looks, and leaves a
//! key that has changed.

use bytes::Bytes;
use futures_util::future::join_all;

use super::errors::{lossy_text, refusal};
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::limits::{MIGRATED_BYTES_AT_ONCE, MIGRATED_KEYS_AT_ONCE};
use quoin_data::command::locks::KeyLocks;
use quoin_data::error::CommandError;
use quoin_data::keys::migrating::Departure;
use quoin_resp::reply::Reply;

mod order;
mod target;

use order::{Order, parse};
use target::{Target, TargetError};

/// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2
/// username password] [KEYS key [key …]]`.
pub(super) async fn migrate(
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let order = parse(arguments)?;
    let mut keys = existing(&order, session, state).await?;
    if keys.is_empty() {
        return Ok(Reply::Simple("NOKEY"));
    }
    let mut target = Target::connect(&order).await?;
    let mut first_error = None;
    while !keys.is_empty() {
        let departures = read_some(&mut keys, session, state).await?;
        let (acknowledged, error) = target.restore(&departures, &order, state).await;
        if let Some(TargetError::Refused(line)) = &error {
            first_error.get_or_insert_with(|| refused_by_target(line));
        }
        if !order.copies
            && let Some(changed) = depart(acknowledged, session, state).await?
        {
            first_error.get_or_insert_with(|| has_changed(&changed));
        }
        if let Some(TargetError::Lost(lost)) = error {
            return Err(first_error.unwrap_or(lost));
        }
    }
    first_error.map_or(Ok(Reply::OK), Err)
}

fn refused_by_target(line: &str) -> CommandError {
    refusal(format!("ERR Target instance replied with error: {line}"))
}

fn has_changed(key: &Bytes) -> CommandError {
    refusal(format!(
        "ERR key '{}' has changed while it was sent: it stays here, and the target instance has what \
         it was before",
        lossy_text(key)
    ))
}

/// The keys that are there, the last one first.
async fn existing(
    order: &Order<'_>,
    session: &Session,
    state: &ServerState,
) -> Result<Vec<Bytes>, CommandError> {
    let names = order.keys.to_vec();
    let looked = state.executor.read(session.database, move |context| {
        let names = names.clone();
        Box::pin(async move {
            let found = context.find_each(&names).await?;
            let there = names.into_iter().zip(found);
            let there = there.filter(|(_, found)| found.is_some());
            Ok(there.map(|(name, _)| name).rev().collect())
        })
    });
    looked.await.map_err(CommandError::from)
}

/// Takes the last keys and reads them, until there is enough to send.
async fn read_some(
    keys: &mut Vec<Bytes>,
    session: &Session,
    state: &ServerState,
) -> Result<Vec<Departure>, CommandError> {
    let mut departures = Vec::new();
    let mut bytes = 0;
    while bytes < MIGRATED_BYTES_AT_ONCE
        && departures.len() < MIGRATED_KEYS_AT_ONCE
        && let Some(name) = keys.pop()
    {
        // Each on a snapshot of its own: the values of many keys take longer to read than one lives.
        let read = state.executor.read(session.database, move |context| {
            let name = name.clone();
            Box::pin(async move { context.departure(&name).await })
        });
        if let Some(departure) = read.await.map_err(CommandError::from)? {
            bytes += departure.name.len() + departure.payload.len();
            departures.push(departure);
        }
    }
    Ok(departures)
}

/// Removes keys that the target has. Returns the first that has changed and stays.
async fn depart(
    departures: Vec<Departure>,
    session: &Session,
    state: &ServerState,
) -> Result<Option<Bytes>, CommandError> {
    let removals = departures.into_iter().map(async |departure| {
        let name = departure.name.clone();
        let locks = KeyLocks::Keys(vec![KeyLocks::hash_key(session.database, &name)]);
        let job = state
            .executor
            .transact(session.database, locks, move |context| {
                let departure = departure.clone();
                Box::pin(async move { context.depart(&departure).await })
            });
        let is_gone = job.await.map_err(CommandError::from)?;
        Ok::<_, CommandError>((!is_gone).then_some(name))
    });
    // At once, so that they share batches. All of them, even where one fails.
    let mut first_changed = None;
    for stayed in join_all(removals).await {
        first_changed = first_changed.or(stayed?);
    }
    Ok(first_changed)
}
