//! The states of tasks: the row by which a task of each state is found, and changes of state.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::TaskQueueMut;
use super::resources::named;
use quoin_layout::{Id, Layout, OrderRow, TaskCounter, TaskRow, TaskState};
use quoin_store::StoreError;

/// The row by which a task of its state is found.
pub(super) fn place_row(layout: &Layout, data: Id, task: &TaskRow) -> Vec<u8> {
    match task.state {
        TaskState::Ready => layout.task_order_key(data, task.class, &task.order_place()),
        TaskState::Leased | TaskState::Delayed => {
            layout.task_due_key(data, task.at_ms, &task.place)
        }
        TaskState::Dead => layout.task_dead_key(data, task.at_ms, &task.place),
        TaskState::Waiting => layout.task_waiting_key(data, task.at_ms, &task.place),
    }
}

/// The row that says that a task of a group is on lease; `None` for other tasks.
pub(super) fn group_lease_row(layout: &Layout, data: Id, task: &TaskRow) -> Option<Vec<u8>> {
    let group = task.notes.group.as_deref()?;
    let is_leased = task.state == TaskState::Leased;
    is_leased.then(|| layout.task_group_lease_key(data, group, &task.place))
}

/// The counter of a state. Ready tasks have none.
fn counter_of(state: TaskState) -> Option<TaskCounter> {
    match state {
        TaskState::Ready => None,
        TaskState::Leased => Some(TaskCounter::Leased),
        TaskState::Delayed => Some(TaskCounter::Delayed),
        TaskState::Dead => Some(TaskCounter::Dead),
        TaskState::Waiting => Some(TaskCounter::Waiting),
    }
}

impl TaskQueueMut<'_, '_> {
    fn count_state(&self, row: &TaskRow, delta: i64) {
        let is_of_group = row.state == TaskState::Leased && row.notes.group.is_some();
        let of_groups = is_of_group.then_some(TaskCounter::LeasedOfGroups);
        for counter in counter_of(row.state).into_iter().chain(of_groups) {
            let row = self
                .context
                .layout()
                .task_counter_key(self.key.data(), counter);
            self.context.transaction.atomic_add(&row, delta);
        }
    }

    /// Removes the row by which a task of its state is found. Its own row stays.
    pub(super) fn leave(&self, row: &TaskRow) {
        let place_row = place_row(self.context.layout(), self.key.data(), row);
        if row.state == TaskState::Ready {
            self.context.signals.item_left(&place_row);
        }
        self.context.transaction.clear(&place_row);
        if let Some(lease) = group_lease_row(self.context.layout(), self.key.data(), row) {
            self.context.transaction.clear(&lease);
        }
        self.count_state(row, -1);
    }

    /// Writes a task's own row, and the row by which a task of its state is found.
    pub(super) async fn enter(&self, id: &Bytes, row: &TaskRow) -> Result<(), StoreError> {
        let data = self.key.data();
        let place_row = place_row(self.context.layout(), data, row);
        match row.state {
            TaskState::Ready => {
                self.context
                    .transaction
                    .set(&place_row, &OrderRow::encode(&row.amounts, id));
                self.index_ready(row).await?;
                self.offer(row, place_row.into()).await?;
            }
            TaskState::Leased | TaskState::Delayed => {
                self.context.transaction.set(&place_row, id);
                self.context.set_timer(self.key, row.at_ms);
            }
            TaskState::Dead | TaskState::Waiting => {
                self.context.transaction.set(&place_row, id);
            }
        }
        if let Some(lease) = group_lease_row(self.context.layout(), data, row) {
            self.context.transaction.set(&lease, id);
        }
        self.count_state(row, 1);
        self.context
            .transaction
            .set(&self.context.layout().task_key(data, id), &row.encode());
        Ok(())
    }

    /// [`enter`](Self::enter) for several tasks.
    pub(super) async fn enter_all(&self, tasks: &[(Bytes, TaskRow)]) -> Result<(), StoreError> {
        if !self.context.environment.capabilities.has_other_writers {
            // One after another, because each changes the index.
            for (id, row) in tasks {
                self.enter(id, row).await?;
            }
            return Ok(());
        }
        // Concurrently, because on a cluster each read is a round trip.
        let enter = tasks.iter().map(|(id, row)| self.enter(id, row));
        try_join_all(enter).await?;
        Ok(())
    }

    /// Removes all rows of a task.
    pub(super) async fn remove(&self, id: &[u8], row: &TaskRow) -> Result<(), StoreError> {
        self.stop_waiting(row).await?;
        self.leave(row);
        self.erase(id, row)
    }

    /// Removes the rows of a task that has left its state.
    pub(super) fn erase(&self, id: &[u8], row: &TaskRow) -> Result<(), StoreError> {
        self.clear_end(id, row);
        self.context.discard_value(self.key.data(), &row.payload)?;
        self.context
            .transaction
            .clear(&self.context.layout().task_key(self.key.data(), id));
        Ok(())
    }

    /// Offers a task that has become ready to waiting clients. `place`: its row in the order.
    async fn offer(&self, row: &TaskRow, place: Bytes) -> Result<(), StoreError> {
        if let Some(client_key) = self.key.client_key() {
            let registry = self.registry(self.context.relaxed()).await?;
            if registry.options.is_paused {
                return Ok(());
            }
            let needs = named(&registry, row.mask, &row.amounts);
            let value_type = self.key.meta.value_type;
            let offer = Arc::new(needs);
            self.context
                .signals
                .item_ready(client_key, value_type, offer, place);
        }
        Ok(())
    }
}
