//! Priority-queue commands, which are Quoin's own. Their forms are those of Redis's sorted-set
//! commands.

use crate::error::CommandError;
use crate::pqueue::QueuedValue;
use quoin_base::number::parse_double;
use quoin_layout::{Priority, PriorityNumber};
use quoin_resp::reply::Reply;

mod blocking;
mod dumping;
mod pop;
mod push;
mod read;
mod rows;
#[cfg(test)]
mod tests;

pub use blocking::ROWS as BLOCKING_ROWS;
pub use rows::ROWS;

/// The 64-bit integer that a text is, if it is nothing but a sign and digits.
fn whole_number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A priority: an integer where it is written as one and has 64 bits, else a double as Redis
/// reads scores.
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
