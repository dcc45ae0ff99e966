//! Rows for what the waiting tasks of a queue wait for: tasks by id, in both directions.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{DecodeError, Id, KeyRange, Layout, Section, TaskPlace, corrupt, take};

/// Index and random number of a task's place.
type TaskNumbers = (i64, i64);

impl Layout {
    /// Key of a waiting task, by since when it waits.
    pub fn task_waiting_key(&self, data: Id, at_ms: i64, place: &TaskPlace) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskWaiting);
        pack_into(&(at_ms, place.index, place.random), &mut key);
        key
    }

    /// Key of the row that says that the task at a place waits for another.
    pub fn task_awaited_key(&self, data: Id, place: TaskNumbers, awaited: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskAwaited);
        pack_into(&(place.0, place.1, awaited), &mut key);
        key
    }

    /// The tasks that the task at a place waits for, by id.
    pub fn task_awaited(&self, data: Id, place: TaskNumbers) -> KeyRange {
        let mut prefix = self.section_prefix(data, Section::TaskAwaited);
        pack_into(&place, &mut prefix);
        KeyRange::children(&prefix)
    }

    /// The place of the waiting task and the id of the other, from the key of a row of
    /// [`Self::task_awaited`].
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_awaited_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(TaskNumbers, Bytes), DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskAwaited);
        let Some(mut rest) = key.strip_prefix(prefix.as_slice()) else {
            return corrupt("key of an awaited task");
        };
        let place = take_numbers(&mut rest)?;
        let id: TupleBytes<'_> = take(&mut rest, "id of an awaited task")?;
        Ok((place, Bytes::from(id.into_owned())))
    }

    /// Key of the row that says that the task at a place waits for this one.
    pub fn task_dependant_key(&self, data: Id, awaited: &[u8], place: TaskNumbers) -> Vec<u8> {
        let mut key = self.task_released_key(data, awaited);
        pack_into(&place, &mut key);
        key
    }

    /// The tasks that wait for this one, by place.
    pub fn task_dependants(&self, data: Id, awaited: &[u8]) -> KeyRange {
        KeyRange::children(&self.task_released_key(data, awaited))
    }

    /// Key of the row that says that a task was acknowledged, and that background work must release
    /// the tasks that wait for it. It comes just before [`Self::task_dependants`].
    pub fn task_released_key(&self, data: Id, awaited: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskDependants);
        pack_into(&(awaited,), &mut key);
        key
    }

    /// The id of the awaited task and the place of the waiting one, from a row of
    /// [`Section::TaskDependants`]. `None` for a row of [`Self::task_released_key`].
    ///
    /// # Errors
    /// If the key is not of this section.
    pub fn read_task_dependant_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<Option<(Bytes, TaskNumbers)>, DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskDependants);
        let Some(mut rest) = key.strip_prefix(prefix.as_slice()) else {
            return corrupt("key of a task that waits");
        };
        let id: TupleBytes<'_> = take(&mut rest, "id of an awaited task")?;
        if rest.is_empty() {
            return Ok(None);
        }
        let place = take_numbers(&mut rest)?;
        Ok(Some((Bytes::from(id.into_owned()), place)))
    }
}

fn take_numbers(rest: &mut &[u8]) -> Result<TaskNumbers, DecodeError> {
    let index = take(rest, "index of a task")?;
    Ok((index, take(rest, "random number of a task")?))
}
