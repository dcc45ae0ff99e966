//! From a request to the row of its command, or to the error with which Redis refuses it.

use bytes::Bytes;

use super::row::Row;
use super::table::find;
use crate::error::CommandError;

/// Bytes of an unknown command that its error repeats.
const UNKNOWN_NAME_BYTES_MAX: usize = 128;

/// The rows of a request.
#[derive(Clone, Copy)]
pub struct Resolved {
    /// The command's.
    pub command: &'static Row,
    /// The subcommand's where the request names one, else the command's.
    pub row: &'static Row,
}

/// Why a request is no command that can be run.
pub struct Refusal {
    /// The row, where there is such a command.
    pub row: Option<&'static Row>,
    /// Redis's error line.
    pub line: String,
}

impl Resolved {
    /// `container|subcommand`, or the command's name.
    pub fn full_name(&self) -> String {
        if std::ptr::eq(self.command, self.row) {
            self.row.name.to_owned()
        } else {
            format!("{}|{}", self.command.name, self.row.name)
        }
    }
}

/// Looks a command up and counts its arguments, as `processCommand` of Redis does.
///
/// # Errors
/// Redis's, where there is no such command or the number of arguments does not fit it.
pub fn resolve(arguments: &[Bytes]) -> Result<Resolved, Refusal> {
    let unknown = |line| Refusal { row: None, line };
    let Some(name) = arguments.first() else {
        return Err(unknown("ERR unknown command ''".to_owned()));
    };
    let Some(command) = find(name) else {
        return Err(unknown(unknown_command(name, arguments)));
    };
    let subcommand = command.subcommand(arguments);
    if subcommand.is_none() && !command.subcommands.is_empty() && arguments.len() > 1 {
        return Err(unknown(unknown_subcommand(command, arguments)));
    }
    let resolved = Resolved {
        command,
        row: subcommand.unwrap_or(command),
    };
    if !resolved.row.accepts(arguments.len()) {
        return Err(Refusal {
            row: Some(resolved.row),
            line: CommandError::WrongArity(resolved.full_name()).to_line(),
        });
    }
    Ok(resolved)
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

fn unknown_subcommand(row: &Row, arguments: &[Bytes]) -> String {
    let name = arguments.get(1).map_or(&b""[..], Bytes::as_ref);
    format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        clipped(name, UNKNOWN_NAME_BYTES_MAX),
        row.name.to_ascii_uppercase()
    )
}
