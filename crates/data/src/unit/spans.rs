//! What traces show about tasks that carry a `traceparent`: spans, which a server sends to a
//! collector (docs/understand/decisions/054-traces.md).

use std::cell::{Cell, RefCell};

use quoin_base::limits::{TRACE_SPANS_MAX, TRACE_TEXT_BYTES_MAX};

/// The flag of a `traceparent` that says that its trace is recorded.
const SAMPLED: u8 = 1;

/// A client's text as a span shows it, cut off if it is long.
pub fn shown(text: &[u8]) -> String {
    let beginning = text.get(..TRACE_TEXT_BYTES_MAX).unwrap_or(text);
    String::from_utf8_lossy(beginning).into_owned()
}

/// The span that a `traceparent` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The id of the trace.
    pub trace: u128,
    /// The id of the span.
    pub span: u64,
}

impl TraceParent {
    /// Reads a `traceparent`. `None` if its trace is not recorded, or if it is malformed.
    pub fn sampled(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut parts = text.split('-').skip(1);
        let trace = u128::from_str_radix(parts.next()?, 16).ok()?;
        let span = u64::from_str_radix(parts.next()?, 16).ok()?;
        let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
        (flags & SAMPLED != 0).then_some(Self { trace, span })
    }
}

/// A part of a task's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPart {
    /// It is being added, until that is durable.
    Add,
    /// It is ready, until a consumer takes it.
    Wait,
    /// A consumer has it on lease.
    Run,
}

/// How a part of a task's life has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskPartEnd {
    /// Success: it was added, taken or acknowledged.
    Done,
    /// A client has removed the task.
    Cancelled,
    /// Failure.
    Failed {
        /// The kind of failure, one of a few words.
        kind: &'static str,
        /// The consumer's reason.
        reason: Option<String>,
        /// Whether the task will not be tried again.
        is_last: bool,
    },
}

/// A part of a task's life that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpan {
    /// The span that added the task.
    pub parent: TraceParent,
    /// Its own id, not 0.
    pub id: u64,
    /// The part.
    pub part: TaskPart,
    /// The number of the queue's database.
    pub database: u32,
    /// The queue's name.
    pub queue: String,
    /// The task's id.
    pub task: String,
    /// The consumer that takes or has the task, if it has a name.
    pub worker: Option<String>,
    /// How often the task has been taken.
    pub tries: i64,
    /// When it began, in Unix milliseconds.
    pub start_ms: i64,
    /// When it ended. `None` for an addition, which ends when the batch is durable.
    pub end_ms: Option<i64>,
    /// How it ended.
    pub end: TaskPartEnd,
}

/// Receives spans of batches that are durable.
pub trait SpanReceiver: Send + Sync {
    /// Sends spans to a collector. Never waits.
    fn receive(&self, ended: EndedSpans);
}

/// The spans of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EndedSpans {
    /// The spans.
    pub spans: Vec<TaskSpan>,
    /// Number of spans left out because there were too many.
    pub left_out: u64,
}

impl EndedSpans {
    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.left_out == 0
    }
}

/// The spans that one attempt at a batch has ended, up to [`TRACE_SPANS_MAX`].
#[derive(Debug, Default)]
pub struct Spans {
    spans: RefCell<Vec<TaskSpan>>,
    left_out: Cell<u64>,
}

/// A state of [`Spans`] that can be restored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpansSavepoint {
    length: usize,
    left_out: u64,
}

impl Spans {
    /// Adds a span.
    pub(crate) fn push(&self, span: TaskSpan) {
        let mut spans = self.spans.borrow_mut();
        match spans.len() < TRACE_SPANS_MAX {
            true => spans.push(span),
            false => self.left_out.set(self.left_out.get() + 1),
        }
    }

    pub(crate) fn savepoint(&self) -> SpansSavepoint {
        SpansSavepoint {
            length: self.spans.borrow().len(),
            left_out: self.left_out.get(),
        }
    }

    /// Discards what was added since the savepoint.
    pub(crate) fn rollback(&self, savepoint: SpansSavepoint) {
        self.spans.borrow_mut().truncate(savepoint.length);
        self.left_out.set(savepoint.left_out);
    }

    /// Takes all spans.
    pub fn take(&self) -> EndedSpans {
        EndedSpans {
            spans: self.spans.take(),
            left_out: self.left_out.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: u64) -> TaskSpan {
        TaskSpan {
            parent: TraceParent { trace: 1, span: 1 },
            id,
            part: TaskPart::Add,
            database: 0,
            queue: String::new(),
            task: String::new(),
            worker: None,
            tries: 0,
            start_ms: 0,
            end_ms: None,
            end: TaskPartEnd::Done,
        }
    }

    #[test]
    fn spans_beyond_the_bound_are_counted_and_their_count_is_undone() {
        let spans = Spans::default();
        spans.push(span(0));
        let before = spans.savepoint();
        for id in 1..=TRACE_SPANS_MAX as u64 + 1 {
            spans.push(span(id));
        }
        let full = spans.savepoint();
        spans.push(span(0));
        spans.rollback(full);
        assert_eq!((full.length, full.left_out), (TRACE_SPANS_MAX, 2));
        spans.rollback(before);
        let ended = spans.take();
        assert_eq!((ended.spans, ended.left_out), (vec![span(0)], 0));
        assert!(spans.take().is_empty());
    }
}
