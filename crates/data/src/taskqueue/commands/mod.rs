//! The commands of task queues. Redis does not have them; see docs/start/task-queues.md.

mod arguments;
pub(super) mod options;
pub(super) mod read;
mod rows;
pub(super) mod schedules;
pub(super) mod steering;
pub(super) mod write;

pub use rows::ROWS;

use bytes::Bytes;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::taskqueue::Task;
use crate::taskqueue::resources::Amounts;
use crate::unit::context::ReadContext;

/// A queue that exists for clients.
///
/// # Errors
/// `NoSuchKey` if it does not.
async fn existing(context: &ReadContext<'_>, name: &Bytes) -> Result<OpenKey, CommandError> {
    match context.find(name, ValueType::TaskQueue).await? {
        Some(key) if context.has_elements(&key).await? => Ok(key),
        _ => Err(CommandError::NoSuchKey),
    }
}

/// Amounts by resource.
fn amounts(amounts: &Amounts) -> Reply {
    let pairs = amounts.0.iter();
    Reply::Map(
        pairs
            .map(|(name, amount)| (Reply::Bulk(name.clone()), Reply::Double(*amount)))
            .collect(),
    )
}

/// The parts of a task: id, priority, tries, needs, payload.
fn parts(task: Task) -> Vec<Reply> {
    vec![
        Reply::Bulk(task.id),
        Reply::Double(task.priority),
        Reply::Integer(task.tries),
        amounts(&task.needs),
        Reply::Bulk(task.payload),
    ]
}

/// A task: its parts, and the token of its lease and its traceparent if it has them. If there is
/// only a traceparent, a null replaces the token, so that the traceparent is always the seventh
/// part.
fn task(task: Task, token: Option<u64>) -> Reply {
    let traceparent = task.notes.traceparent.clone();
    let mut parts = parts(task);
    let token = token.map(|token| Reply::bulk(format!("{token:016x}")));
    match traceparent {
        Some(traceparent) => {
            parts.extend([token.unwrap_or(Reply::Null), Reply::Bulk(traceparent)]);
        }
        None => parts.extend(token),
    }
    Reply::Array(parts)
}
