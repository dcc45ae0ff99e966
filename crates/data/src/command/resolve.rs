//! Resolves a request to the row of its command, or to Redis's error.

use bytes::Bytes;

use crate::command::flags::Flags;
use crate::command::row::Row;
use crate::error::CommandError;
use crate::table::{find, find_on_sentinel, find_subcommand};

/// Most bytes of an unknown command to repeat in the error.
const UNKNOWN_NAME_BYTES_MAX: usize = 128;

/// Why a request cannot be executed.
pub struct Refusal {
    /// The row, if there is such a command.
    pub row: Option<&'static Row>,
    /// Redis's error line.
    pub line: String,
}

/// Looks up a command or its subcommand and checks the number of arguments, as `processCommand` of Redis does.
///
/// # Errors
/// Redis's, if there is no such command or the number of arguments is wrong.
pub fn resolve(arguments: &[Bytes]) -> Result<&'static Row, Refusal> {
    resolve_by(arguments, find, find_subcommand)
}

/// [`resolve`] on the Sentinel port.
///
/// # Errors
/// Likewise.
pub fn resolve_on_sentinel(arguments: &[Bytes]) -> Result<&'static Row, Refusal> {
    resolve_by(arguments, find_on_sentinel, |command, word| {
        find_subcommand(command, word).filter(|row| row.flags.contains(Flags::SENTINEL))
    })
}

fn resolve_by(
    arguments: &[Bytes],
    find: impl Fn(&[u8]) -> Option<&'static Row>,
    find_subcommand: impl Fn(&Row, &[u8]) -> Option<&'static Row>,
) -> Result<&'static Row, Refusal> {
    let unknown = |line| Refusal { row: None, line };
    let Some(name) = arguments.first() else {
        return Err(unknown("ERR unknown command ''".to_owned()));
    };
    let Some(command) = find(name) else {
        return Err(unknown(unknown_command(name, arguments)));
    };
    let row = match arguments.get(1) {
        Some(word) if !command.subcommands.is_empty() => find_subcommand(command, word)
            .ok_or_else(|| unknown(unknown_subcommand(command, word)))?,
        _ => command,
    };
    if !row.accepts(arguments.len()) {
        return Err(Refusal {
            row: Some(row),
            line: CommandError::WrongArity(row.name.to_owned()).to_line(),
        });
    }
    Ok(row)
}

fn clipped(text: &[u8], bytes_max: usize) -> String {
    // Redis formats these as C strings, which end at a zero byte.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = text.get(..bytes_max).unwrap_or(text);
    String::from_utf8_lossy(text).replace(['\r', '\n'], " ")
}

fn unknown_command(name: &[u8], arguments: &[Bytes]) -> String {
    let mut beginning = String::new();
    for argument in arguments.iter().skip(1) {
        if beginning.len() >= UNKNOWN_NAME_BYTES_MAX {
            break;
        }
        let room = UNKNOWN_NAME_BYTES_MAX - beginning.len();
        beginning.push_str(&format!("'{}' ", clipped(argument, room)));
    }
    format!(
        "ERR unknown command '{}', with args beginning with: {beginning}",
        clipped(name, UNKNOWN_NAME_BYTES_MAX)
    )
}

fn unknown_subcommand(row: &Row, name: &[u8]) -> String {
    format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        clipped(name, UNKNOWN_NAME_BYTES_MAX),
        row.name.to_ascii_uppercase()
    )
}
