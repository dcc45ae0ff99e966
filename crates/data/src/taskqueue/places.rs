//! Where tasks stand.

use quoin_layout::{Id, Layout, TaskRow, TaskState};

/// The row by which a task of its state is found.
pub(super) fn place_row(layout: &Layout, data: Id, task: &TaskRow) -> Vec<u8> {
    match task.state {
        TaskState::Ready => layout.task_order_key(data, task.class, &task.place),
        TaskState::Leased | TaskState::Delayed => {
            layout.task_due_key(data, task.at_ms, &task.place)
        }
        TaskState::Dead => layout.task_dead_key(data, task.at_ms, &task.place),
    }
}
