//! Spans in OpenTelemetry's form. Spans of tasks have the attributes of its messaging conventions
//! (<https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/>), and spans of
//! commands those of its database conventions (<https://opentelemetry.io/docs/specs/semconv/db/>).

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::slowlog::SlowCommand;
use quoin_base::random::{Random, SystemRandom};
use quoin_data::unit::spans::{TaskPart, TaskPartEnd, TaskSpan, shown};

/// The value of `messaging.system` and `db.system.name`.
const SYSTEM: &str = "quoin";

/// The span of a part of a task's life.
pub(super) fn of_task(span: TaskSpan) -> SpanData {
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
        parent_span_id: SpanId::from_bytes(span.parent.span.to_be_bytes()),
        parent_span_is_remote: true,
        span_kind: kind,
        start_time: time(span.start_ms),
        end_time: time(span.end_ms.unwrap_or(span.start_ms)),
        attributes,
        status,
        ..bare(
            span.parent.trace,
            span.id,
            format!("{operation} {}", span.queue).into(),
        )
    }
}

/// The span of a slow command, as a separate trace. Except for a key, its arguments stay in the
/// slow log.
pub(super) fn of_command(command: &SlowCommand<'_>, now_ms: i64) -> SpanData {
    let operation = command.row.name.to_ascii_uppercase();
    let mut attributes = vec![
        KeyValue::new("db.system.name", SYSTEM),
        KeyValue::new("db.operation.name", operation.clone()),
        KeyValue::new("db.namespace", command.database.to_string()),
        KeyValue::new("client.address", command.client.address.to_string()),
    ];
    if let Some(key) = command.row.keys_in(command.arguments).next() {
        attributes.push(KeyValue::new("quoin.key", shown(key)));
    }
    let mut status = Status::Unset;
    if let Some(line) = command.error {
        let code = line.split(' ').next().unwrap_or_default();
        attributes.push(KeyValue::new("error.type", code.to_owned()));
        status = Status::error(code.to_owned());
    }
    let (high, low) = (SystemRandom.next_u64().max(1), SystemRandom.next_u64());
    let trace = u128::from(high) << 64 | u128::from(low);
    let end_time = time(now_ms);
    let duration = Duration::from_micros(u64::try_from(command.duration_us).unwrap_or(0));
    SpanData {
        span_kind: SpanKind::Server,
        start_time: end_time.checked_sub(duration).unwrap_or(end_time),
        end_time,
        attributes,
        status,
        ..bare(trace, SystemRandom.next_u64().max(1), operation.into())
    }
}

/// A span without a parent, times and attributes.
fn bare(trace: u128, id: u64, name: Cow<'static, str>) -> SpanData {
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(trace.to_be_bytes()),
            SpanId::from_bytes(id.to_be_bytes()),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name,
        start_time: SystemTime::UNIX_EPOCH,
        end_time: SystemTime::UNIX_EPOCH,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder(SYSTEM)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

/// The name, kind and type of a part of a task's life among operations on messages.
fn terms(part: TaskPart) -> (&'static str, SpanKind, &'static str) {
    match part {
        TaskPart::Add => ("add", SpanKind::Producer, "send"),
        // Nothing happens meanwhile. It ends when the task is received.
        TaskPart::Wait => ("wait", SpanKind::Internal, "receive"),
        TaskPart::Run => ("run", SpanKind::Consumer, "process"),
    }
}

/// The name of a successful outcome.
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
