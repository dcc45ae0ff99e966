//! What the commands of the histories do, one after the other.

/// An element of a list (with score 0), or a member of the sorted set.
pub type Item = (u32, i64);

/// Which end of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left, or lowest.
    Front,
    /// Right, or highest.
    Back,
}

/// How many keys there are: two lists and the sorted set.
pub const KEYS: usize = 3;
/// The lists.
pub const LISTS: usize = 2;
/// The sorted set.
pub const SET: usize = 2;

/// The keys' contents, from front to back.
pub type State = [Vec<Item>; KEYS];

/// A command, without the syntax that it has for lists and for sorted sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Values one after the other to that side of a list.
    Push(usize, Side, Vec<u32>),
    /// A value to a list that is not empty.
    PushIfThere(usize, Side, u32),
    /// Up to so many of the first key that has any.
    Pop(Vec<usize>, Side, usize),
    /// One element from a list's side to another's.
    Move((usize, Side), (usize, Side)),
    /// All that there is.
    Read(usize),
    Length(usize),
    Delete(usize),
    /// Adds a member, or gives it another score.
    Add(u32, i64),
    Increment(u32, i64),
    Remove(u32),
    Score(u32),
    Transaction(Vec<Ask>),
    /// Part of a command: the key held exactly these, counted from that side.
    Saw(usize, Side, Vec<Item>),
    /// Part of a command: these come first from that side, and are taken away.
    Take(usize, Side, Vec<Item>),
}

/// A reply, without its syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Integer(i64),
    Items(Vec<Item>),
    /// From which key, if from any.
    Popped(Option<usize>, Vec<Item>),
    Score(Option<i64>),
    All(Vec<Reply>),
}

/// What is known to be exact on this store (docs/durability.md, "Order").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exactness {
    /// A push answers the length at its moment, and a pop of several takes as many as there are
    /// at its moment.
    pub is_exact: bool,
}

/// What a command can come to: states with the reply that goes with each. None: it cannot have
/// happened here.
pub fn outcomes(ask: &Ask, state: &State, exactness: Exactness) -> Vec<(State, Reply)> {
    let mut next = state.clone();
    let reply = match ask {
        Ask::Push(key, side, values) => {
            for value in values {
                put(&mut next[*key], *side, (*value, 0));
            }
            length(&next[*key])
        }
        Ask::PushIfThere(key, side, value) => {
            if next[*key].is_empty() {
                Reply::Integer(0)
            } else {
                put(&mut next[*key], *side, (*value, 0));
                length(&next[*key])
            }
        }
        Ask::Pop(keys, side, count) => return pops(keys, *side, *count, state, exactness),
        Ask::Move((from, from_side), (to, to_side)) => {
            let moved = take(&mut next[*from], *from_side, 1);
            for item in &moved {
                put(&mut next[*to], *to_side, *item);
            }
            Reply::Items(moved)
        }
        Ask::Read(key) => Reply::Items(next[*key].clone()),
        Ask::Length(key) => length(&next[*key]),
        Ask::Delete(key) => {
            let there = !next[*key].is_empty();
            next[*key].clear();
            Reply::Integer(there.into())
        }
        Ask::Add(member, score) => {
            let before = set_score(&mut next[SET], *member, Some(*score));
            Reply::Integer(before.is_none().into())
        }
        Ask::Increment(member, by) => {
            let score = score(&next[SET], *member).unwrap_or(0) + by;
            set_score(&mut next[SET], *member, Some(score));
            Reply::Score(Some(score))
        }
        Ask::Remove(member) => {
            let before = set_score(&mut next[SET], *member, None);
            Reply::Integer(before.is_some().into())
        }
        Ask::Score(member) => Reply::Score(score(&next[SET], *member)),
        Ask::Transaction(asks) => {
            let mut replies = Vec::new();
            for ask in asks {
                // In EXEC everything is exact.
                let exactness = Exactness { is_exact: true };
                let Some((after, reply)) = outcomes(ask, &next, exactness).pop() else {
                    return Vec::new();
                };
                next = after;
                replies.push(reply);
            }
            Reply::All(replies)
        }
        Ask::Saw(key, side, items) => {
            let there = take(&mut next[*key].clone(), *side, usize::MAX);
            if there != *items {
                return Vec::new();
            }
            Reply::All(Vec::new())
        }
        Ask::Take(key, side, items) => {
            if take(&mut next[*key], *side, items.len()) != *items {
                return Vec::new();
            }
            Reply::All(Vec::new())
        }
    };
    vec![(next, reply)]
}

/// Whether the command can have had this reply.
pub fn is_reply(ask: &Ask, possible: &Reply, had: &Reply, exactness: Exactness) -> bool {
    match (ask, possible, had) {
        (Ask::Push(..), _, Reply::Integer(_)) if !exactness.is_exact => true,
        (Ask::PushIfThere(..), Reply::Integer(possible), Reply::Integer(had))
            if !exactness.is_exact =>
        {
            (*possible == 0) == (*had == 0)
        }
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

fn pops(
    keys: &[usize],
    side: Side,
    count: usize,
    state: &State,
    exactness: Exactness,
) -> Vec<(State, Reply)> {
    let mut outcomes = Vec::new();
    for key in keys.iter().filter(|key| !state[**key].is_empty()) {
        let most = count.min(state[*key].len());
        // As many as it saw earlier, where that is allowed.
        let fewest = if exactness.is_exact { most } else { 1 };
        for count in fewest..=most {
            let mut next = state.clone();
            let items = take(&mut next[*key], side, count);
            outcomes.push((next, Reply::Popped(Some(*key), items)));
        }
        if exactness.is_exact {
            break;
        }
    }
    if outcomes.is_empty() {
        outcomes.push((state.clone(), Reply::Popped(None, Vec::new())));
    }
    outcomes
}

fn put(items: &mut Vec<Item>, side: Side, item: Item) {
    match side {
        Side::Front => items.insert(0, item),
        Side::Back => items.push(item),
    }
}

fn take(items: &mut Vec<Item>, side: Side, count: usize) -> Vec<Item> {
    let count = count.min(items.len());
    match side {
        Side::Front => items.drain(..count).collect(),
        Side::Back => items.drain(items.len() - count..).rev().collect(),
    }
}

fn length(items: &[Item]) -> Reply {
    Reply::Integer(items.len() as i64)
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
