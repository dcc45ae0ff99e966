//! Task queues: what the queue knows as a whole, then its tasks in the order of their ids.

use std::collections::HashSet;

use bytes::Bytes;

use super::DumpError;
use super::own::{OwnType, Part, PartReader, PartWriter};
use super::payload::Payload;
use quoin_base::limits::{
    TASK_ID_BYTES_MAX, TASK_RESOURCE_NAME_BYTES_MAX, TASK_RESOURCES_MAX, TASK_TAKE_KEYWORDS,
};

/// The latest time that a task may name: 2^53 milliseconds, far later than any that a command sets.
const AT_MS_MAX: i64 = 1 << 53;

/// Largest number of tasks that a queue may ever have had, so that its counter does not overflow.
const ADDED_MAX: i64 = 1 << 53;

const READY: u64 = 0;

const LEASED: u64 = 1;

const DELAYED: u64 = 2;

const DEAD: u64 = 3;

/// What a task is waiting for. Times are in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpedState {
    /// To be taken.
    Ready,
    /// Its lease to end.
    Leased {
        /// When it ends.
        until_ms: i64,
        /// The lease's token; not 0.
        token: u64,
    },
    /// Its delay to end.
    Delayed {
        /// When it ends.
        until_ms: i64,
    },
    /// Nothing.
    Dead {
        /// When it died.
        since_ms: i64,
    },
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct DumpedTask {
    /// Its id.
    pub id: Bytes,
    /// Its priority; not NaN.
    pub priority: f64,
    /// How many tasks the queue had been given before.
    pub index: i64,
    /// Distinguishes it from others with the same index.
    pub random: i64,
    /// The resources that it needs: bit by bit, by their numbers in the queue.
    pub mask: u8,
    /// How much of each of those: positive and finite.
    pub amounts: Vec<f64>,
    /// How often it has been taken with a lease.
    pub tries: i64,
    /// How often it may be; 0 is without limit.
    pub tries_max: i64,
    /// What it is waiting for.
    pub state: DumpedState,
    /// What it is.
    pub payload: Bytes,
}

/// Reads a task queue; ends after the first error.
#[derive(Debug, Clone)]
pub struct TaskQueueReader {
    parts: PartReader,
    added: i64,
    resources: Vec<Bytes>,
    last_id: Bytes,
    /// Index and random number of the tasks so far. No two tasks have the same.
    places: HashSet<(i64, i64)>,
    is_done: bool,
}

impl TaskQueueReader {
    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a task queue, or its header is invalid.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let mut parts = PartReader::new(payload, OwnType::TaskQueue)?;
        let added = parts.count()?;
        if added > ADDED_MAX {
            return Err(DumpError::Format);
        }
        let mut resources = Vec::new();
        for _ in 0..parts.unsigned()? {
            let name = parts.string()?;
            let is_keyword = |word: &&str| name.eq_ignore_ascii_case(word.as_bytes());
            let is_sound = (1..=TASK_RESOURCE_NAME_BYTES_MAX).contains(&name.len())
                && resources.len() < TASK_RESOURCES_MAX
                && !TASK_TAKE_KEYWORDS.iter().any(is_keyword)
                && !resources.contains(&name);
            if !is_sound {
                return Err(DumpError::Format);
            }
            resources.push(name);
        }
        Ok(Self {
            parts,
            added,
            resources,
            last_id: Bytes::new(),
            places: HashSet::new(),
            is_done: false,
        })
    }

    /// How many tasks the queue was ever given.
    pub fn added(&self) -> i64 {
        self.added
    }

    /// The resources that the queue knows.
    pub fn resources(&self) -> &[Bytes] {
        &self.resources
    }

    fn step(&mut self) -> Result<Option<DumpedTask>, DumpError> {
        let id = match self.parts.next()? {
            Part::End => return Ok(None),
            Part::String(id) => id,
            _ => return Err(DumpError::Format),
        };
        // So none comes twice. The first is not empty.
        if id <= self.last_id || id.len() > TASK_ID_BYTES_MAX {
            return Err(DumpError::Format);
        }
        self.last_id = id.clone();
        let parts = &mut self.parts;
        // −0 is 0.
        let priority = parts.double()? + 0.0;
        let (index, random) = (parts.count()?, parts.signed()?);
        if index >= self.added || !self.places.insert((index, random)) {
            return Err(DumpError::Format);
        }
        let mask = u8::try_from(parts.unsigned()?).map_err(|_| DumpError::Format)?;
        let known = (1_u16 << self.resources.len()) - 1;
        if u16::from(mask) & !known != 0 {
            return Err(DumpError::Format);
        }
        let mut amounts = Vec::new();
        for _ in 0..mask.count_ones() {
            let amount = parts.double()?;
            if amount <= 0.0 || amount.is_infinite() {
                return Err(DumpError::Format);
            }
            amounts.push(amount);
        }
        Ok(Some(DumpedTask {
            id,
            priority,
            index,
            random,
            mask,
            amounts,
            tries: parts.count()?,
            tries_max: parts.count()?,
            state: state(parts)?,
            payload: parts.string()?,
        }))
    }
}

fn state(parts: &mut PartReader) -> Result<DumpedState, DumpError> {
    let state = parts.unsigned()?;
    if state == READY {
        return Ok(DumpedState::Ready);
    }
    let at_ms = parts.count()?;
    if at_ms > AT_MS_MAX {
        return Err(DumpError::Format);
    }
    Ok(match state {
        LEASED => DumpedState::Leased {
            until_ms: at_ms,
            token: match parts.unsigned()? {
                0 => return Err(DumpError::Format),
                token => token,
            },
        },
        DELAYED => DumpedState::Delayed { until_ms: at_ms },
        DEAD => DumpedState::Dead { since_ms: at_ms },
        _ => return Err(DumpError::Format),
    })
}

impl Iterator for TaskQueueReader {
    type Item = Result<DumpedTask, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let task = self.step();
        self.is_done = !matches!(task, Ok(Some(_)));
        task.transpose()
    }
}

/// Writes a task queue.
#[derive(Debug)]
pub struct TaskQueueWriter {
    parts: PartWriter,
}

impl TaskQueueWriter {
    /// Without tasks: how many the queue was ever given, and the resources that it knows.
    pub fn new(added: i64, resources: &[Bytes]) -> Self {
        let mut parts = PartWriter::new(OwnType::TaskQueue);
        parts.count(added);
        parts.unsigned(resources.len() as u64);
        for name in resources {
            parts.string(name);
        }
        Self { parts }
    }

    /// Adds a task. Its id is greater than those of the others.
    pub fn push(&mut self, task: &DumpedTask) {
        let parts = &mut self.parts;
        parts.string(&task.id);
        parts.double(task.priority);
        parts.count(task.index);
        parts.signed(task.random);
        parts.unsigned(task.mask.into());
        for amount in &task.amounts {
            parts.double(*amount);
        }
        parts.count(task.tries);
        parts.count(task.tries_max);
        match task.state {
            DumpedState::Ready => parts.unsigned(READY),
            DumpedState::Leased { until_ms, token } => {
                parts.unsigned(LEASED);
                parts.count(until_ms);
                parts.unsigned(token);
            }
            DumpedState::Delayed { until_ms } => {
                parts.unsigned(DELAYED);
                parts.count(until_ms);
            }
            DumpedState::Dead { since_ms } => {
                parts.unsigned(DEAD);
                parts.count(since_ms);
            }
        }
        parts.string(&task.payload);
    }

    /// How many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.parts.len()
    }

    /// The payload.
    pub fn finish(self) -> Bytes {
        self.parts.finish()
    }
}
