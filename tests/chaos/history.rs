//! What clients sent and received, which all checks use.

use std::fmt;
use std::str::FromStr;

/// Nanoseconds since the start of the run.
pub type Moment = u64;

/// An element that is pushed only once in the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Payload {
    /// The client that pushes it.
    pub client: u32,
    /// Counts that client's payloads.
    pub number: u32,
}

impl fmt::Display for Payload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "p{}-{}", self.client, self.number)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Payload {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (client, number) = text
            .strip_prefix('p')
            .and_then(|text| text.split_once('-'))
            .ok_or(())?;
        Ok(Self {
            client: client.parse().map_err(drop)?,
            number: number.parse().map_err(drop)?,
        })
    }
}

/// The kinds of operations on queues. These determine what their history must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Lists that are pushed at the right and popped at the left: first in, first out.
    Fifo,
    /// Lists with pushes, pops and moves at both ends.
    Mixed,
    /// Lists that elements move between, and that nothing is ever popped from.
    Moved,
    /// Sorted sets.
    Sorted,
    /// Priority queues.
    Priority,
    /// Priority queues that values move between, and that nothing is ever popped from.
    PriorityMoved,
    /// Sets, whose members are popped at random.
    Members,
}

/// All families.
pub const FAMILIES: [Family; 7] = [
    Family::Fifo,
    Family::Mixed,
    Family::Moved,
    Family::Sorted,
    Family::Priority,
    Family::PriorityMoved,
    Family::Members,
];

/// How many queues each family has.
pub const QUEUES: u8 = 2;

/// A key of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    /// Its family.
    pub family: Family,
    /// Below [`QUEUES`].
    pub number: u8,
}

impl Queue {
    /// All queues of a family.
    pub fn all_of(family: Family) -> impl Iterator<Item = Self> {
        (0..QUEUES).map(move |number| Self { family, number })
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.family {
            Family::Fifo => "fifo",
            Family::Mixed => "mixed",
            Family::Moved => "moved",
            Family::Sorted => "sorted",
            Family::Priority => "priority",
            Family::PriorityMoved => "prioritymoved",
            Family::Members => "members",
        };
        write!(out, "{name}:{}", self.number)
    }
}

impl FromStr for Queue {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        FAMILIES
            .into_iter()
            .flat_map(Self::all_of)
            .find(|queue| queue.to_string() == text)
            .ok_or(())
    }
}

/// An element and its score or priority (0 in lists).
pub type Element = (Payload, i64);

/// The end that is popped from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The left end, or the lowest score.
    First,
    /// The right end, or the highest score.
    Last,
}

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Pushes elements, which are then next to each other in this order.
    Push {
        queue: Queue,
        elements: Vec<Element>,
    },
    /// Takes up to `asked` elements of the first of `queues` that has any.
    Pop {
        queues: Vec<Queue>,
        end: End,
        asked: usize,
        /// The queue that the reply names, or the only one.
        from: Option<Queue>,
        /// The content of the reply. Empty if there was none.
        took: Vec<Element>,
    },
    /// Moves one element within a family.
    Move { from: Queue, took: Option<Payload> },
}

/// A command and its outcome. Commands that were refused without any change are left out.
#[derive(Debug, Clone)]
pub struct Call {
    /// Before it was sent.
    pub invoked: Moment,
    /// When it was answered. `None`: it was not, so it may have taken effect or not, and may yet.
    pub ended: Option<Moment>,
    /// Commands of one pipeline have the same number. They take effect in order.
    pub pipeline: u64,
    pub action: Action,
}

/// The final content of the queues, first to last.
pub type Contents = std::collections::BTreeMap<Queue, Vec<Element>>;
