//! What the commands of the histories do, one after another.

use std::collections::{BTreeMap, BTreeSet};

use super::values::{ValueAsk, Values};

/// An element of a list (with score 0), or a member of the sorted set.
pub type Item = (u32, i64);

/// An end of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left, or lowest.
    Front,
    /// Right, or highest.
    Back,
}

/// The number of keys: two lists and the sorted set.
pub const KEYS: usize = 3;
/// The lists.
pub const LISTS: usize = 2;
/// The sorted set.
pub const SET: usize = 2;

/// An element of a list, and the place that its push found for it.
///
/// Elements are in the order of their places. On a cluster the place is found in the snapshot of
/// the push's transaction, so two pushes may find the same place. Then their order is random, and
/// elements of one push stay together (docs/understand/layout.md).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Placed {
    value: u32,
    index: i64,
    /// Distinguishes pushes.
    push: usize,
}

/// The content of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct State {
    lists: [Vec<Placed>; LISTS],
    /// By score.
    set: Vec<Item>,
    values: Values,
    /// The places that commands in progress may have found, by command number.
    found: BTreeMap<usize, BTreeSet<Vec<i64>>>,
    /// The lists as seen by commands in progress that use both.
    seen: BTreeMap<usize, Lists>,
}

/// For each list, the indexes that its elements had at various moments.
type Lists = [BTreeSet<Vec<i64>>; LISTS];

/// A command, without the syntax that it has for lists and for sorted sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Pushes values one after another to that side of a list.
    Push(usize, Side, Vec<u32>),
    /// Pushes a value to a list that is not empty.
    PushIfThere(usize, Side, u32),
    /// Pops up to that number of elements from the first key that has any.
    Pop(Vec<usize>, Side, usize),
    /// Moves one element from a list's side to another's.
    Move((usize, Side), (usize, Side)),
    /// Reads everything.
    Read(usize),
    Length(usize),
    /// The outermost element.
    Peek(usize, Side),
    /// Another value for the outermost element.
    Set(usize, Side, u32),
    /// Removes the outermost element without returning it.
    Trim(usize, Side),
    Delete(usize),
    /// Renames one list to the other.
    Rename(usize, usize),
    /// Replaces one list's elements with the other's.
    Copy(usize, usize),
    /// Adds a member, or gives it another score.
    Add(u32, i64),
    Increment(u32, i64),
    Remove(u32),
    Score(u32),
    /// A command on the string, the hash or the set.
    Value(ValueAsk),
    Transaction(Vec<Ask>),
    /// Part of a command: the key held exactly these elements, counted from that side, and perhaps
    /// some of the values that it need not have seen.
    Saw(usize, Side, Vec<Item>, Vec<u32>),
    /// Part of a command: these elements are first from that side, and are removed.
    Take(usize, Side, Vec<Item>),
    /// The command with that number, which found the places for its pushes earlier.
    Placed(usize, Box<Ask>),
}

/// A reply, without its syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Integer(i64),
    Items(Vec<Item>),
    /// The key that it popped from, if any.
    Popped(Option<usize>, Vec<Item>),
    Number(Option<i64>),
    Done,
    NoSuchKey,
    All(Vec<Reply>),
}

/// What is known to be exact on a store (docs/understand/semantics.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exactness {
    /// A push answers the length at its moment.
    pub lengths_are_exact: bool,
    /// Whether a pop takes as many elements as there are at its moment.
    pub pops_are_exact: bool,
    /// Whether a push finds its place at its moment.
    pub places_are_exact: bool,
}

impl Exactness {
    /// Of a store with a single writer.
    pub const ALL: Self = Self {
        lengths_are_exact: true,
        pops_are_exact: true,
        places_are_exact: true,
    };

    /// Of several servers on a cluster.
    pub const CLUSTER: Self = Self {
        lengths_are_exact: false,
        pops_are_exact: false,
        places_are_exact: false,
    };
}

/// The possible outcomes of a command: states, each with the reply. Empty if it cannot have
/// happened here.
pub fn outcomes(ask: &Ask, state: &State, exactness: Exactness) -> Vec<(State, Reply)> {
    let Ask::Placed(number, ask) = ask else {
        let ways = Way::new(state, exactness).go(ask);
        return ways
            .into_iter()
            .map(|(way, reply)| (way.state, reply))
            .collect();
    };
    let mut state = state.clone();
    state.seen.remove(number);
    let found = state.found.remove(number).unwrap_or_default().into_iter();
    let ways = found.flat_map(|places| {
        let mut way = Way::new(&state, exactness);
        way.number = *number;
        way.found = Some(places);
        way.go(ask)
    });
    ways.filter(|(way, _)| way.has_used_its_places())
        .map(|(way, reply)| (way.state, reply))
        .collect()
}

/// A command in progress may find the places for what it will push.
///
/// It sees the lists as they were at the beginning of its transaction, including changes by others
/// of the same batch so far, which take effect together with it. So it may see one list at one
/// moment and the other at another, when a push of its batch has filled it.
pub fn find_places(ask: &Ask, state: &mut State, exactness: Exactness) {
    let Ask::Placed(number, ask) = ask else {
        return;
    };
    let mut places = BTreeSet::new();
    if takes_part_in_both_lists(ask) {
        let mut seen = state.seen.remove(number).unwrap_or_default();
        let mut is_new = false;
        for (seen, list) in seen.iter_mut().zip(&state.lists) {
            is_new |= seen.insert(list.iter().map(|placed| placed.index).collect());
        }
        let [first, second] = &seen;
        let pairs = first
            .iter()
            .flat_map(|one| second.iter().map(move |other| [one, other]));
        for lists in pairs.filter(|_| is_new) {
            let state = State {
                lists: lists.map(|indices| placed_at(indices)),
                set: state.set.clone(),
                ..State::default()
            };
            places.extend(places_in(ask, &state, exactness));
        }
        state.seen.insert(*number, seen);
    } else {
        places.extend(places_in(ask, state, exactness));
    }
    state.found.entry(*number).or_default().extend(places);
}

/// The places that the pushes of a command find if it sees that state.
fn places_in(ask: &Ask, state: &State, exactness: Exactness) -> Option<Vec<i64>> {
    let ways = Way::new(state, exactness).go(ask);
    ways.into_iter().next().map(|(way, _)| way.places)
}

/// Elements at these indexes. Their values do not matter to pushes.
fn placed_at(indices: &[i64]) -> Vec<Placed> {
    let placed = indices.iter().map(|index| Placed {
        value: 0,
        index: *index,
        push: 0,
    });
    placed.collect()
}

fn takes_part_in_both_lists(ask: &Ask) -> bool {
    let mut lists = BTreeSet::new();
    add_keys(ask, &mut lists);
    (0..LISTS).all(|list| lists.contains(&list))
}

fn add_keys(ask: &Ask, keys: &mut BTreeSet<usize>) {
    match ask {
        Ask::Push(key, ..)
        | Ask::PushIfThere(key, ..)
        | Ask::Read(key)
        | Ask::Length(key)
        | Ask::Peek(key, _)
        | Ask::Set(key, ..)
        | Ask::Trim(key, _)
        | Ask::Delete(key)
        | Ask::Saw(key, ..)
        | Ask::Take(key, ..) => drop(keys.insert(*key)),
        Ask::Pop(several, ..) => keys.extend(several),
        Ask::Move((from, _), (to, _)) | Ask::Rename(from, to) | Ask::Copy(from, to) => {
            keys.extend([from, to]);
        }
        Ask::Add(..) | Ask::Increment(..) | Ask::Remove(_) | Ask::Score(_) | Ask::Value(_) => {}
        Ask::Transaction(asks) => asks.iter().for_each(|ask| add_keys(ask, keys)),
        Ask::Placed(_, ask) => add_keys(ask, keys),
    }
}

/// One possible course of a command.
#[derive(Clone)]
struct Way {
    state: State,
    exactness: Exactness,
    number: usize,
    /// The places to push to, in order, if they were found earlier.
    found: Option<Vec<i64>>,
    /// The places that were pushed to.
    places: Vec<i64>,
}

impl Way {
    fn new(state: &State, exactness: Exactness) -> Self {
        Self {
            state: state.clone(),
            exactness,
            number: 0,
            found: None,
            places: Vec::new(),
        }
    }

    fn has_used_its_places(&self) -> bool {
        self.found
            .as_ref()
            .is_none_or(|found| *found == self.places)
    }

    fn go(mut self, ask: &Ask) -> Vec<(Self, Reply)> {
        let reply = match ask {
            Ask::Push(key, side, values) => {
                let ways = self.push(*key, *side, values).into_iter();
                let replied = ways.map(|way| {
                    let reply = Reply::Integer(way.length(*key));
                    (way, reply)
                });
                return replied.collect();
            }
            Ask::PushIfThere(key, side, value) => {
                if self.length(*key) > 0 {
                    return self.go(&Ask::Push(*key, *side, vec![*value]));
                }
                Reply::Integer(0)
            }
            Ask::Pop(keys, side, count) => return self.pop(keys, *side, *count),
            Ask::Move((from, from_side), (to, to_side)) => {
                let moved = self.take(*from, *from_side, 1);
                let Some((value, _)) = moved.first() else {
                    return vec![(self, Reply::Items(moved))];
                };
                let ways = self.push(*to, *to_side, &[*value]).into_iter();
                return ways.map(|way| (way, Reply::Items(moved.clone()))).collect();
            }
            Ask::Read(key) => Reply::Items(self.items(*key)),
            Ask::Length(key) => Reply::Integer(self.length(*key)),
            Ask::Peek(key, side) => Reply::Items(self.clone().take(*key, *side, 1)),
            Ask::Set(key, side, value) => {
                let list = &mut self.state.lists[*key];
                let outermost = match side {
                    Side::Front => list.first_mut(),
                    Side::Back => list.last_mut(),
                };
                match outermost {
                    Some(placed) => {
                        placed.value = *value;
                        Reply::Done
                    }
                    None => Reply::NoSuchKey,
                }
            }
            Ask::Trim(key, side) => {
                self.take(*key, *side, 1);
                Reply::Done
            }
            Ask::Rename(from, _) if self.length(*from) == 0 => Reply::NoSuchKey,
            Ask::Rename(from, to) => {
                self.state.lists[*to] = std::mem::take(&mut self.state.lists[*from]);
                Reply::Done
            }
            Ask::Copy(from, _) if self.length(*from) == 0 => Reply::Integer(0),
            Ask::Copy(from, to) => {
                self.state.lists[*to] = self.state.lists[*from].clone();
                Reply::Integer(1)
            }
            Ask::Delete(key) => {
                let taken = self.take(*key, Side::Front, usize::MAX);
                Reply::Integer((!taken.is_empty()).into())
            }
            Ask::Add(member, score) => {
                let before = set_score(&mut self.state.set, *member, Some(*score));
                Reply::Integer(before.is_none().into())
            }
            Ask::Increment(member, by) => {
                let score = score(&self.state.set, *member).unwrap_or(0) + by;
                set_score(&mut self.state.set, *member, Some(score));
                Reply::Number(Some(score))
            }
            Ask::Remove(member) => {
                let before = set_score(&mut self.state.set, *member, None);
                Reply::Integer(before.is_some().into())
            }
            Ask::Score(member) => Reply::Number(score(&self.state.set, *member)),
            Ask::Value(ask) => {
                let outcomes = self.state.values.outcomes(ask).into_iter();
                let ways = outcomes.map(|(values, reply)| {
                    let mut way = self.clone();
                    way.state.values = values;
                    (way, reply)
                });
                return ways.collect();
            }
            Ask::Transaction(asks) => return self.transaction(asks),
            Ask::Saw(key, side, items, others) => {
                let mut seen = self.clone().take(*key, *side, usize::MAX);
                seen.retain(|item| items.contains(item) || !others.contains(&item.0));
                if seen != *items {
                    return Vec::new();
                }
                Reply::All(Vec::new())
            }
            Ask::Take(key, side, items) => {
                if self.take(*key, *side, items.len()) != *items {
                    return Vec::new();
                }
                Reply::All(Vec::new())
            }
            Ask::Placed(_, ask) => return self.go(ask),
        };
        vec![(self, reply)]
    }

    /// A transaction in which everything that is read is current when it takes effect.
    fn transaction(self, asks: &[Ask]) -> Vec<(Self, Reply)> {
        let exactness = self.exactness;
        let mut ways = vec![(self, Vec::new())];
        for ask in asks {
            let mut longer = Vec::new();
            for (mut way, replies) in ways {
                way.exactness.pops_are_exact = true;
                for (way, reply) in way.go(ask) {
                    let mut replies: Vec<Reply> = replies.clone();
                    replies.push(reply);
                    longer.push((way, replies));
                }
            }
            ways = longer;
        }
        let ways = ways.into_iter().map(|(mut way, replies)| {
            way.exactness = exactness;
            (way, Reply::All(replies))
        });
        ways.collect()
    }

    fn pop(self, keys: &[usize], side: Side, count: usize) -> Vec<(Self, Reply)> {
        let is_exact = self.exactness.pops_are_exact;
        let mut ways = Vec::new();
        for key in keys.iter().filter(|key| self.length(**key) > 0) {
            let most = count.min(self.items(*key).len());
            // As many as it saw earlier, if that is allowed.
            let fewest = if is_exact { most } else { 1 };
            for count in fewest..=most {
                let mut way = self.clone();
                let items = way.take(*key, side, count);
                ways.push((way, Reply::Popped(Some(*key), items)));
            }
            if is_exact {
                break;
            }
        }
        if ways.is_empty() {
            ways.push((self, Reply::Popped(None, Vec::new())));
        }
        ways
    }

    fn items(&self, key: usize) -> Vec<Item> {
        match self.state.lists.get(key) {
            Some(list) => list.iter().map(|placed| (placed.value, 0)).collect(),
            None => self.state.set.clone(),
        }
    }

    fn length(&self, key: usize) -> i64 {
        self.items(key).len() as i64
    }

    fn take(&mut self, key: usize, side: Side, count: usize) -> Vec<Item> {
        let mut items = self.items(key);
        let count = count.min(items.len());
        let range = match side {
            Side::Front => 0..count,
            Side::Back => items.len() - count..items.len(),
        };
        match self.state.lists.get_mut(key) {
            Some(list) => drop(list.drain(range.clone())),
            None => drop(self.state.set.drain(range.clone())),
        }
        let mut taken: Vec<Item> = items.drain(range).collect();
        if side == Side::Back {
            taken.reverse();
        }
        taken
    }

    fn push(self, key: usize, side: Side, values: &[u32]) -> Vec<Self> {
        let list = &self.state.lists[key];
        let found = self
            .found
            .as_ref()
            .map(|found| found.get(self.places.len()));
        let index = match (found, side) {
            (Some(Some(index)), _) => *index,
            // It would take another course than the one for which it found its places.
            (Some(None), _) => return Vec::new(),
            (None, Side::Front) => list.first().map_or(0, |first| first.index) - 1,
            (None, Side::Back) => list.last().map_or(-1, |last| last.index) + 1,
        };
        let push = self.number * 8 + self.places.len() + 1;
        let mut placed: Vec<Placed> = values
            .iter()
            .map(|value| Placed {
                value: *value,
                index,
                push,
            })
            .collect();
        if side == Side::Front {
            placed.reverse();
        }
        let first = list.partition_point(|placed| placed.index < index);
        let last = list.partition_point(|placed| placed.index <= index);
        let is_between_pushes =
            |at: &usize| *at == first || *at == last || list[*at - 1].push != list[*at].push;
        (first..=last)
            .filter(is_between_pushes)
            .map(|at| {
                let mut way = self.clone();
                way.places.push(index);
                way.state.lists[key].splice(at..at, placed.iter().cloned());
                if way.exactness.places_are_exact {
                    way.forget_places(key);
                }
                way
            })
            .collect()
    }

    /// If no two commands find the same place, only the order counts.
    fn forget_places(&mut self, key: usize) {
        for (index, placed) in self.state.lists[key].iter_mut().enumerate() {
            placed.index = index as i64;
            placed.push = 0;
        }
    }
}

/// Whether the command can have had this reply.
pub fn is_reply(ask: &Ask, possible: &Reply, had: &Reply, exactness: Exactness) -> bool {
    match (ask, possible, had) {
        (Ask::Push(..), _, Reply::Integer(_)) if !exactness.lengths_are_exact => true,
        (Ask::PushIfThere(..), Reply::Integer(possible), Reply::Integer(had))
            if !exactness.lengths_are_exact =>
        {
            (*possible == 0) == (*had == 0)
        }
        (Ask::Placed(_, ask), possible, had) => is_reply(ask, possible, had, exactness),
        (Ask::Transaction(asks), Reply::All(possible), Reply::All(had)) => {
            possible.len() == had.len()
                && asks
                    .iter()
                    .zip(possible.iter().zip(had))
                    .all(|(ask, (possible, had))| is_reply(ask, possible, had, exactness))
        }
        _ => possible == had,
    }
}

fn score(set: &[Item], member: u32) -> Option<i64> {
    set.iter().find(|item| item.0 == member).map(|item| item.1)
}

/// Answers the score before.
fn set_score(set: &mut Vec<Item>, member: u32, score: Option<i64>) -> Option<i64> {
    let before = self::score(set, member);
    set.retain(|item| item.0 != member);
    if let Some(score) = score {
        set.push((member, score));
        set.sort_by_key(|(member, score)| (*score, *member));
    }
    before
}
