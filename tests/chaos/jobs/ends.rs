//! The state of an entry in a group: it is pending, acknowledged, a dead letter, or not yet
//! delivered. Exactly one of these.

use std::collections::{BTreeMap, BTreeSet};

use super::deliveries::Deliveries;
use super::state::State;
use super::{Act, Group, Ledger, References, TRIES, Verb, key};
use crate::history::Payload;
use crate::streams::EntryId;

/// What was done to the entries of a stream.
pub struct Deletions<'l> {
    by_entry: BTreeMap<EntryId, Vec<&'l Act>>,
}

impl<'l> Deletions<'l> {
    pub fn of(stream: u8, ledgers: &'l [Ledger]) -> Self {
        let mut by_entry: BTreeMap<EntryId, Vec<&Act>> = BTreeMap::new();
        let acts = ledgers.iter().flat_map(|ledger| &ledger.acts);
        for act in acts.filter(|act| act.group.stream == stream && act.deletes().is_some()) {
            by_entry.entry(act.id).or_default().push(act);
        }
        Self { by_entry }
    }

    fn of_entry(&self, id: EntryId) -> &[&'l Act] {
        self.by_entry.get(&id).map_or([].as_slice(), Vec::as_slice)
    }

    /// Whether somebody may have deleted it.
    pub fn may_be_gone(&self, id: EntryId) -> bool {
        self.of_entry(id).iter().any(|act| act.may_have_worked())
    }

    /// Whether it must be gone. 1 means that an entry was deleted.
    pub fn is_gone(&self, id: EntryId) -> bool {
        let deleted = |act: &&Act| act.answer.is_some_and(|(answer, _)| answer == 1);
        self.of_entry(id).iter().any(deleted)
    }

    /// How many XDELEX say that they have deleted it.
    pub fn deleted_by_id(&self, id: EntryId) -> usize {
        let deleted = |act: &&&Act| {
            matches!(act.verb, Verb::Delete(_)) && act.answer.is_some_and(|(answer, _)| answer == 1)
        };
        self.of_entry(id).iter().filter(deleted).count()
    }

    /// Whether it may have been deleted though groups still needed it.
    fn may_be_torn_away(&self, id: EntryId) -> bool {
        let tears =
            |act: &&&Act| act.may_have_worked() && act.deletes() != Some(References::Acknowledged);
        self.of_entry(id).iter().find(tears).is_some()
    }

    /// Whether groups must have forgotten it.
    fn is_forgotten(&self, id: EntryId) -> bool {
        let forgets = |act: &&&Act| {
            act.deletes() == Some(References::Delete)
                && act.answer.is_some_and(|(answer, _)| answer == 1)
        };
        self.of_entry(id).iter().find(forgets).is_some()
    }
}

/// A group's final knowledge of entries.
pub struct Ends<'s> {
    group: Group,
    in_stream: BTreeSet<EntryId>,
    pending: &'s BTreeMap<EntryId, u64>,
    drained: BTreeSet<EntryId>,
    /// With the number of deliveries and the payload.
    dead: BTreeMap<EntryId, (u64, Payload)>,
    dead_at_last: BTreeSet<EntryId>,
    answers: BTreeMap<EntryId, Vec<Option<i64>>>,
}

impl<'s> Ends<'s> {
    pub fn of(group: Group, ledgers: &[Ledger], state: &'s State) -> Result<Self, String> {
        let stream = usize::from(group.stream);
        let name = format!("g{}", group.number);
        let of_group = |letter: &&super::state::DeadLetter| letter.group == name;
        let mut dead = BTreeMap::new();
        for letter in state.dead[stream].iter().filter(of_group) {
            if letter.stream != key(group.stream) || !group.has_dead_letters() {
                return Err(format!(
                    "{}: a wrong dead letter: {letter:?}",
                    group.words()
                ));
            }
            dead.insert(letter.id, (letter.deliveries, letter.payload));
        }
        let mut answers: BTreeMap<EntryId, Vec<Option<i64>>> = BTreeMap::new();
        let acts = ledgers.iter().flat_map(|ledger| &ledger.acts);
        for act in acts.filter(|act| act.group == group && act.acknowledges()) {
            let answer = act.answer.map(|(answer, _)| answer);
            answers.entry(act.id).or_default().push(answer);
        }
        Ok(Self {
            group,
            in_stream: state.streams[stream].iter().map(|(id, _)| *id).collect(),
            pending: &state.pending[&group],
            drained: state.drained[&group].iter().map(|(id, _)| *id).collect(),
            dead,
            dead_at_last: state.dead_at_last[stream]
                .iter()
                .filter(of_group)
                .map(|letter| letter.id)
                .collect(),
            answers,
        })
    }

    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    /// Checks one entry that was certainly added.
    pub fn check_entry(
        &self,
        id: EntryId,
        payload: Payload,
        deliveries: &Deliveries<'_>,
        deletions: &Deletions<'_>,
    ) -> Result<(), String> {
        let words = self.group.words();
        let wrong = |what: &str| Err(format!("{words}: {id} {what}"));
        let answers = self.answers.get(&id).map_or([].as_slice(), Vec::as_slice);
        let worked = |answer: &&Option<i64>| answer.is_some_and(|answer| answer > 0);
        let acknowledged = answers.iter().filter(worked).count();
        let may_be_acknowledged = acknowledged > 0 || answers.contains(&None);
        let (pending, dead) = (self.pending.get(&id), self.dead.get(&id));
        let is_torn = !self.in_stream.contains(&id) && deletions.may_be_torn_away(id);
        if acknowledged > 1 {
            return wrong("was acknowledged more than once");
        }
        if pending.is_some() && dead.is_some() {
            return wrong("is pending and a dead letter");
        }
        if acknowledged > 0 && (pending.is_some() || dead.is_some()) {
            return wrong("was acknowledged, and is pending or a dead letter");
        }
        if pending.is_none() && dead.is_none() && !may_be_acknowledged && !is_torn {
            return wrong("is lost");
        }
        let refused = answers.iter().flatten().any(|answer| *answer <= 0);
        if refused && !may_be_acknowledged && dead.is_none() && !deletions.may_be_torn_away(id) {
            return wrong("was not pending when it was acknowledged");
        }
        if pending.is_some() && deletions.is_forgotten(id) {
            return wrong("is pending, and was deleted with DELREF");
        }
        if pending.is_some() && !self.in_stream.contains(&id) && !is_torn {
            return wrong("was deleted while it was pending");
        }
        if let Some((_, found)) = dead
            && *found != payload
        {
            return wrong("is another entry as a dead letter");
        }
        self.check_counts(id, deliveries)
    }

    fn check_counts(&self, id: EntryId, deliveries: &Deliveries<'_>) -> Result<(), String> {
        let words = self.group.words();
        let wrong = |what: String| Err(format!("{words}: {id} {what}"));
        let (pending, dead) = (self.pending.get(&id), self.dead.get(&id));
        let known = deliveries.known(id);
        if self.drained.contains(&id) {
            if deliveries.last() >= Some(id) {
                return wrong("was left, and later entries were delivered".to_owned());
            }
            return match pending {
                Some(1) => Ok(()),
                count => wrong(format!("was delivered once, and counts {count:?}")),
            };
        }
        let counted = pending.or(dead.map(|(count, _)| count)).copied();
        if let Some(counted) = counted
            && deliveries.is_counted(id)
        {
            if counted < known {
                return wrong(format!("counts {counted} of {known} deliveries"));
            }
            if dead.is_some() && !(TRIES[0]..=TRIES[1]).contains(&counted) {
                return wrong(format!("became a dead letter after {counted} deliveries"));
            }
        }
        let must_be_dead = self.dead.contains_key(&id)
            || (self.group.has_dead_letters() && pending.is_some() && self.in_stream.contains(&id));
        match must_be_dead == self.dead_at_last.contains(&id) {
            true => Ok(()),
            false if must_be_dead => wrong("did not become a dead letter".to_owned()),
            false => wrong("became a dead letter from nowhere".to_owned()),
        }
    }

    /// A pending entry must exist, or have existed.
    pub fn check_pending(&self, deletions: &Deletions<'_>) -> Result<(), String> {
        let is_known = |id: &&EntryId| self.in_stream.contains(id) || deletions.may_be_gone(**id);
        match self.pending.keys().find(|id| !is_known(id)) {
            None => Ok(()),
            Some(id) => Err(format!(
                "{}: {id} is pending and no entry",
                self.group.words()
            )),
        }
    }
}
