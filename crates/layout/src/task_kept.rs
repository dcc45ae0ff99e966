//! What a task queue remembers for a time: tokens of additions, and results. Also, in order, when
//! those end, when tasks with a time to live end, and the next moments of schedules.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack, pack_into};

use super::{DecodeError, Id, KeyRange, Layout, Section, corrupt, numbered, take, with_byte};

numbered! {
    /// Kinds of things that end at a time.
    pub enum TaskEnding {
        /// A task, by its id: it is too old.
        Task = 0,
        /// A token of an addition.
        Unique = 1,
        /// The result of a task, by its id.
        Result = 2,
        /// The wait of a schedule, by its name: it is due.
        Schedule = 3,
        /// A period in which the tasks that consumers get are counted. There is at most one, and
        /// its name is empty.
        Rate = 4,
        /// An acknowledgement, by the id of the task. Tasks that wait for it are released. It is
        /// due at once.
        Released = 5,
    }
}

/// A token or a result, or how many tasks consumers got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskKept {
    /// Until when it counts, in Unix milliseconds.
    pub until_ms: i64,
    /// The id of the task that was added with the token, the result, or the number of tasks.
    pub value: Bytes,
}

impl TaskKept {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = pack(&(self.until_ms,));
        value.extend_from_slice(&self.value);
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let mut rest = value.as_ref();
        let until_ms = take(&mut rest, "end of what a task queue remembers")?;
        Ok(Self {
            until_ms,
            value: value.slice(value.len() - rest.len()..),
        })
    }
}

impl Layout {
    /// Key of a token or a result.
    pub fn task_kept_key(&self, data: Id, kind: TaskEnding, name: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskKept);
        pack_into(&(kind as u64, name), &mut key);
        key
    }

    /// All tokens and results, but not how many tasks consumers got.
    pub fn task_remembered(&self, data: Id) -> KeyRange {
        KeyRange {
            end: self.task_kept_key(data, TaskEnding::Rate, b""),
            ..self.task_kept(data)
        }
    }

    /// All tokens and results, and how many tasks consumers got.
    pub fn task_kept(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::TaskKept))
    }

    /// The kind and name of a row of [`Self::task_kept`].
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_kept_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(TaskEnding, Bytes), DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskKept);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => take_ending(&mut rest),
            None => corrupt("key of what a task queue remembers"),
        }
    }

    /// Key of the row that says when something ends.
    pub fn task_end_key(&self, data: Id, at_ms: i64, kind: TaskEnding, name: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskEnds);
        pack_into(&(at_ms, kind as u64, name), &mut key);
        key
    }

    /// All ends, the earliest first.
    pub fn task_ends(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::TaskEnds))
    }

    /// Ends up to and including `now_ms`.
    pub fn task_ends_by(&self, data: Id, now_ms: i64) -> KeyRange {
        let all = self.section_prefix(data, Section::TaskEnds);
        let mut end = all.clone();
        pack_into(&(now_ms.saturating_add(1),), &mut end);
        KeyRange {
            begin: with_byte(&all, 0x00),
            end,
        }
    }

    /// When something ends, its kind and its name, from a row of [`Self::task_ends`].
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_end_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(i64, TaskEnding, Bytes), DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskEnds);
        let Some(mut rest) = key.strip_prefix(prefix.as_slice()) else {
            return corrupt("key of an end");
        };
        let at_ms = take(&mut rest, "time of an end")?;
        let (kind, name) = take_ending(&mut rest)?;
        Ok((at_ms, kind, name))
    }
}

fn take_ending(rest: &mut &[u8]) -> Result<(TaskEnding, Bytes), DecodeError> {
    let Some(kind) = TaskEnding::from_number(take(rest, "kind of an end")?) else {
        return corrupt("kind of an end");
    };
    let name: TupleBytes<'_> = take(rest, "name of an end")?;
    Ok((kind, Bytes::from(name.into_owned())))
}
