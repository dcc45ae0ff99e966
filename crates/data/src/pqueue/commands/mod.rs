//! Commands of priority queues. Redis does not have them; their syntax follows that of sorted-set commands.

use crate::error::CommandError;
use crate::pqueue::QueuedValue;
use quoin_base::number::parse_double;
use quoin_layout::{Priority, PriorityNumber};
use quoin_resp::reply::Reply;

mod push_pop;
mod read;
mod rows;

pub use rows::ROWS;

/// The event of a push. Like modules of Redis, it names the command.
pub(super) const PUSH_EVENT: &str = "pq.push";

/// Parses a 64-bit integer: an optional sign and digits.
fn whole_number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a priority: a 64-bit integer, or else a double as Redis parses scores.
fn priority(argument: &[u8]) -> Result<Priority, CommandError> {
    whole_number(argument)
        .map(Priority::integer)
        .or_else(|| Priority::double(parse_double(argument)?))
        .ok_or(CommandError::text("ERR priority is not a valid float"))
}

fn priority_reply(priority: &Priority) -> Reply {
    match priority.number() {
        PriorityNumber::Integer(number) => Reply::Whole(number),
        PriorityNumber::Double(number) => Reply::Double(number),
    }
}

fn value_and_priority(one: QueuedValue) -> (Reply, Reply) {
    let priority = priority_reply(&one.priority);
    (Reply::Bulk(one.value), priority)
}
