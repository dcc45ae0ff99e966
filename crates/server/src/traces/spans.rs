//! Spans of tasks in the form of OpenTelemetry, with the attributes of its conventions for messaging
//! (<https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/>).

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use quoin_data::unit::spans::{TaskPart, TaskPartEnd, TaskSpan};

/// The value of `messaging.system`.
const SYSTEM: &str = "quoin";

/// A span as exporters take it.
pub(super) fn exported(span: TaskSpan) -> SpanData {
    let (operation, kind, operation_type) = terms(span.part);
    let mut attributes = vec![
        KeyValue::new("messaging.system", SYSTEM),
        KeyValue::new("messaging.operation.name", operation),
        KeyValue::new("messaging.operation.type", operation_type),
        KeyValue::new("messaging.destination.name", span.queue.clone()),
        KeyValue::new("messaging.message.id", span.task),
        KeyValue::new("quoin.database", i64::from(span.database)),
    ];
    if let Some(worker) = span.worker {
        attributes.push(KeyValue::new("messaging.client.id", worker));
    }
    if span.part != TaskPart::Add {
        attributes.push(KeyValue::new("quoin.task.tries", span.tries));
    }
    let (outcome, status) = match span.end {
        TaskPartEnd::Done => (outcome(span.part), Status::Unset),
        TaskPartEnd::Cancelled => ("cancelled", Status::Unset),
        TaskPartEnd::Failed {
            kind,
            reason,
            is_last,
        } => {
            attributes.push(KeyValue::new("error.type", kind));
            let outcome = if is_last { "dead" } else { "retried" };
            let description = reason.map_or(kind.into(), Into::into);
            (outcome, Status::Error { description })
        }
    };
    attributes.push(KeyValue::new("quoin.task.outcome", outcome));
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(span.parent.trace.to_be_bytes()),
            SpanId::from_bytes(span.id.to_be_bytes()),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: SpanId::from_bytes(span.parent.span.to_be_bytes()),
        parent_span_is_remote: true,
        span_kind: kind,
        name: format!("{operation} {}", span.queue).into(),
        start_time: time(span.start_ms),
        end_time: time(span.end_ms.unwrap_or(span.start_ms)),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: InstrumentationScope::builder(SYSTEM)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

/// The name, kind and type of a part of a task's life among operations on messages.
fn terms(part: TaskPart) -> (&'static str, SpanKind, &'static str) {
    match part {
        TaskPart::Add => ("add", SpanKind::Producer, "send"),
        // Nobody does anything meanwhile. It ends when the task is received.
        TaskPart::Wait => ("wait", SpanKind::Internal, "receive"),
        TaskPart::Run => ("run", SpanKind::Consumer, "process"),
    }
}

/// How a part that ended as it should is called.
fn outcome(part: TaskPart) -> &'static str {
    match part {
        TaskPart::Add => "added",
        TaskPart::Wait => "taken",
        TaskPart::Run => "acknowledged",
    }
}

fn time(at_ms: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at_ms).unwrap_or(0))
}
