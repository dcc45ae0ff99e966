//! A history of a few clients, and whether it can be put in an order.

use std::collections::HashMap;
use std::fmt;

use super::checker::{self, Operation, Verdict};
use super::model::{Ask, Exactness, Item, Reply, Side, State, find_places, is_reply, outcomes};
use crate::history::Moment;

/// Configurations that are tried before a search is given up.
const TRIES_MAX: usize = 100_000;

/// A command and its outcome. Refused commands are left out.
#[derive(Clone)]
pub struct Record {
    pub client: usize,
    pub invoked: Moment,
    pub ended: Option<Moment>,
    pub ask: Ask,
    pub reply: Option<Reply>,
    /// The number of the client's pipeline in which it was sent, if any. Commands of a pipeline
    /// take effect in the order of their records.
    pub pipeline: Option<u64>,
}

impl Record {
    /// A command whose result is unknown, or not known yet.
    pub fn sent(client: usize, invoked: Moment, ask: Ask, pipeline: Option<u64>) -> Self {
        Self {
            client,
            invoked,
            ended: None,
            ask,
            reply: None,
            pipeline,
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |moment: Moment| moment as f64 / 1e6;
        write!(out, "client {} {:.3}", self.client, ms(self.invoked))?;
        if let Some(number) = self.pipeline {
            write!(out, " (pipeline {number})")?;
        }
        match (self.ended, &self.reply) {
            (Some(ended), Some(reply)) => {
                write!(out, "..{:.3} {:?} -> {reply:?}", ms(ended), self.ask)
            }
            _ => write!(out, ".. {:?} -> unknown", self.ask),
        }
    }
}

/// A record, or part of one.
struct Step {
    record: Record,
    behind: Option<usize>,
    exactness: Exactness,
}

impl Operation for Step {
    type State = State;

    fn invoked(&self) -> Moment {
        self.record.invoked
    }

    fn ended(&self) -> Option<Moment> {
        self.record.ended
    }

    fn behind(&self) -> Option<usize> {
        self.behind
    }

    fn observe(&self, state: &mut State) {
        find_places(&self.record.ask, state, self.exactness);
    }

    fn successors(&self, state: &State) -> Vec<State> {
        let Record { ask, reply, .. } = &self.record;
        let had = |possible: &Reply| {
            reply
                .as_ref()
                .is_none_or(|had| is_reply(ask, possible, had, self.exactness))
        };
        outcomes(ask, state, self.exactness)
            .into_iter()
            .filter(|(_, possible)| had(possible))
            .map(|(next, _)| next)
            .collect()
    }
}

/// Whether some order of the commands, on keys that were initially empty, explains all replies.
pub fn check(records: &[Record], exactness: Exactness) -> Verdict {
    let mut steps = Vec::new();
    // The last step of each pipeline with a reply. A step without one may take effect later, or
    // never, and does not hold up later ones.
    let mut in_front: HashMap<u64, usize> = HashMap::new();
    for record in records {
        let mut behind = record
            .pipeline
            .and_then(|number| in_front.get(&number).copied());
        let late = || put_since(records, record.invoked);
        for (ask, is_part) in parts(record, exactness, steps.len(), late) {
            let mut record = record.clone();
            record.ask = ask;
            if is_part && record.ended.is_some() {
                record.reply = Some(Reply::All(Vec::new()));
            }
            steps.push(Step {
                record,
                behind,
                exactness,
            });
            behind = Some(steps.len() - 1);
        }
        if let (Some(number), Some(_), Some(last)) = (record.pipeline, record.ended, behind) {
            in_front.insert(number, last);
        }
    }
    checker::check(&steps, State::default(), TRIES_MAX)
}

/// A command's parts, which take effect one after another, and whether the reply says nothing more
/// about each part.
fn parts(
    record: &Record,
    exactness: Exactness,
    number: usize,
    late: impl Fn() -> Vec<u32>,
) -> Vec<(Ask, bool)> {
    match (&record.ask, &record.reply) {
        (Ask::Pop(keys, side, count), Some(Reply::Popped(from, items)))
            if !exactness.pops_are_exact =>
        {
            parts_of_pop(keys, *side, *count, (*from, items), &late())
        }
        // Others may push between finding the place and the push (docs/understand/semantics.md).
        (ask, _) if !exactness.places_are_exact && pushes(ask) => {
            vec![(Ask::Placed(number, Box::new(ask.clone())), false)]
        }
        (ask, _) => vec![(ask.clone(), false)],
    }
}

fn pushes(ask: &Ask) -> bool {
    match ask {
        Ask::Push(..) | Ask::PushIfThere(..) | Ask::Move(..) => true,
        Ask::Transaction(asks) => asks.iter().any(pushes),
        _ => false,
    }
}

/// If a pop found fewer elements than requested, or skipped an empty key, it saw that earlier than
/// it took its elements, or than others of its batch took theirs. It did not see what was added in
/// between (docs/understand/semantics.md).
fn parts_of_pop(
    keys: &[usize],
    side: Side,
    count: usize,
    (from, items): (Option<usize>, &[Item]),
    late: &[u32],
) -> Vec<(Ask, bool)> {
    let saw = |key, items: &[Item]| (Ask::Saw(key, side, items.to_vec(), late.to_vec()), true);
    let passed = keys.iter().take_while(|key| Some(**key) != from);
    let mut parts: Vec<(Ask, bool)> = passed.map(|key| saw(*key, &[])).collect();
    let Some(from) = from else {
        return parts;
    };
    if items.len() < count {
        parts.push(saw(from, items));
    }
    parts.push((Ask::Take(from, side, items.to_vec()), true));
    parts
}

/// Values added by commands that had not ended at a moment.
fn put_since(records: &[Record], moment: Moment) -> Vec<u32> {
    let is_late = |record: &&Record| record.ended.is_none_or(|ended| ended > moment);
    let late = records.iter().filter(is_late);
    late.flat_map(|record| values_of(&record.ask)).collect()
}

fn values_of(ask: &Ask) -> Vec<u32> {
    match ask {
        Ask::Push(_, _, values) => values.clone(),
        Ask::PushIfThere(_, _, value) | Ask::Set(_, _, value) => vec![*value],
        Ask::Add(member, _) | Ask::Increment(member, _) => vec![*member],
        Ask::Transaction(asks) => asks.iter().flat_map(values_of).collect(),
        _ => Vec::new(),
    }
}

/// A history for people to read.
pub fn show(records: &[Record]) -> String {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.invoked);
    let lines: Vec<String> = records.iter().map(|record| format!("{record:?}")).collect();
    lines.join("\n")
}
