//! Compares what clients know with the final state.
//!
//! *Stream*: every XADD with a reply is there once, under its id, and ids grow in the order of
//! time. *Followers*: what XREAD returned is a prefix of the stream, without gaps. *Groups*: new
//! deliveries are a part of the stream without gaps, each entry once, and later ones at later
//! times. Everything delivered to a group is pending, or may have been acknowledged. An XACK that
//! counted is permanent, and an XACK may find nothing only if another one can have been first.

use std::collections::{BTreeMap, BTreeSet};

use super::state::State;
use super::{Added, Delivered, Entry, EntryId, Group, Ledger, key};
use crate::history::{Moment, Payload};

/// Compares the final state with what clients know.
///
/// # Errors
/// What is wrong.
pub fn check(ledgers: &[Ledger], state: &State) -> Result<(), String> {
    let added: Vec<&Added> = ledgers.iter().flat_map(|ledger| &ledger.added).collect();
    for (number, entries) in (0..).zip(&state.streams) {
        let of_stream = added.iter().filter(|added| added.stream == number);
        check_entries(number, of_stream, entries)?;
        let followed = ledgers
            .iter()
            .filter_map(|ledger| ledger.followed.get(usize::from(number)));
        for followed in followed {
            check_follower(number, followed, entries)?;
        }
    }
    Group::all().try_for_each(|group| {
        let entries = &state.streams[usize::from(group.stream)];
        check_deliveries(group, ledgers, state, entries)?;
        check_acknowledged(group, ledgers, state, entries)
    })
}

fn check_entries<'l>(
    number: u8,
    added: impl Iterator<Item = &'l &'l Added>,
    entries: &[Entry],
) -> Result<(), String> {
    let key = key(number);
    let mut neighbours = entries.iter().zip(entries.iter().skip(1));
    if let Some(((id, _), (other, _))) = neighbours.find(|((id, _), (other, _))| id >= other) {
        return Err(format!("{key}: {id} stands before {other}"));
    }
    let mut by_payload: BTreeMap<Payload, &Added> = BTreeMap::new();
    for added in added {
        by_payload.insert(added.payload, added);
    }
    let mut seen = BTreeSet::new();
    let mut times = Vec::with_capacity(entries.len());
    for (id, payload) in entries {
        let Some(added) = by_payload.get(payload) else {
            return Err(format!("{key}: {payload} comes from nowhere"));
        };
        if !seen.insert(*payload) {
            return Err(format!("{key}: {payload} is there twice"));
        }
        match added.answer {
            Some((answered, _)) if answered != *id => {
                return Err(format!(
                    "{key}: {payload} is {id}, and was answered {answered}"
                ));
            }
            Some((_, ended)) => times.push((added.invoked, ended)),
            None => times.push((added.invoked, Moment::MAX)),
        }
    }
    if let Some(at) = out_of_time(&times) {
        let id = entries[at].0;
        return Err(format!(
            "{key}: {id} was asked for after a later id was answered"
        ));
    }
    let certain = by_payload.values().filter(|added| added.answer.is_some());
    let lost = certain.filter(|added| !seen.contains(&added.payload));
    let lost: Vec<_> = lost.map(|added| added.payload).collect();
    match lost.is_empty() {
        true => Ok(()),
        false => Err(format!("{key}: acknowledged and lost: {lost:?}")),
    }
}

/// The first of some calls, in the order in which they took effect, that began after a later one
/// had ended.
pub fn out_of_time(calls: &[(Moment, Moment)]) -> Option<usize> {
    let mut first_end = Moment::MAX;
    for (at, (invoked, ended)) in calls.iter().enumerate().rev() {
        if *invoked > first_end {
            return Some(at);
        }
        first_end = first_end.min(*ended);
    }
    None
}

fn check_follower(number: u8, followed: &[Entry], entries: &[Entry]) -> Result<(), String> {
    if entries.starts_with(followed) {
        return Ok(());
    }
    let mut pairs = followed.iter().zip(entries);
    let at = pairs.position(|(one, other)| one != other).unwrap_or(0);
    Err(format!(
        "{}: a follower has read {:?} where {:?} stands",
        key(number),
        followed.get(at),
        entries.get(at)
    ))
}

fn check_deliveries(
    group: Group,
    ledgers: &[Ledger],
    state: &State,
    entries: &[Entry],
) -> Result<(), String> {
    let words = group.words();
    let delivered = ledgers.iter().flat_map(|ledger| &ledger.delivered);
    let mut delivered: Vec<&Delivered> = delivered.filter(|one| one.group == group).collect();
    delivered.sort_by_key(|one| one.entries.first().map(|(id, _)| *id));
    let mut next = 0;
    for Delivered { entries: given, .. } in &delivered {
        let first = given.first().map(|(id, _)| *id);
        let at = entries.partition_point(|(id, _)| Some(*id) < first);
        if at < next {
            return Err(format!(
                "{words}: {first:?} was delivered twice without a claim"
            ));
        }
        if !entries[at..].starts_with(given) {
            return Err(format!("{words}: {given:?} is no part of the stream"));
        }
        next = at + given.len();
    }
    let times: Vec<_> = delivered
        .iter()
        .map(|one| (one.invoked, one.ended))
        .collect();
    if let Some(at) = out_of_time(&times) {
        let given = &delivered[at].entries;
        return Err(format!("{words}: {given:?} came after later entries"));
    }
    let drained = &state.drained[&group];
    if next > entries.len() - drained.len() || !entries.ends_with(drained) {
        return Err(format!(
            "{words}: what was left is not the end: {drained:?}"
        ));
    }
    Ok(())
}

fn check_acknowledged(
    group: Group,
    ledgers: &[Ledger],
    state: &State,
    entries: &[Entry],
) -> Result<(), String> {
    let words = group.words();
    let pending = &state.pending[&group];
    let acknowledged = ledgers.iter().flat_map(|ledger| &ledger.acknowledged);
    let mut answers: BTreeMap<EntryId, Vec<Option<bool>>> = BTreeMap::new();
    for one in acknowledged.filter(|one| one.group == group) {
        answers.entry(one.id).or_default().push(one.answer);
    }
    let drained = &state.drained[&group];
    let mut known: BTreeMap<EntryId, u64> = drained.iter().map(|(id, _)| (*id, 1)).collect();
    let delivered = ledgers.iter().flat_map(|ledger| &ledger.delivered);
    let delivered = delivered.filter(|one| one.group == group);
    let delivered = delivered.flat_map(|one| &one.entries);
    let claimed = ledgers.iter().flat_map(|ledger| &ledger.claimed);
    let claimed = claimed.filter(|(of, _)| *of == group);
    for (id, _) in delivered.chain(claimed.map(|(_, entry)| entry)) {
        *known.entry(*id).or_default() += 1;
    }
    for (id, _) in entries {
        let answers = answers.get(id).map_or([].as_slice(), Vec::as_slice);
        let counted = answers
            .iter()
            .filter(|answer| **answer == Some(true))
            .count();
        let may_have_counted = counted > 0 || answers.contains(&None);
        if counted > 1 {
            return Err(format!("{words}: {id} was acknowledged {counted} times"));
        }
        if answers.contains(&Some(false)) && !may_have_counted {
            return Err(format!(
                "{words}: {id} was not pending when it was acknowledged"
            ));
        }
        match pending.get(id) {
            Some(_) if counted > 0 => {
                return Err(format!("{words}: {id} was acknowledged and is pending"));
            }
            Some(deliveries) if *deliveries < known.get(id).copied().unwrap_or(1) => {
                return Err(format!("{words}: {id} counts only {deliveries} deliveries"));
            }
            None if !may_have_counted => {
                return Err(format!("{words}: {id} is lost"));
            }
            _ => {}
        }
    }
    match pending
        .keys()
        .find(|id| !entries.iter().any(|(entry, _)| entry == *id))
    {
        Some(id) => Err(format!("{words}: {id} is pending and no entry")),
        None => Ok(()),
    }
}
