//! Where tasks go that have used up their tries, are too old, or exceed the queue's length.

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use super::resources::named;
use super::steering::TakenOut;
use super::{TaskQueue, TaskQueueMut};
use crate::error::CommandError;
use quoin_base::events::EventClasses;
use quoin_layout::{
    KeyRange, OrderPlace, OrderRow, TaskCounter, TaskEnding, TaskNumber, TaskOptions, TaskPlace,
    TaskRegistry, TaskRow, TaskState, ValueType,
};
use quoin_store::{Isolation, StoreError};

/// Bytes of a transaction that are reserved for other writes next to a moved payload.
const MOVE_ROOM_BYTES: usize = 300_000;
/// Maximum number of tasks that an addition drops. It may drop more than it adds, because a queue's
/// maximum length may have been lowered.
const DROPPED_PER_ADD: usize = 4;
/// Why a task is in the queue for dead tasks, if it was not its consumer that gave it back.
const TOO_OLD: &str = "expired";
const TOO_MANY: &str = "dropped";

impl TaskQueueMut<'_, '_> {
    /// Puts a task that has left its state among the dead ones, or into the queue for dead tasks.
    pub(super) async fn bury(
        &self,
        id: &Bytes,
        row: &TaskRow,
        options: &TaskOptions,
    ) -> Result<(), StoreError> {
        if !self.moved_away(id, row, options).await? {
            self.enter(id, row).await?;
        }
        Ok(())
    }

    /// Removes a task that is too old, or moves it to the queue for dead tasks, if there is one.
    /// The caller calls [`remove_if_empty`] afterwards.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn expire(
        &self,
        id: &Bytes,
        row: TaskRow,
        options: &TaskOptions,
    ) -> Result<(), StoreError> {
        self.discard(id, row, options, TOO_OLD).await?;
        let context = self.context;
        context.notify_of(EventClasses::MODULE, "task.expire", self.key);
        Ok(())
    }

    async fn discard(
        &self,
        id: &Bytes,
        mut row: TaskRow,
        options: &TaskOptions,
        reason: &'static str,
    ) -> Result<(), StoreError> {
        self.stop_waiting(&row).await?;
        self.show_wait(id, &row, Some(reason));
        self.leave(&row);
        if options.dead_letter.is_none() {
            self.erase(id, &row)?;
            self.context.count_change(self.key, -1);
            return Ok(());
        }
        row.state = TaskState::Dead;
        row.at_ms = self.context.now_ms;
        row.notes.reason = Some(Bytes::from_static(reason.as_bytes()));
        self.bury(id, &row, options).await
    }

    /// Moves a task that has left its state to the queue for dead tasks. Returns false if there is
    /// no such queue, or if it does not accept the task.
    async fn moved_away(
        &self,
        id: &Bytes,
        row: &TaskRow,
        options: &TaskOptions,
    ) -> Result<bool, StoreError> {
        // Background work has a context of its own, and does not know the database of a key that no client sees.
        let (Some(name), Some(database)) = (&options.dead_letter, self.key.database) else {
            return Ok(false);
        };
        let payload = self.context.load_value(self.key.data(), &row.payload);
        let payload = payload.await?;
        let written = self.context.transaction.size_bytes() + payload.len();
        let bytes_max = self.context.environment.capabilities.transaction_bytes_max;
        if written > bytes_max.saturating_sub(MOVE_ROOM_BYTES) {
            return Ok(false);
        }
        let registry = self.registry(self.context.relaxed()).await?;
        let mut moved = row.clone();
        moved.state = TaskState::Ready;
        moved.tries = 0;
        moved.at_ms = self.context.now_ms;
        moved.notes.expires_ms = None;
        let moved = TakenOut {
            needs: named(&registry, row.mask, &row.amounts),
            row: moved,
            payload,
        };
        match self.put_into(database, name, id, moved).await {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(CommandError::Store(error)) => return Err(error),
            // The queue has another type, a task with this id, or too many resources. Nothing was
            // written yet.
            Err(_) => return Ok(false),
        }
        self.erase(id, row)?;
        self.context.count_change(self.key, -1);
        Ok(true)
    }

    /// Puts a task into another queue. Returns false if that is this queue.
    async fn put_into(
        &self,
        database: u32,
        name: &Bytes,
        id: &Bytes,
        task: TakenOut,
    ) -> Result<bool, CommandError> {
        let context = self.context.for_database(i64::from(database))?;
        let key = context.find_or_create(name, ValueType::TaskQueue).await?;
        // RENAME and COPY may have put it there.
        if key.data() == self.key.data() {
            return Ok(false);
        }
        TaskQueueMut::open(&context, &key).put_in(id, task).await?;
        context.notify(EventClasses::MODULE, "task.add", name);
        Ok(true)
    }

    /// Makes room for a task of a group, if the queue has a maximum length.
    ///
    /// # Errors
    /// `Text` if the queue is full and does not drop tasks, or has none to drop.
    pub(super) async fn make_room(
        &self,
        options: &TaskOptions,
        group: Option<&Bytes>,
    ) -> Result<(), CommandError> {
        let length_max = options.number(TaskNumber::LengthMax);
        if length_max == 0 {
            return Ok(());
        }
        // Without conflicts, so that additions of several servers do not run again.
        let isolation = self.context.relaxed();
        let (length, dead) = try_join(
            self.context.length(self.key, isolation),
            self.counter_in(TaskCounter::Dead, isolation),
        )
        .await?;
        let mut surplus = (length - dead).saturating_sub(length_max).saturating_add(1);
        for _ in 0..DROPPED_PER_ADD {
            if surplus <= 0 {
                return Ok(());
            }
            let oldest = match options.number(TaskNumber::DropsOldest) {
                0 => None,
                _ => self.oldest_of_last_priority(group).await?,
            };
            let Some((id, row)) = oldest else {
                return Err(CommandError::text("FULL Task queue is full"));
            };
            self.discard(&id, row, options, TOO_MANY).await?;
            self.context
                .notify_of(EventClasses::MODULE, "task.drop", self.key);
            surplus -= 1;
        }
        Ok(())
    }
}

impl TaskQueue<'_, '_> {
    /// The earliest ready task of the last priority, in a group if one is given, otherwise in the
    /// last group.
    async fn oldest_of_last_priority(
        &self,
        group: Option<&Bytes>,
    ) -> Result<Option<(Bytes, TaskRow)>, StoreError> {
        let registry = self.registry(self.context.relaxed()).await?;
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut found = None;
        if registry.has_groups {
            let range = |class| layout.task_group_order(data, class, group.map(AsRef::as_ref));
            found = self.oldest_in(&registry, range).await?;
        }
        if found.is_none() {
            let range = |class| KeyRange::children(&layout.task_order_prefix(data, class));
            found = self.oldest_in(&registry, range).await?;
        }
        let Some((_, id)) = found else {
            return Ok(None);
        };
        let row = self.row(&id, Isolation::Serializable).await?;
        Ok(row
            .filter(|row| row.state == TaskState::Ready)
            .map(|row| (id, row)))
    }

    /// The place and id of the earliest ready task of the last group and priority, in a range of
    /// each class.
    async fn oldest_in(
        &self,
        registry: &TaskRegistry,
        range: impl Fn(u32) -> KeyRange,
    ) -> Result<Option<(TaskPlace, Bytes)>, StoreError> {
        let classes = registry.classes.iter().zip(0_u32..);
        // Concurrently, because on a cluster each read is a round trip.
        let oldest = classes.map(async |(class, number)| {
            let layout = self.context.layout();
            let prefix = layout.task_order_prefix(self.key.data(), number).len();
            let isolation = self.context.relaxed();
            let range = range(number);
            let Some(last) = self.context.outermost(&range, true, isolation).await? else {
                return Ok::<_, StoreError>(None);
            };
            let length = layout.task_priority_length(prefix, &last.key)?;
            let of_priority = KeyRange::children(&last.key.slice(..length.min(last.key.len())));
            let first = { self.context }.outermost(&of_priority, false, isolation);
            let first = first.await?.unwrap_or(last);
            let place = OrderPlace::decode(first.key.get(prefix..).unwrap_or_default())?.place;
            let resources = class.mask.count_ones() as usize;
            Ok(Some((place, OrderRow::decode(resources, &first.value)?.id)))
        });
        let oldest = try_join_all(oldest).await?.into_iter().flatten();
        Ok(oldest.max_by(|(one, _), (other, _)| {
            let by_priority = one.priority.total_cmp(&other.priority);
            by_priority.then(other.index.cmp(&one.index))
        }))
    }
}

impl TaskQueueMut<'_, '_> {
    /// Writes the row that says when a task is too old.
    pub(super) fn set_end(&self, id: &[u8], row: &TaskRow) {
        if let Some(at_ms) = row.notes.expires_ms {
            let layout = self.context.layout();
            let end = layout.task_end_key(self.key.data(), at_ms, TaskEnding::Task, id);
            self.context.transaction.set(&end, b"");
            self.context.set_timer(self.key, at_ms);
        }
    }

    /// Removes that row.
    pub(super) fn clear_end(&self, id: &[u8], row: &TaskRow) {
        if let Some(at_ms) = row.notes.expires_ms {
            let layout = self.context.layout();
            let end = layout.task_end_key(self.key.data(), at_ms, TaskEnding::Task, id);
            self.context.transaction.clear(&end);
        }
    }
}
