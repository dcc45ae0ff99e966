//! Errors and arguments that several commands share.

use std::time::Duration;

use bytes::Bytes;

use crate::state::ServerState;
use quoin_data::command::arguments::integer_or;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// An argument as text, for an error that repeats it.
pub(super) fn lossy_text(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}

/// An error with a text that is made at run time.
pub(super) fn refusal(line: String) -> CommandError {
    CommandError::Text(line.into())
}

/// Redis's error for a subcommand with arguments of an unknown form.
pub(super) fn unknown_or_wrong_number(arguments: &[Bytes]) -> CommandError {
    let word = |at: usize| arguments.get(at).map_or(&b""[..], Bytes::as_ref);
    let subcommand = word(1);
    refusal(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
        lossy_text(subcommand.get(..128).unwrap_or(subcommand)),
        lossy_text(word(0)).to_uppercase()
    ))
}

/// For a subcommand that the command table has and this code lacks, which is a bug.
pub(super) fn not_implemented() -> CommandError {
    CommandError::text("ERR command is not carried out by this server")
}

/// An integer.
pub(super) fn number(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Refuses values that would make the lines of CLIENT LIST unreadable.
pub(super) fn check_attribute(value: &[u8], what: &str) -> Result<(), CommandError> {
    if value.iter().all(u8::is_ascii_graphic) {
        Ok(())
    } else {
        Err(refusal(format!(
            "ERR {what} cannot contain spaces, newlines or special characters."
        )))
    }
}

/// A timeout in milliseconds. `None` waits forever.
pub(super) fn timeout(
    argument: &[u8],
    state: &ServerState,
) -> Result<Option<Duration>, CommandError> {
    let timeout_ms = integer_or(argument, "ERR timeout is not an integer or out of range")?;
    match u64::try_from(timeout_ms) {
        Err(_) => Err(CommandError::text("ERR timeout is negative")),
        Ok(0) => Ok(None),
        // Redis adds it to the current time.
        Ok(_) if timeout_ms > i64::MAX - state.clock.now_ms() => {
            Err(CommandError::text("ERR timeout is out of range"))
        }
        Ok(timeout_ms) => Ok(Some(Duration::from_millis(timeout_ms))),
    }
}
