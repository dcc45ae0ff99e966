//! What commands with subcommands have in common.

use bytes::Bytes;

use crate::error::CommandError;
use crate::reply::Reply;

/// Bytes of a subcommand that an error repeats (Redis: 128).
const SHOWN_BYTES_MAX: usize = 128;

/// The reply to HELP: Redis's frame around the lines on each subcommand.
pub(super) fn help(command: &str, lines: &[&'static str]) -> Reply {
    let title = match command {
        "OBJECT" => "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        _ => "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    };
    let frame_end = ["HELP", "    Print this help."];
    let lines = std::iter::once(title)
        .chain(lines.iter().copied())
        .chain(frame_end);
    Reply::Array(lines.map(Reply::Simple).collect())
}

/// The refusal of a subcommand that there is not, or not with so many arguments. The server
/// mostly refuses those itself, before it comes to this.
pub(super) fn unknown(command: &str, arguments: &[Bytes]) -> CommandError {
    let word = arguments.get(1).map_or(&b""[..], Bytes::as_ref);
    let shown = word.get(..SHOWN_BYTES_MAX).unwrap_or(word);
    let shown = String::from_utf8_lossy(shown);
    CommandError::Text(
        format!(
            "ERR unknown subcommand or wrong number of arguments for '{shown}'. Try {command} HELP."
        )
        .into(),
    )
}
