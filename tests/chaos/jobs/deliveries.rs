//! What was delivered, and when.
//!
//! *New entries* of a group come once, in the order of their ids and of time, after the entries
//! that a reply hands out again. *Deliveries* of an entry are counted without a visible gap: no
//! number is repeated, and greater numbers come later. Two deliveries are at least the policy's
//! time apart, unless the entry was given back in between.

use std::collections::{BTreeMap, BTreeSet};

use super::{Act, Delivered, Group, Ledger, MIN_IDLE_MS, TRIES, Verb};
use crate::history::Moment;
use crate::streams::{EntryId, out_of_time};

/// Milliseconds of imprecision in reading servers' clocks.
const TICK_MS: u64 = 2;

/// One delivery of an entry.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    count: Option<u64>,
    invoked: Moment,
    ended: Moment,
}

/// What is known about a group's deliveries.
pub struct Deliveries<'l> {
    group: Group,
    delivered: Vec<&'l Delivered>,
    by_entry: BTreeMap<EntryId, Vec<Delivery>>,
    /// Entries that may have been given back.
    released: BTreeMap<EntryId, Vec<&'l Act>>,
    /// Entries whose number of deliveries XNACK may have changed.
    recounted: BTreeSet<EntryId>,
}

impl<'l> Deliveries<'l> {
    pub fn of(group: Group, ledgers: &'l [Ledger]) -> Self {
        let delivered = ledgers.iter().flat_map(|ledger| &ledger.delivered);
        let mut deliveries = Self {
            group,
            delivered: delivered.filter(|one| one.group == group).collect(),
            by_entry: BTreeMap::new(),
            released: BTreeMap::new(),
            recounted: BTreeSet::new(),
        };
        for one in &deliveries.delivered {
            for ((id, _), count) in &one.entries {
                let of_entry = deliveries.by_entry.entry(*id).or_default();
                of_entry.push(Delivery {
                    count: *count,
                    invoked: one.invoked,
                    ended: one.ended,
                });
            }
        }
        let acts = ledgers.iter().flat_map(|ledger| &ledger.acts);
        for act in acts.filter(|act| act.group == group && act.may_have_worked()) {
            if let Verb::Release(recounts) = act.verb {
                deliveries.released.entry(act.id).or_default().push(act);
                if recounts {
                    deliveries.recounted.insert(act.id);
                }
            }
        }
        deliveries
    }

    /// How many deliveries of an entry were answered.
    pub fn known(&self, id: EntryId) -> u64 {
        self.by_entry.get(&id).map_or(0, |found| found.len() as u64)
    }

    /// Whether the number of deliveries of an entry says how often it was delivered.
    pub fn is_counted(&self, id: EntryId) -> bool {
        !self.recounted.contains(&id)
    }

    /// How many deliveries were reported, and for how many entries there were several.
    pub fn told(&self) -> (usize, usize) {
        let all = self.by_entry.values().map(Vec::len);
        let again = self.by_entry.values().map(|found| found.len() - 1);
        (all.sum(), again.sum())
    }

    /// The greatest id that was delivered.
    pub fn last(&self) -> Option<EntryId> {
        self.by_entry.keys().next_back().copied()
    }

    pub fn check(&self) -> Result<(), String> {
        for one in &self.delivered {
            self.check_reply(one)?;
        }
        self.check_new()?;
        self.by_entry
            .iter()
            .try_for_each(|(id, deliveries)| self.check_entry(*id, deliveries))
    }

    /// Whether an entry was certainly delivered for the first time.
    fn is_new(&self, id: EntryId, count: Option<u64>) -> bool {
        count == Some(1) && self.is_counted(id)
    }

    fn check_reply(&self, one: &Delivered) -> Result<(), String> {
        let words = self.group.words();
        let mut last_new = None;
        for ((id, _), count) in &one.entries {
            if self.is_new(*id, *count) {
                if last_new >= Some(*id) {
                    return Err(format!(
                        "{words}: {id} came after {last_new:?} in one reply"
                    ));
                }
                last_new = Some(*id);
            } else if last_new.is_some() && *count > Some(1) && self.is_counted(*id) {
                return Err(format!(
                    "{words}: {id} was handed out again after the new {last_new:?} in one reply"
                ));
            }
        }
        Ok(())
    }

    fn check_new(&self) -> Result<(), String> {
        let (mut ids, mut times) = (Vec::new(), Vec::new());
        for (id, deliveries) in &self.by_entry {
            let new = |one: &&Delivery| self.is_new(*id, one.count);
            if let Some(one) = deliveries.iter().find(new) {
                ids.push(*id);
                times.push((one.invoked, one.ended));
            }
        }
        match out_of_time(&times) {
            None => Ok(()),
            Some(at) => Err(format!(
                "{}: {} was new after later entries",
                self.group.words(),
                ids[at]
            )),
        }
    }

    fn check_entry(&self, id: EntryId, deliveries: &[Delivery]) -> Result<(), String> {
        let words = self.group.words();
        if self.is_counted(id) {
            let counted = deliveries.iter().filter(|one| one.count.is_some());
            let mut counted: Vec<&Delivery> = counted.collect();
            counted.sort_by_key(|one| one.count);
            let mut pairs = counted.iter().zip(counted.iter().skip(1));
            if let Some((one, _)) = pairs.find(|(one, other)| one.count == other.count) {
                let count = one.count.unwrap_or_default();
                return Err(format!("{words}: delivery {count} of {id} came twice"));
            }
            let times: Vec<_> = counted.iter().map(|one| (one.invoked, one.ended)).collect();
            if out_of_time(&times).is_some() {
                return Err(format!("{words}: deliveries of {id} are counted backwards"));
            }
            if self.group.has_dead_letters() && deliveries.len() as u64 > TRIES[1] {
                let count = deliveries.len();
                return Err(format!("{words}: {id} was delivered {count} times"));
            }
        }
        let apart = (MIN_IDLE_MS - TICK_MS) * 1_000_000;
        for (at, one) in deliveries.iter().enumerate() {
            for other in deliveries.iter().skip(at + 1) {
                let from = one.invoked.min(other.invoked);
                let until = one.ended.max(other.ended);
                let is_between = |act: &&&Act| {
                    let ended = act.answer.map_or(Moment::MAX, |(_, ended)| ended);
                    act.invoked < until && ended > from
                };
                let released = self.released.get(&id).map_or([].as_slice(), Vec::as_slice);
                if until - from < apart && !released.iter().any(|act| is_between(&act)) {
                    return Err(format!("{words}: {id} was delivered twice at once"));
                }
            }
        }
        Ok(())
    }
}
