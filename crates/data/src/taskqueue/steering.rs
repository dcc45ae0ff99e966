//! Changes of many tasks: TASK.REVIVE with ALL, TASK.PURGE and TASK.MOVE.
//!
//! A command changes as many tasks as fit well into one transaction. The caller repeats it until
//! nothing is left.

use bytes::Bytes;

use super::resources::{Amounts, classify, named};
use super::waits::Awaited;
use super::{ID_EXISTS, TaskQueueMut, is_full_or_old};
use crate::command::arguments::ListOptions;
use crate::error::CommandError;
use crate::unit::spans::TaskPartEnd;
use quoin_base::limits::TASK_STEERED_MAX;
use quoin_layout::{Section, TaskRow, TaskState, successor};
use quoin_store::{Isolation, StoreError};

/// A task that was removed from its queue to be put into another.
pub(super) struct TakenOut {
    pub(super) row: TaskRow,
    pub(super) needs: Amounts,
    pub(super) payload: Bytes,
}

impl TaskQueueMut<'_, '_> {
    /// A command stops changing tasks after this many bytes of payloads.
    fn steered_bytes_max(&self) -> usize {
        self.context.environment.capabilities.batch_bytes_soft_max
    }

    /// Makes dead tasks ready, starting with those that have been dead longest, up to
    /// [`TASK_STEERED_MAX`]. Returns how many.
    pub(super) async fn revive_some(&self) -> Result<i64, StoreError> {
        let range = self.context.layout().task_dead(self.key.data());
        let bytes_max = self.steered_bytes_max();
        let dead = self.tasks_by_time(&range, TASK_STEERED_MAX, bytes_max);
        let (dead, _) = dead.await?;
        let mut revived = Vec::with_capacity(dead.len());
        for (dead_row, task) in dead {
            match task.filter(|row| row.state == TaskState::Dead) {
                Some(row) => {
                    let row = self.leave_dead(&dead_row.value, row);
                    revived.push((dead_row.value, row));
                }
                None => self.context.transaction.clear(&dead_row.key),
            }
        }
        self.enter_all(&revived).await?;
        if !revived.is_empty() {
            self.context.mark_changed(self.key);
        }
        Ok(i64::try_from(revived.len()).unwrap_or(i64::MAX))
    }

    /// Removes tasks of a state after a place, up to [`TASK_STEERED_MAX`]. Returns how many, and
    /// the place to continue from. The caller calls [`remove_if_empty`] afterwards.
    ///
    /// # Errors
    /// `Text` if the cursor is not one of TASK.PURGE or TASK.LIST for this state.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn purge(
        &self,
        state: TaskState,
        after: Option<Vec<u8>>,
    ) -> Result<(i64, Option<Bytes>), CommandError> {
        let options = ListOptions {
            after,
            count: TASK_STEERED_MAX,
        };
        let bytes_max = self.steered_bytes_max();
        let listed = self.list(state, &options, bytes_max).await?;
        let (mut removed, mut next) = (0_i64, listed.next);
        let mut last = None;
        for (id, row) in &listed.tasks {
            // A task that waits for others may have many more rows than other tasks.
            if state == TaskState::Waiting && removed > 0 && is_full_or_old(self.context) {
                next = last.map(|last| self.waiting_place(last));
                break;
            }
            removed += 1;
            last = Some(row);
            // The list has skipped other tasks, which consumers may change concurrently.
            let key = self.context.layout().task_key(self.key.data(), id);
            self.context
                .transaction
                .add_read_conflict_range(&key, &successor(&key));
            self.end_run(id, row, TaskPartEnd::Cancelled);
            self.remove(id, row).await?;
        }
        if removed > 0 {
            self.context.count_change(self.key, -removed);
            if state == TaskState::Leased {
                self.wake_for_lease(&self.options().await?);
            }
        }
        Ok((removed, next))
    }

    /// The place of a waiting task in a cursor.
    fn waiting_place(&self, task: &TaskRow) -> Bytes {
        let (layout, data) = (self.context.layout(), self.key.data());
        let row = layout.task_waiting_key(data, task.at_ms, &task.place);
        let prefix = layout.section_prefix(data, Section::TaskWaiting).len();
        Bytes::from(row).slice(prefix..)
    }

    /// Removes a task so that it can move to another queue, unless it is leased or waits for others
    /// here. The caller calls [`remove_if_empty`] afterwards.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn take_out(&self, id: &Bytes) -> Result<Option<TakenOut>, StoreError> {
        let found = self.row(id, Isolation::Serializable).await?;
        let Some(row) =
            found.filter(|row| !matches!(row.state, TaskState::Leased | TaskState::Waiting))
        else {
            return Ok(None);
        };
        let registry = self.registry(self.context.relaxed()).await?;
        let needs = named(&registry, row.mask, &row.amounts);
        let payload = self.context.load_value(self.key.data(), &row.payload);
        let payload = payload.await?;
        self.remove(id, &row).await?;
        self.context.count_change(self.key, -1);
        Ok(Some(TakenOut {
            row,
            needs,
            payload,
        }))
    }

    /// Adds a task of another queue after the others of its priority, in its state.
    ///
    /// # Errors
    /// `Text` if the queue has a task with this id, or gets too many resources.
    pub(super) async fn put_in(&self, id: &Bytes, task: TakenOut) -> Result<(), CommandError> {
        if self.row(id, Isolation::Serializable).await?.is_some() {
            return Err(ID_EXISTS);
        }
        let TakenOut {
            row,
            needs,
            payload,
        } = task;
        let registry = self.registry(self.context.relaxed()).await?;
        let mut notes = row.notes.clone();
        if registry.has_waits {
            match self.awaited(id).await? {
                Awaited::No => {}
                Awaited::Yes => notes.is_awaited = true,
                Awaited::Released => return Err(ID_EXISTS),
            }
        }
        let has_group = notes.group.is_some();
        let classified = classify(registry, &needs.0)?.noting(has_group, false);
        let classified = self.register(classified).await?;
        let stored = self.context.store_value(self.key.data(), &payload);
        let row = TaskRow {
            place: self.next_place(row.place.priority).await?,
            class: classified.class,
            mask: classified.mask,
            amounts: classified.amounts,
            payload: stored.into(),
            notes,
            ..row
        };
        self.enter(id, &row).await?;
        self.set_end(id, &row);
        self.context.count_change(self.key, 1);
        Ok(())
    }
}
