//! A task queue: its options, its tasks, and what it remembers.

use std::collections::HashSet;

use bytes::Bytes;

use super::parts::{Part, PartReader, PartWriter};
use crate::DumpError;
use crate::payload::{OwnType, Payload};
use quoin_base::limits::{
    TASK_AFTER_MAX, TASK_DEAD_LETTER_BYTES_MAX, TASK_GROUP_BYTES_MAX, TASK_ID_BYTES_MAX,
    TASK_ID_KEYWORDS, TASK_PROGRESS_BYTES_MAX, TASK_REASON_BYTES_MAX, TASK_RESOURCES_MAX,
    TASK_RESULT_BYTES_MAX, TASK_SCHEDULE_BYTES_MAX, TASK_SCHEDULE_NAME_BYTES_MAX,
    TASK_TRACEPARENT_BYTES, TASK_UNIQUE_BYTES_MAX, TASK_WORKER_BYTES_MAX, is_task_resource_name,
    is_task_traceparent,
};

/// The latest time that a task may name: 2^53 milliseconds, far later than any that a command sets.
const AT_MS_MAX: i64 = 1 << 53;

/// Largest number of tasks that a queue may ever have had, so that its counter does not overflow.
const ADDED_MAX: i64 = 1 << 53;
const READY: u64 = 0;
const LEASED: u64 = 1;
const DELAYED: u64 = 2;
const DEAD: u64 = 3;
const WAITING: u64 = 4;
/// Added to the number of a state if notes follow the state: their number, then each with its kind.
const WITH_NOTES: u64 = 16;
const WORKER: u64 = 1;
const REASON: u64 = 2;
const EXPIRES: u64 = 3;
const PROGRESS: u64 = 4;
const GROUP: u64 = 5;
const AWAITED: u64 = 6;
const TRACEPARENT: u64 = 7;

/// What a task is waiting for. Times are in milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Nothing more.
    Dead {
        /// When it died.
        since_ms: i64,
    },
    /// Other tasks to be acknowledged.
    Waiting {
        /// Since when, or when its delay ends.
        at_ms: i64,
        /// Their ids, in order, at least one.
        awaited: Vec<Bytes>,
    },
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct DumpedTask {
    /// Its id.
    pub id: Bytes,
    /// Its priority; not NaN.
    pub priority: f64,
    /// How many tasks the queue had received before.
    pub index: i64,
    /// Distinguishes it from others with the same index.
    pub random: i64,
    /// The resources that it needs: bit by bit, by their numbers in the queue.
    pub mask: u8,
    /// How much of each of those. Positive and finite.
    pub amounts: Vec<f64>,
    /// How often it has been taken with a lease.
    pub tries: i64,
    /// How often it may be; 0 is without limit.
    pub tries_max: i64,
    /// What it is waiting for.
    pub state: DumpedState,
    /// The consumer that took it last.
    pub worker: Option<Bytes>,
    /// Why it was given back last.
    pub reason: Option<Bytes>,
    /// When it is too old.
    pub expires_ms: Option<i64>,
    /// How far its consumer has come.
    pub progress: Option<Bytes>,
    /// The group that it is of.
    pub group: Option<Bytes>,
    /// Whether other tasks wait for it, or did.
    pub is_awaited: bool,
    /// The `traceparent` of the client that added it.
    pub traceparent: Option<Bytes>,
    /// Its payload.
    pub payload: Bytes,
}

/// What a task queue remembers for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DumpedKeptKind {
    /// The id of the task that was added with a token.
    Unique,
    /// The result of a task.
    Result,
    /// A schedule.
    Schedule,
}

// Signed, because the options, which may be missing, begin with an unsigned number.
const UNIQUE: i64 = 1;
const RESULT: i64 = 2;
const SCHEDULE: i64 = 3;

/// A token, a result or a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedKept {
    /// Which of them.
    pub kind: DumpedKeptKind,
    /// The token, the id of the task, or the name of the schedule.
    pub name: Bytes,
    /// Until when it counts; of a schedule, its next moment, or 0 if it is paused.
    pub until_ms: i64,
    /// The id of the task, the result, or the schedule as the store has it.
    pub value: Bytes,
}

/// A part of a task queue.
#[derive(Debug, Clone, PartialEq)]
// Most are tasks, and few are held at a time.
#[allow(clippy::large_enum_variant)]
pub enum DumpedItem {
    /// A task.
    Task(DumpedTask),
    /// A token, a result or a schedule; after all tasks.
    Kept(DumpedKept),
}

/// What clients have set for a whole task queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpedOptions {
    /// Whether consumers get nothing.
    pub is_paused: bool,
    /// Numeric options, not negative, by kind. Kinds begin at 2.
    pub numbers: Vec<(u64, i64)>,
    /// The name of the queue for dead tasks.
    pub dead_letter: Option<Bytes>,
}

/// The kind of an option.
const PAUSED: u64 = 1;
const DEAD_LETTER: u64 = 10;

impl DumpedOptions {
    /// Reads the number of options and their kinds. These parts are missing for a queue without
    /// options.
    fn read(parts: &mut PartReader) -> Result<Self, DumpError> {
        let mut options = Self::default();
        let mut ahead = parts.clone();
        let Part::Unsigned(count) = ahead.next()? else {
            return Ok(options);
        };
        for _ in 0..count {
            // No kind may be repeated, so their number is bounded.
            match ahead.unsigned()? {
                PAUSED if !options.is_paused => options.is_paused = true,
                DEAD_LETTER if options.dead_letter.is_none() => {
                    let name = ahead.string()?;
                    if name.len() > TASK_DEAD_LETTER_BYTES_MAX {
                        return Err(DumpError::Format);
                    }
                    options.dead_letter = Some(name);
                }
                kind if kind > PAUSED && kind != DEAD_LETTER => {
                    if options.numbers.iter().any(|(known, _)| *known == kind) {
                        return Err(DumpError::Format);
                    }
                    options.numbers.push((kind, ahead.count()?));
                }
                _ => return Err(DumpError::Format),
            }
        }
        *parts = ahead;
        Ok(options)
    }

    fn write(&self, parts: &mut PartWriter) {
        let others = usize::from(self.is_paused) + usize::from(self.dead_letter.is_some());
        match self.numbers.len() + others {
            0 => return,
            count => parts.unsigned(count as u64),
        }
        if self.is_paused {
            parts.unsigned(PAUSED);
        }
        for (kind, number) in &self.numbers {
            parts.unsigned(*kind);
            parts.count(*number);
        }
        if let Some(name) = &self.dead_letter {
            parts.unsigned(DEAD_LETTER);
            parts.string(name);
        }
    }
}

/// Reads a task queue. Ends after the first error.
#[derive(Debug, Clone)]
pub struct TaskQueueReader {
    parts: PartReader,
    added: i64,
    resources: Vec<Bytes>,
    options: DumpedOptions,
    last_id: Bytes,
    last_kept: Option<(DumpedKeptKind, Bytes)>,
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
            let is_sound = is_task_resource_name(&name)
                && resources.len() < TASK_RESOURCES_MAX
                && !resources.contains(&name);
            if !is_sound {
                return Err(DumpError::Format);
            }
            resources.push(name);
        }
        let options = DumpedOptions::read(&mut parts)?;
        Ok(Self {
            parts,
            added,
            resources,
            options,
            last_id: Bytes::new(),
            last_kept: None,
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

    /// What clients have set for the queue.
    pub fn options(&self) -> &DumpedOptions {
        &self.options
    }

    fn step(&mut self) -> Result<Option<DumpedItem>, DumpError> {
        let id = match self.parts.next()? {
            Part::End => return Ok(None),
            Part::String(id) if self.last_kept.is_none() => id,
            Part::Signed(kind) => return Ok(Some(DumpedItem::Kept(self.kept(kind)?))),
            _ => return Err(DumpError::Format),
        };
        Ok(Some(DumpedItem::Task(self.task(id)?)))
    }

    fn kept(&mut self, kind: i64) -> Result<DumpedKept, DumpError> {
        let (kind, name_max, value_max) = match kind {
            UNIQUE => (
                DumpedKeptKind::Unique,
                TASK_UNIQUE_BYTES_MAX,
                TASK_ID_BYTES_MAX,
            ),
            RESULT => (
                DumpedKeptKind::Result,
                TASK_ID_BYTES_MAX,
                TASK_RESULT_BYTES_MAX,
            ),
            SCHEDULE => (
                DumpedKeptKind::Schedule,
                TASK_SCHEDULE_NAME_BYTES_MAX,
                TASK_SCHEDULE_BYTES_MAX,
            ),
            _ => return Err(DumpError::Format),
        };
        let name = self.parts.string()?;
        let until_ms = self.parts.count()?;
        let value = self.parts.string()?;
        let place = Some((kind, name.clone()));
        // So no name is repeated.
        let is_sound = (1..=name_max).contains(&name.len())
            && value.len() <= value_max
            && until_ms <= AT_MS_MAX
            && place > self.last_kept;
        if !is_sound {
            return Err(DumpError::Format);
        }
        self.last_kept = place;
        Ok(DumpedKept {
            kind,
            name,
            until_ms,
            value,
        })
    }

    fn task(&mut self, id: Bytes) -> Result<DumpedTask, DumpError> {
        // So no id is repeated, and the first is not empty.
        let is_keyword = |word: &&str| id.eq_ignore_ascii_case(word.as_bytes());
        if id <= self.last_id
            || id.len() > TASK_ID_BYTES_MAX
            || TASK_ID_KEYWORDS.iter().any(is_keyword)
        {
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
        let (tries, tries_max) = (parts.count()?, parts.count()?);
        let (number, has_notes) = match parts.unsigned()? {
            number @ 0..WITH_NOTES => (number, false),
            number => (number - WITH_NOTES, true),
        };
        let state = state(number, parts)?;
        let (mut worker, mut reason, mut expires_ms, mut progress) = (None, None, None, None);
        let (mut group, mut traceparent, mut is_awaited) = (None, None, false);
        if has_notes {
            for _ in 0..parts.unsigned()? {
                let (note, bytes_max) = match parts.unsigned()? {
                    WORKER => (&mut worker, TASK_WORKER_BYTES_MAX),
                    REASON => (&mut reason, TASK_REASON_BYTES_MAX),
                    PROGRESS => (&mut progress, TASK_PROGRESS_BYTES_MAX),
                    GROUP => (&mut group, TASK_GROUP_BYTES_MAX),
                    TRACEPARENT => (&mut traceparent, TASK_TRACEPARENT_BYTES),
                    EXPIRES if expires_ms.is_none() => {
                        let at_ms = parts.count()?;
                        if at_ms > AT_MS_MAX {
                            return Err(DumpError::Format);
                        }
                        expires_ms = Some(at_ms);
                        continue;
                    }
                    AWAITED if !is_awaited => {
                        is_awaited = true;
                        continue;
                    }
                    _ => return Err(DumpError::Format),
                };
                let text = parts.string()?;
                // So no note is repeated, and their number is bounded.
                if text.len() > bytes_max || note.replace(text).is_some() {
                    return Err(DumpError::Format);
                }
            }
        }
        let is_malformed = |text: &Bytes| !is_task_traceparent(text);
        if group.as_ref().is_some_and(Bytes::is_empty)
            || traceparent.as_ref().is_some_and(is_malformed)
        {
            return Err(DumpError::Format);
        }
        Ok(DumpedTask {
            id,
            priority,
            index,
            random,
            mask,
            amounts,
            tries,
            tries_max,
            state,
            worker,
            reason,
            expires_ms,
            progress,
            group,
            is_awaited,
            traceparent,
            payload: parts.string()?,
        })
    }
}

/// The ids of the tasks that a task waits for.
fn awaited(parts: &mut PartReader) -> Result<Vec<Bytes>, DumpError> {
    let mut ids: Vec<Bytes> = Vec::new();
    for _ in 0..parts.unsigned()? {
        let id = parts.string()?;
        // So no id is repeated, and the first is not empty.
        let is_later = ids.last().map_or(!id.is_empty(), |last| id > *last);
        if !is_later || id.len() > TASK_ID_BYTES_MAX || ids.len() >= TASK_AFTER_MAX {
            return Err(DumpError::Format);
        }
        ids.push(id);
    }
    match ids.is_empty() {
        true => Err(DumpError::Format),
        false => Ok(ids),
    }
}

/// The state with this number.
fn state(state: u64, parts: &mut PartReader) -> Result<DumpedState, DumpError> {
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
        WAITING => DumpedState::Waiting {
            at_ms,
            awaited: awaited(parts)?,
        },
        _ => return Err(DumpError::Format),
    })
}

impl Iterator for TaskQueueReader {
    type Item = Result<DumpedItem, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let item = self.step();
        self.is_done = !matches!(item, Ok(Some(_)));
        item.transpose()
    }
}

/// Writes a task queue.
#[derive(Debug)]
pub struct TaskQueueWriter {
    parts: PartWriter,
}

impl TaskQueueWriter {
    /// Without tasks: how many the queue was ever given, the resources that it knows, and its options.
    pub fn new(added: i64, resources: &[Bytes], options: &DumpedOptions) -> Self {
        let mut parts = PartWriter::new(OwnType::TaskQueue);
        parts.count(added);
        parts.unsigned(resources.len() as u64);
        for name in resources {
            parts.string(name);
        }
        options.write(&mut parts);
        Self { parts }
    }

    /// Adds a task. Its id must be greater than all previous ones.
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
        let notes = [
            (WORKER, &task.worker),
            (REASON, &task.reason),
            (PROGRESS, &task.progress),
            (GROUP, &task.group),
            (TRACEPARENT, &task.traceparent),
        ];
        let notes = notes
            .into_iter()
            .filter_map(|(kind, note)| Some((kind, note.as_deref()?)));
        let notes: Vec<_> = notes.collect();
        let others = usize::from(task.expires_ms.is_some()) + usize::from(task.is_awaited);
        let count = notes.len() + others;
        let flag = if count == 0 { 0 } else { WITH_NOTES };
        match &task.state {
            DumpedState::Ready => parts.unsigned(READY + flag),
            DumpedState::Leased { until_ms, token } => {
                parts.unsigned(LEASED + flag);
                parts.count(*until_ms);
                parts.unsigned(*token);
            }
            DumpedState::Delayed { until_ms } => {
                parts.unsigned(DELAYED + flag);
                parts.count(*until_ms);
            }
            DumpedState::Dead { since_ms } => {
                parts.unsigned(DEAD + flag);
                parts.count(*since_ms);
            }
            DumpedState::Waiting { at_ms, awaited } => {
                parts.unsigned(WAITING + flag);
                parts.count(*at_ms);
                parts.unsigned(awaited.len() as u64);
                awaited.iter().for_each(|id| parts.string(id));
            }
        }
        if count > 0 {
            parts.unsigned(count as u64);
        }
        for (kind, note) in notes {
            parts.unsigned(kind);
            parts.string(note);
        }
        if let Some(at_ms) = task.expires_ms {
            parts.unsigned(EXPIRES);
            parts.count(at_ms);
        }
        if task.is_awaited {
            parts.unsigned(AWAITED);
        }
        parts.string(&task.payload);
    }

    /// Adds a token, a result or a schedule, after all tasks. Its kind and name must be greater
    /// than all previous ones.
    pub fn push_kept(&mut self, kept: &DumpedKept) {
        self.parts.signed(match kept.kind {
            DumpedKeptKind::Unique => UNIQUE,
            DumpedKeptKind::Result => RESULT,
            DumpedKeptKind::Schedule => SCHEDULE,
        });
        self.parts.string(&kept.name);
        self.parts.count(kept.until_ms);
        self.parts.string(&kept.value);
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
