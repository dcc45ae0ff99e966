//! The rows of the task queues' commands.

use super::{consume, inspect, produce};
use crate::commands::row::{Flags, Group, KeyPositions, KeyUse, Row};
use crate::{read_handler, write_handler};

const CHANGE: Flags = Flags::WRITE.and(Flags::FAST);

const fn task(name: &'static str, arity: i32) -> Row {
    Row {
        name,
        arity,
        flags: Flags::READONLY.and(Flags::FAST),
        keys: KeyPositions::FIRST,
        key_use: KeyUse::ReadWrite,
        since: "0.1.0",
        group: Group::TaskQueue,
        summary: "",
        complexity: "",
        handler: read_handler!(inspect::len),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

/// The task queues' commands.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
        summary: "Adds a task with a priority and what it needs to a task queue. Creates the key if it doesn't exist.",
        complexity: "O(log N)",
        handler: write_handler!(produce::add),
        ..task("task.add", -4)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING),
        summary: "Takes the first tasks in order that fit what the consumer has, for good or with a lease. Blocks until there is one, if asked to.",
        complexity: "O(log N) for each task, unless what single tasks need is hidden by others' needs (docs/task-queues.md)",
        handler: write_handler!(consume::take),
        waits: Some(consume::wait_for_task),
        ..task("task.take", -2)
    },
    Row {
        flags: CHANGE,
        summary: "Ends leased tasks that are done. Deletes the task queue if the last task was.",
        complexity: "O(log N) for each task",
        handler: write_handler!(consume::ack),
        ..task("task.ack", -3)
    },
    Row {
        flags: CHANGE,
        summary: "Gives a leased task back, at once or after a delay.",
        complexity: "O(log N)",
        handler: write_handler!(consume::nack),
        ..task("task.nack", -3)
    },
    Row {
        flags: CHANGE,
        summary: "Lets the lease of a task end so long from now.",
        complexity: "O(log N)",
        handler: write_handler!(consume::extend),
        ..task("task.extend", -4)
    },
    Row {
        flags: CHANGE,
        summary: "Removes tasks, whatever their state.",
        complexity: "O(log N) for each task",
        handler: write_handler!(produce::cancel),
        ..task("task.cancel", -3)
    },
    Row {
        flags: CHANGE,
        summary: "Makes dead tasks ready again.",
        complexity: "O(log N) for each task",
        handler: write_handler!(produce::revive),
        ..task("task.revive", -3)
    },
    Row {
        key_use: KeyUse::Read,
        summary: "Returns what is known of a task.",
        complexity: "O(log N)",
        handler: read_handler!(inspect::get),
        ..task("task.get", 3)
    },
    Row {
        flags: Flags::READONLY,
        key_use: KeyUse::Read,
        summary: "Returns the tasks that would be taken.",
        complexity: "As TASK.TAKE",
        handler: read_handler!(inspect::peek),
        ..task("task.peek", -2)
    },
    Row {
        key_use: KeyUse::Read,
        summary: "Returns the number of tasks in a task queue, of all or of a state.",
        complexity: "O(log N)",
        handler: read_handler!(inspect::len),
        ..task("task.len", -2)
    },
    Row {
        flags: Flags::READONLY,
        key_use: KeyUse::Read,
        summary: "Returns tasks that have been tried as often as they may be.",
        complexity: "O(log N + M), M being the tasks returned",
        handler: read_handler!(inspect::dead),
        ..task("task.dead", -2)
    },
    Row {
        key_use: KeyUse::Read,
        summary: "Returns counters of a task queue and what it knows of resources.",
        complexity: "O(log N)",
        handler: read_handler!(inspect::info),
        ..task("task.info", 2)
    },
];
