//! What the trace of a task shows: how long it waited to be taken, and how long each consumer held
//! it. A task is shown if it carries a `traceparent` whose trace is recorded, and this server sends
//! spans to a collector (docs/understand/decisions/054-traces.md).

use bytes::Bytes;

use super::TaskQueueMut;
use crate::unit::spans::{TaskPart, TaskPartEnd, TaskSpan, TraceParent, shown};
use quoin_layout::{TaskNotes, TaskRow};

impl TaskQueueMut<'_, '_> {
    /// The span that added a task, if the task is shown.
    fn trace_of(&self, notes: &TaskNotes) -> Option<TraceParent> {
        let traceparent = notes.traceparent.as_ref()?;
        self.context.environment.span_receiver.as_ref()?;
        TraceParent::sampled(traceparent)
    }

    /// Shows that a task was added.
    pub(super) fn show_addition(&self, id: &[u8], task: &TaskRow) {
        let times = (self.context.now_ms, None);
        self.show(id, task, TaskPart::Add, times, TaskPartEnd::Done);
    }

    /// Shows how long a task was ready, or that it was discarded for this reason. Called before its state changes.
    pub(super) fn show_wait(&self, id: &[u8], task: &TaskRow, discarded: Option<&'static str>) {
        // It is unknown of tasks of old versions.
        if task.at_ms == 0 {
            return;
        }
        let end = match discarded {
            None => TaskPartEnd::Done,
            Some(kind) => TaskPartEnd::Failed {
                kind,
                reason: None,
                is_last: true,
            },
        };
        let now_ms = self.context.now_ms;
        // A delayed task may be discarded before it is ready, and clocks of servers differ.
        let times = (task.at_ms.min(now_ms), Some(now_ms));
        self.show(id, task, TaskPart::Wait, times, end);
    }

    /// Notes when a task is taken, if it is shown.
    pub(super) fn begin_run(&self, notes: &mut TaskNotes) {
        notes.taken_ms = self.trace_of(notes).map(|_| self.context.now_ms);
    }

    /// Shows that the lease of a task, if it has one, ends with the task's removal.
    pub(super) fn end_run(&self, id: &[u8], task: &TaskRow, end: TaskPartEnd) {
        if let Some(taken_ms) = task.notes.taken_ms {
            let now_ms = self.context.now_ms;
            let times = (taken_ms.min(now_ms), Some(now_ms));
            self.show(id, task, TaskPart::Run, times, end);
        }
    }

    /// Shows that the lease of a task has ended without success.
    pub(super) fn fail_run(
        &self,
        id: &[u8],
        task: &mut TaskRow,
        kind: &'static str,
        reason: Option<&Bytes>,
        is_last: bool,
    ) {
        if task.notes.taken_ms.is_some() {
            let reason = reason.map(|reason| shown(reason));
            let end = TaskPartEnd::Failed {
                kind,
                reason,
                is_last,
            };
            self.end_run(id, task, end);
            // Also if it is not shown here, because another server may have recorded it.
            task.notes.taken_ms = None;
        }
    }

    fn show(
        &self,
        id: &[u8],
        task: &TaskRow,
        part: TaskPart,
        (start_ms, end_ms): (i64, Option<i64>),
        end: TaskPartEnd,
    ) {
        let Some(parent) = self.trace_of(&task.notes) else {
            return;
        };
        // Background work may not know the name of a key that no client sees.
        let Some(key) = self.key.client_key() else {
            return;
        };
        self.context.signals.spans.push(TaskSpan {
            parent,
            // 0 is the id of no span.
            id: self.context.environment.random.next_u64().max(1),
            part,
            database: key.database,
            queue: shown(&key.key),
            task: shown(id),
            worker: task.notes.worker.as_ref().map(|worker| shown(worker)),
            tries: task.tries,
            start_ms,
            end_ms,
            end,
        });
    }
}
