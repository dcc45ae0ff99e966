//! Compares what clients know with the final state. Everything added exists or was deleted, and
//! each group has finished with it in exactly one way.

use std::collections::{BTreeMap, BTreeSet};

use super::deliveries::Deliveries;
use super::ends::{Deletions, Ends};
use super::state::State;
use super::{Group, Ledger, STREAMS, key};
use crate::history::Payload;
use crate::streams::EntryId;

/// Compares the final state with what clients know. Returns a summary.
///
/// # Errors
/// What is wrong.
pub fn check(ledgers: &[Ledger], state: &State) -> Result<String, String> {
    let [mut delivered, mut again, mut dead, mut deleted] = [0; 4];
    for stream in 0..STREAMS {
        let deletions = Deletions::of(stream, ledgers);
        let entries = check_entries(stream, ledgers, state, &deletions)?;
        deleted += entries.len() - state.streams[usize::from(stream)].len();
        for group in Group::all().filter(|group| group.stream == stream) {
            let deliveries = Deliveries::of(group, ledgers);
            deliveries.check()?;
            let ends = Ends::of(group, ledgers, state)?;
            for (id, payload) in &entries {
                ends.check_entry(*id, *payload, &deliveries, &deletions)?;
            }
            ends.check_pending(&deletions)?;
            let (all, repeated) = deliveries.told();
            delivered += all;
            again += repeated;
            dead += ends.dead();
        }
    }
    Ok(format!(
        "{delivered} jobs delivered, {again} again, {dead} dead letters, {deleted} deleted; "
    ))
}

/// All entries that certainly existed: those that still do, and those that are gone and were
/// acknowledged to a client or delivered.
fn check_entries(
    stream: u8,
    ledgers: &[Ledger],
    state: &State,
    deletions: &Deletions<'_>,
) -> Result<BTreeMap<EntryId, Payload>, String> {
    let key = key(stream);
    let entries = &state.streams[usize::from(stream)];
    let mut neighbours = entries.iter().zip(entries.iter().skip(1));
    if let Some(((id, _), (other, _))) = neighbours.find(|((id, _), (other, _))| id >= other) {
        return Err(format!("{key}: {id} stands before {other}"));
    }
    let added = ledgers.iter().flat_map(|ledger| &ledger.added);
    let added = added.filter(|added| added.stream == stream);
    let ids: BTreeMap<Payload, Option<EntryId>> =
        added.map(|added| (added.payload, added.id)).collect();
    let is_of_stream = |group: &Group| group.stream == stream;
    let delivered = ledgers.iter().flat_map(|ledger| &ledger.delivered);
    let delivered = delivered.filter(|one| is_of_stream(&one.group));
    let delivered = delivered.flat_map(|one| one.entries.iter().map(|(entry, _)| entry));
    let answered = ids
        .iter()
        .filter_map(|(payload, id)| Some((*id)?).map(|id| (id, *payload)));
    let answered: Vec<_> = answered.collect();
    let mut all: BTreeMap<EntryId, Payload> = BTreeMap::new();
    for (id, payload) in entries.iter().chain(delivered).chain(&answered) {
        match ids.get(payload) {
            None => return Err(format!("{key}: {payload} comes from nowhere")),
            Some(Some(answered)) if answered != id => {
                return Err(format!(
                    "{key}: {payload} is {id}, and was answered {answered}"
                ));
            }
            Some(_) => {}
        }
        if all
            .insert(*id, *payload)
            .is_some_and(|before| before != *payload)
        {
            return Err(format!("{key}: {id} was two entries"));
        }
    }
    let payloads: BTreeSet<&Payload> = all.values().collect();
    if payloads.len() < all.len() {
        return Err(format!("{key}: an entry was there twice"));
    }
    let there: BTreeSet<EntryId> = entries.iter().map(|(id, _)| *id).collect();
    for id in all.keys() {
        if !there.contains(id) && !deletions.may_be_gone(*id) {
            return Err(format!("{key}: {id} is acknowledged and lost"));
        }
        if there.contains(id) && deletions.is_gone(*id) {
            return Err(format!("{key}: {id} was deleted and is there"));
        }
        if deletions.deleted_by_id(*id) > 1 {
            return Err(format!("{key}: {id} was deleted twice"));
        }
    }
    Ok(all)
}
