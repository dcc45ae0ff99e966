//! Rows of a task queue: the order of its ready tasks, the index of minima above it, the tasks
//! themselves, what falls due, and what the queue knows about resources.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::member::normal_score;
use super::task_options::TaskOptions;
use super::{
    DecodeError, Id, KeyName, KeyRange, Layout, Section, Space, ValueType, corrupt, numbered, take,
    take_id, with_byte,
};

/// Format byte of a task's row and of a registry's.
const FORMAT: u8 = 1;

/// Format byte of a task's row with notes.
const FORMAT_WITH_NOTES: u8 = 2;

/// The first byte of a group before a place. Priorities begin with another byte.
const BYTES_CODE: u8 = 0x01;

/// Bytes of the element after the place of a node.
const SLOT_BYTES: usize = 2;

/// Follows the minima of a node: the row that shows that the node exists.
const NODE_MARK: u64 = 9;

/// A task's place in the order of its queue, which never changes: priority, then arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskPlace {
    /// The lower the sooner.
    pub priority: f64,
    /// How many tasks the queue had received before.
    pub index: i64,
    /// Distinguishes tasks that several servers add at once; 0 on a store with a single writer.
    pub random: i64,
}

impl TaskPlace {
    /// The place in keys. The bytes sort like places.
    pub fn encode(&self) -> Vec<u8> {
        foundationdb_tuple::pack(&(normal_score(self.priority), self.index, self.random))
    }

    /// Reads [`Self::encode`].
    ///
    /// # Errors
    /// If the bytes are not a place.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let place = Self::take(&mut bytes)?;
        match bytes {
            [] => Ok(place),
            _ => corrupt("place of a task"),
        }
    }

    fn take(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            priority: take(rest, "priority")?,
            index: take(rest, "index of a task")?,
            random: take(rest, "random number of a task")?,
        })
    }
}

/// A ready task's place in the order of its class: by group, then by its own place. Tasks without a
/// group come after all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderPlace {
    /// The group of the task.
    pub group: Option<Bytes>,
    /// Its place.
    pub place: TaskPlace,
}

impl OrderPlace {
    /// The place in keys. The bytes sort like places, and none are a prefix of others.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Self::group_prefix(self.group.as_deref());
        bytes.extend_from_slice(&self.place.encode());
        bytes
    }

    /// The prefix that the places of this group have, and no others. Empty for tasks without a
    /// group.
    pub fn group_prefix(group: Option<&[u8]>) -> Vec<u8> {
        group.map_or_else(Vec::new, |group| foundationdb_tuple::pack(&(group,)))
    }

    /// Reads [`Self::encode`].
    ///
    /// # Errors
    /// If the bytes are not a place.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let group = Self::take_group(&mut bytes)?;
        let place = TaskPlace::decode(bytes)?;
        Ok(Self { group, place })
    }

    /// Reads [`Self::group_prefix`].
    ///
    /// # Errors
    /// If the bytes are not one.
    pub fn decode_group(mut bytes: &[u8]) -> Result<Option<Bytes>, DecodeError> {
        let group = Self::take_group(&mut bytes)?;
        match bytes {
            [] => Ok(group),
            _ => corrupt("group of a task"),
        }
    }

    /// Reads the group before a place.
    fn take_group(rest: &mut &[u8]) -> Result<Option<Bytes>, DecodeError> {
        if rest.first() != Some(&BYTES_CODE) {
            return Ok(None);
        }
        let group: TupleBytes<'_> = take(rest, "group of a task")?;
        Ok(Some(Bytes::from(group.into_owned())))
    }
}

/// The kinds of timers. They are separate, so that many hashes whose fields expire at the same time
/// do not delay the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timers {
    /// Timers of task queues and streams.
    Queues,
    /// Timers of hashes with fields that expire.
    Hashes,
}

impl Timers {
    /// The timers of keys of this type.
    pub fn of(value_type: ValueType) -> Self {
        match value_type {
            ValueType::Hash => Self::Hashes,
            _ => Self::Queues,
        }
    }

    fn space(self) -> Space {
        match self {
            Self::Queues => Space::Timers,
            Self::Hashes => Space::HashTimers,
        }
    }
}

numbered! {
    /// What a task is waiting for.
    pub enum TaskState {
        /// To be taken.
        Ready = 0,
        /// To be acknowledged by the consumer that has taken it.
        Leased = 1,
        /// Nothing: it has used up its tries.
        Delayed = 2,
        /// Tried as often as it may be.
        Dead = 3,
        /// Other tasks to be acknowledged.
        Waiting = 4,
    }
}

impl TaskState {
    /// The word in replies.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Ready => "ready",
            TaskState::Leased => "leased",
            TaskState::Delayed => "delayed",
            TaskState::Dead => "dead",
            TaskState::Waiting => "waiting",
        }
    }
}

/// Parts of a task's row that exist only if a client has set them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskNotes {
    /// The consumer that took it last.
    pub worker: Option<Bytes>,
    /// Why it was given back last.
    pub reason: Option<Bytes>,
    /// When it is too old, in Unix milliseconds.
    pub expires_ms: Option<i64>,
    /// How far its consumer has come.
    pub progress: Option<Bytes>,
    /// The group that it is of.
    pub group: Option<Bytes>,
    /// Whether other tasks were added that wait for it.
    pub is_awaited: bool,
    /// The `traceparent` of the client that added it.
    pub traceparent: Option<Bytes>,
    /// When it was taken, in Unix milliseconds, if it is leased and its trace should show that.
    pub taken_ms: Option<i64>,
}

impl TaskNotes {
    const WORKER: u64 = 1;
    const REASON: u64 = 2;
    const EXPIRES: u64 = 3;
    const PROGRESS: u64 = 4;
    const GROUP: u64 = 5;
    const AWAITED: u64 = 6;
    const TRACEPARENT: u64 = 7;
    const TAKEN: u64 = 8;

    /// Bytes of what clients have set.
    pub fn size_bytes(&self) -> usize {
        let texts = [
            &self.worker,
            &self.reason,
            &self.progress,
            &self.group,
            &self.traceparent,
        ];
        texts.into_iter().flatten().map(Bytes::len).sum()
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Appends the number of notes, then each with its kind.
    fn pack_into(&self, value: &mut Vec<u8>) {
        let notes = [
            (Self::WORKER, &self.worker),
            (Self::REASON, &self.reason),
            (Self::PROGRESS, &self.progress),
            (Self::GROUP, &self.group),
            (Self::TRACEPARENT, &self.traceparent),
        ];
        let notes = { notes.into_iter() }.filter_map(|(kind, note)| Some((kind, note.as_deref()?)));
        let times = [
            (Self::EXPIRES, self.expires_ms),
            (Self::TAKEN, self.taken_ms),
        ];
        let times = { times.into_iter() }.filter_map(|(kind, at_ms)| Some((kind, at_ms?)));
        let others = times.clone().count() + usize::from(self.is_awaited);
        let count = notes.clone().count() + others;
        pack_into(&(count as u64,), value);
        for (kind, note) in notes {
            pack_into(&(kind, note), value);
        }
        for (kind, at_ms) in times {
            pack_into(&(kind, at_ms), value);
        }
        if self.is_awaited {
            pack_into(&(Self::AWAITED,), value);
        }
    }

    fn take(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut notes = Self::default();
        let count: u64 = take(rest, "notes of a task")?;
        for _ in 0..count {
            let kind: u64 = take(rest, "note of a task")?;
            if kind == Self::EXPIRES {
                notes.expires_ms = Some(take(rest, "note of a task")?);
                continue;
            }
            if kind == Self::TAKEN {
                notes.taken_ms = Some(take(rest, "note of a task")?);
                continue;
            }
            if kind == Self::AWAITED {
                notes.is_awaited = true;
                continue;
            }
            let note: TupleBytes<'_> = take(rest, "note of a task")?;
            let note = Some(Bytes::from(note.into_owned()));
            match kind {
                Self::WORKER => notes.worker = note,
                Self::REASON => notes.reason = note,
                Self::PROGRESS => notes.progress = note,
                Self::GROUP => notes.group = note,
                Self::TRACEPARENT => notes.traceparent = note,
                _ => return corrupt("kind of a task's note"),
            }
        }
        Ok(notes)
    }
}

/// A task as its row holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// What it is waiting for.
    pub state: TaskState,
    /// Its place.
    pub place: TaskPlace,
    /// Its class: an index into the registry's classes.
    pub class: u32,
    /// The resources that it needs: bit by bit, by their numbers in the registry.
    pub mask: u8,
    /// How much it needs of each of those.
    pub amounts: Vec<f64>,
    /// How often it has been taken with a lease.
    pub tries: i64,
    /// How often it may be; 0 is without limit.
    pub tries_max: i64,
    /// When its lease or delay ends, or when it became ready or died. 0 if unknown for a ready
    /// task. For a waiting task, since when it waits, or when its delay ends.
    pub at_ms: i64,
    /// The token of its lease. 0 without one.
    pub token: u64,
    /// What clients have set.
    pub notes: TaskNotes,
    /// The payload, as [`StoredValue`](super::StoredValue) has it.
    pub payload: Bytes,
}

impl TaskRow {
    /// Its place in the order of its class when it is ready.
    pub fn order_place(&self) -> OrderPlace {
        OrderPlace {
            group: self.notes.group.clone(),
            place: self.place,
        }
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(64 + self.payload.len());
        let has_notes = !self.notes.is_empty();
        value.push(if has_notes { FORMAT_WITH_NOTES } else { FORMAT });
        pack_into(
            &(
                self.state as u64,
                normal_score(self.place.priority),
                self.place.index,
                self.place.random,
                self.class,
                u64::from(self.mask),
                self.tries,
                self.tries_max,
                self.at_ms,
                self.token,
            ),
            &mut value,
        );
        for amount in &self.amounts {
            pack_into(&(*amount,), &mut value);
        }
        if has_notes {
            self.notes.pack_into(&mut value);
        }
        value.extend_from_slice(&self.payload);
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let (has_notes, mut rest) = match value.split_first() {
            Some((&FORMAT, rest)) => (false, rest),
            Some((&FORMAT_WITH_NOTES, rest)) => (true, rest),
            _ => return corrupt("format of a task"),
        };
        let Some(state) = TaskState::from_number(take(&mut rest, "state of a task")?) else {
            return corrupt("state of a task");
        };
        let place = TaskPlace::take(&mut rest)?;
        let class = take(&mut rest, "class of a task")?;
        let mask: u64 = take(&mut rest, "resources of a task")?;
        let Ok(mask) = u8::try_from(mask) else {
            return corrupt("resources of a task");
        };
        let tries = take(&mut rest, "tries")?;
        let tries_max = take(&mut rest, "tries")?;
        let at_ms = take(&mut rest, "time of a task")?;
        let token = take(&mut rest, "lease token")?;
        let mut amounts = Vec::with_capacity(mask.count_ones() as usize);
        for _ in 0..mask.count_ones() {
            amounts.push(take(&mut rest, "amount")?);
        }
        let notes = match has_notes {
            true => TaskNotes::take(&mut rest)?,
            false => TaskNotes::default(),
        };
        let payload = value.slice(value.len() - rest.len()..);
        Ok(Self {
            state,
            place,
            class,
            mask,
            amounts,
            tries,
            tries_max,
            at_ms,
            token,
            notes,
            payload,
        })
    }
}

/// A ready task in its row in the order: what it needs, and its id.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderRow {
    /// How much it needs of each resource of its class.
    pub amounts: Vec<f64>,
    /// Its id.
    pub id: Bytes,
}

impl OrderRow {
    /// The stored form: the amounts, 8 bytes each, then the id.
    pub fn encode(amounts: &[f64], id: &[u8]) -> Vec<u8> {
        let mut value = Vec::with_capacity(amounts.len() * 8 + id.len());
        for amount in amounts {
            value.extend_from_slice(&amount.to_be_bytes());
        }
        value.extend_from_slice(id);
        value
    }

    /// Reads the stored form of a task of a class with `resources` resources.
    ///
    /// # Errors
    /// If it is shorter.
    pub fn decode(resources: usize, value: &Bytes) -> Result<Self, DecodeError> {
        let Some(amounts) = value.get(..resources * 8) else {
            return corrupt("order of a task queue");
        };
        let amounts = amounts
            .chunks_exact(8)
            .map(|bytes| f64::from_be_bytes(bytes.try_into().unwrap_or_default()))
            .collect();
        Ok(Self {
            amounts,
            id: value.slice(resources * 8..),
        })
    }
}

/// A class of tasks: those that need the same resources, and perhaps similar amounts of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskClass {
    /// The resources, bit by bit.
    pub mask: u8,
    /// The binary exponent of each amount (its upper 12 bits); empty if the class takes any.
    pub octaves: Vec<u16>,
}

/// Format byte of a registry with options.
const FORMAT_WITH_OPTIONS: u8 = 2;

/// Format byte of a registry of a queue with groups or waiting tasks. Followed by what the queue
/// ever had, and its options, if any.
const FORMAT_WITH_PAST: u8 = 3;
const HAD_GROUPS: u64 = 1;
const HAD_WAITS: u64 = 2;

/// What a task queue knows about resources, and its options. Resources and classes are only added,
/// so their numbers never change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRegistry {
    /// What clients have set. Part of the registry, because additions and takes read it anyway.
    pub options: TaskOptions,
    /// Whether a task with a group was ever added.
    pub has_groups: bool,
    /// Whether a task that waits for others was ever added.
    pub has_waits: bool,
    /// The names of resources, by their numbers.
    pub resources: Vec<Bytes>,
    /// The classes, by their numbers.
    pub classes: Vec<TaskClass>,
}

impl TaskRegistry {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let past = [(self.has_groups, HAD_GROUPS), (self.has_waits, HAD_WAITS)];
        let past = past.iter().filter(|(had, _)| *had);
        let past: u64 = past.map(|(_, bit)| bit).sum();
        let mut value = match (past, self.options.is_empty()) {
            (1.., _) => vec![FORMAT_WITH_PAST],
            (0, false) => vec![FORMAT_WITH_OPTIONS],
            (0, true) => vec![FORMAT],
        };
        if past > 0 {
            pack_into(&(past,), &mut value);
        }
        if past > 0 || !self.options.is_empty() {
            self.options.pack_into(&mut value);
        }
        pack_into(&(self.resources.len() as u64,), &mut value);
        for name in &self.resources {
            pack_into(&(name.as_ref(),), &mut value);
        }
        for class in &self.classes {
            pack_into(
                &(u64::from(class.mask), class.octaves.len() as u64),
                &mut value,
            );
            for octave in &class.octaves {
                pack_into(&(u64::from(*octave),), &mut value);
            }
        }
        value
    }

    /// Reads the stored form. A missing row means empty.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: Option<&Bytes>) -> Result<Self, DecodeError> {
        let Some(value) = value else {
            return Ok(Self::default());
        };
        let mut registry = Self::default();
        let mut rest = match value.split_first() {
            Some((&FORMAT, rest)) => rest,
            Some((&format @ (FORMAT_WITH_OPTIONS | FORMAT_WITH_PAST), mut rest)) => {
                if format == FORMAT_WITH_PAST {
                    let past: u64 = take(&mut rest, "past of a task queue")?;
                    registry.has_groups = past & HAD_GROUPS != 0;
                    registry.has_waits = past & HAD_WAITS != 0;
                }
                registry.options = TaskOptions::take(&mut rest)?;
                rest
            }
            _ => return corrupt("format of a task queue's registry"),
        };
        let count: u64 = take(&mut rest, "number of resources")?;
        for _ in 0..count {
            let name: TupleBytes<'_> = take(&mut rest, "name of a resource")?;
            registry.resources.push(Bytes::from(name.into_owned()));
        }
        while !rest.is_empty() {
            let mask: u64 = take(&mut rest, "class")?;
            let octaves: u64 = take(&mut rest, "class")?;
            let Ok(mask) = u8::try_from(mask) else {
                return corrupt("class");
            };
            let mut class = TaskClass {
                mask,
                octaves: Vec::new(),
            };
            for _ in 0..octaves {
                let octave: u64 = take(&mut rest, "class")?;
                let Ok(octave) = u16::try_from(octave) else {
                    return corrupt("class");
                };
                class.octaves.push(octave);
            }
            registry.classes.push(class);
        }
        Ok(registry)
    }
}

/// A counter of a task queue. The total number of tasks is the key's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskCounter {
    /// Tasks that were ever added.
    Added = 1,
    /// Tasks on lease.
    Leased = 2,
    /// Tasks that are delayed.
    Delayed = 3,
    /// Tasks that are dead.
    Dead = 4,
    /// Tasks on lease that have a group.
    LeasedOfGroups = 5,
    /// Tasks that wait for others.
    Waiting = 7,
}

/// Stored among the counters: the group that had the last turn.
const TURN: u64 = 6;

impl Layout {
    /// Prefix of the order of a class's ready tasks; an [`OrderPlace`] follows.
    pub fn task_order_prefix(&self, data: Id, class: u32) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskOrder);
        pack_into(&(class,), &mut key);
        key
    }

    /// The ready tasks of a group in the order of a class. `None` means those without a group.
    pub fn task_group_order(&self, data: Id, class: u32, group: Option<&[u8]>) -> KeyRange {
        let prefix = self.task_order_prefix(data, class);
        match group {
            Some(_) => KeyRange::children(&[prefix, OrderPlace::group_prefix(group)].concat()),
            None => KeyRange {
                begin: with_byte(&prefix, BYTES_CODE + 1),
                ..KeyRange::children(&prefix)
            },
        }
    }

    /// Key of a ready task in the order of its class.
    pub fn task_order_key(&self, data: Id, class: u32, place: &OrderPlace) -> Vec<u8> {
        let mut key = self.task_order_prefix(data, class);
        key.extend_from_slice(&place.encode());
        key
    }

    /// The length of the prefix that all ready tasks of one class, group and priority share, from
    /// the key of one of them. The key's prefix has the length of [`Self::task_order_prefix`].
    ///
    /// # Errors
    /// If it is not such a key.
    pub fn task_priority_length(
        &self,
        prefix_length: usize,
        key: &[u8],
    ) -> Result<usize, DecodeError> {
        let Some(mut rest) = key.get(prefix_length..) else {
            return corrupt("key of a task's place");
        };
        OrderPlace::take_group(&mut rest)?;
        let _: f64 = take(&mut rest, "priority")?;
        Ok(key.len() - rest.len())
    }

    /// Prefix of a level of the index of minima above a class's order, 0 the lowest.
    pub fn task_nodes_prefix(&self, data: Id, class: u32, level: u32) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskNodes);
        pack_into(&(class, level), &mut key);
        key
    }

    /// All levels of the index above a class's order.
    pub fn task_levels(&self, data: Id, class: u32) -> (KeyRange, usize) {
        let mut key = self.section_prefix(data, Section::TaskNodes);
        pack_into(&(class,), &mut key);
        (KeyRange::children(&key), key.len())
    }

    /// The level that a row of [`Self::task_levels`] belongs to.
    ///
    /// # Errors
    /// If the key is not of an index.
    pub fn read_task_level(&self, prefix_length: usize, key: &[u8]) -> Result<u32, DecodeError> {
        match key.get(prefix_length..) {
            Some(mut rest) => take(&mut rest, "level"),
            None => corrupt("key of an index of minima"),
        }
    }

    /// Key of one minimum of a node. `slot` is the index of the class's resource.
    pub fn task_minimum_key(&self, level_prefix: &[u8], place: &[u8], slot: usize) -> Vec<u8> {
        node_row(level_prefix, place, slot as u64 + 1)
    }

    /// Key of the row that shows that a node exists. It follows the node's minima.
    pub fn task_mark_key(&self, level_prefix: &[u8], place: &[u8]) -> Vec<u8> {
        node_row(level_prefix, place, NODE_MARK)
    }

    /// The place of the node that a row belongs to, and its slot. `None` for the node's mark.
    ///
    /// # Errors
    /// If the key is not of a node.
    pub fn read_task_node(
        &self,
        prefix_length: usize,
        key: &Bytes,
    ) -> Result<(Bytes, Option<usize>), DecodeError> {
        let place_end = key.len().saturating_sub(SLOT_BYTES);
        let (Some(mut last), true) = (key.get(place_end..), place_end >= prefix_length) else {
            return corrupt("key of a node");
        };
        let slot: u64 = take(&mut last, "slot")?;
        let slot = match slot {
            NODE_MARK => None,
            1..NODE_MARK => usize::try_from(slot - 1).ok(),
            _ => return corrupt("slot"),
        };
        Ok((key.slice(prefix_length..place_end), slot))
    }

    /// Key of a task.
    pub fn task_key(&self, data: Id, id: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::Tasks);
        pack_into(&(id,), &mut key);
        key
    }

    /// Key of the end of a lease or a delay.
    pub fn task_due_key(&self, data: Id, at_ms: i64, place: &TaskPlace) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskDue);
        pack_into(&(at_ms, place.index, place.random), &mut key);
        key
    }

    /// All leases and delays, earliest end first.
    pub fn task_due(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::TaskDue))
    }

    /// Leases and delays that end up to and including `now_ms`.
    pub fn task_due_by(&self, data: Id, now_ms: i64) -> KeyRange {
        let all = self.section_prefix(data, Section::TaskDue);
        let mut end = all.clone();
        pack_into(&(now_ms.saturating_add(1),), &mut end);
        KeyRange {
            begin: with_byte(&all, 0x00),
            end,
        }
    }

    /// When the lease or delay of a row of [`Self::task_due`] ends.
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_due_key(&self, data: Id, key: &[u8]) -> Result<i64, DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskDue);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => take(&mut rest, "time of a task"),
            None => corrupt("key of what falls due"),
        }
    }

    /// Key of a dead task, by when it died.
    pub fn task_dead_key(&self, data: Id, at_ms: i64, place: &TaskPlace) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskDead);
        pack_into(&(at_ms, place.index, place.random), &mut key);
        key
    }

    /// All dead tasks, the longest dead in front.
    pub fn task_dead(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::TaskDead))
    }

    /// When the task of a row of [`Self::task_dead`] died.
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_dead_key(&self, data: Id, key: &[u8]) -> Result<i64, DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskDead);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => take(&mut rest, "time of a task"),
            None => corrupt("key of a dead task"),
        }
    }

    /// Whether these bytes follow the prefix in keys of [`Self::task_due_key`], [`Self::task_dead_key`] and
    /// [`Self::task_waiting_key`].
    pub fn is_task_time_place(&self, mut bytes: &[u8]) -> bool {
        let numbers = (0..3).try_for_each(|_| take::<i64>(&mut bytes, "place of a task").map(drop));
        numbers.is_ok() && bytes.is_empty()
    }

    /// Key of a task queue's registry.
    pub fn task_registry_key(&self, data: Id) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskQueue);
        pack_into(&(0_u64,), &mut key);
        key
    }

    /// Key of a counter.
    pub fn task_counter_key(&self, data: Id, counter: TaskCounter) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskQueue);
        pack_into(&(counter as u64,), &mut key);
        key
    }

    /// Key of the group that had the last turn. Its value is [`OrderPlace::group_prefix`] of the
    /// group.
    pub fn task_turn_key(&self, data: Id) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskQueue);
        pack_into(&(TURN,), &mut key);
        key
    }

    /// Key of the row that says that a task of a group is on lease.
    pub fn task_group_lease_key(&self, data: Id, group: &[u8], place: &TaskPlace) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskGroupLeases);
        pack_into(&(group, place.index, place.random), &mut key);
        key
    }

    /// The leases of a group.
    pub fn task_group_leases(&self, data: Id, group: &[u8]) -> KeyRange {
        let mut prefix = self.section_prefix(data, Section::TaskGroupLeases);
        pack_into(&(group,), &mut prefix);
        KeyRange::children(&prefix)
    }

    /// Key that asks background work to check the index around a place.
    pub fn task_maintenance_key(&self, data: Id, class: u32, place: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskMaintenance);
        pack_into(&(class,), &mut key);
        key.extend_from_slice(place);
        key
    }

    /// All requests for maintenance of the index.
    pub fn task_maintenance(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::TaskMaintenance))
    }

    /// Class and place of a row of [`Self::task_maintenance`].
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_maintenance_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(u32, Vec<u8>), DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskMaintenance);
        let Some(mut rest) = key.strip_prefix(prefix.as_slice()) else {
            return corrupt("key of an untended place");
        };
        Ok((take(&mut rest, "class")?, rest.to_vec()))
    }

    /// Key of a timer: a row that says when background work should check a key.
    pub fn timer_key(&self, timers: Timers, at_ms: i64, namespace: Id, name: &KeyName) -> Vec<u8> {
        let place = (at_ms, namespace.instance, namespace.sequence, name.hash());
        let mut key = self.pack(timers.space(), &place);
        name.pack_into(&mut key);
        key
    }

    /// Timers up to and including `now_ms`.
    pub fn timers_by(&self, timers: Timers, now_ms: i64) -> KeyRange {
        let all = self.pack(timers.space(), &());
        let mut end = all.clone();
        pack_into(&(now_ms.saturating_add(1),), &mut end);
        KeyRange {
            begin: with_byte(&all, 0x00),
            end,
        }
    }

    /// The namespace and the key of a timer.
    ///
    /// # Errors
    /// If the key is not of this space.
    pub fn read_timer_key(&self, timers: Timers, key: &[u8]) -> Result<(Id, KeyName), DecodeError> {
        let mut rest = self.strip(timers.space(), key)?;
        let _: i64 = take(&mut rest, "time of a timer")?;
        let namespace = take_id(&mut rest, "namespace")?;
        let hash = take(&mut rest, "key hash")?;
        Ok((namespace, KeyName::take(hash, &mut rest)?))
    }

    /// The class of a row of [`Section::TaskOrder`].
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_order_class(&self, data: Id, key: &[u8]) -> Result<usize, DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskOrder);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => take(&mut rest, "class"),
            None => corrupt("key of a task's place"),
        }
    }

    /// The id of a task, from the key of its row.
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_key(&self, data: Id, key: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let prefix = self.section_prefix(data, Section::Tasks);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => {
                let id: foundationdb_tuple::Bytes<'_> = take(&mut rest, "id of a task")?;
                Ok(id.into_owned())
            }
            None => corrupt("key of a task"),
        }
    }
}

fn node_row(level_prefix: &[u8], place: &[u8], slot: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(level_prefix.len() + place.len() + SLOT_BYTES);
    key.extend_from_slice(level_prefix);
    key.extend_from_slice(place);
    pack_into(&(slot,), &mut key);
    key
}
