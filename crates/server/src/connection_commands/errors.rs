//! Errors that several commands of the server share.

use bytes::Bytes;

use quoin_data::error::CommandError;

/// An argument as text, for an error that repeats it.
pub(super) fn lossy_text(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}

/// An error whose text is made at run time.
pub(super) fn refusal(line: String) -> CommandError {
    CommandError::Text(line.into())
}

/// Redis's error for a subcommand whose arguments have none of the known forms.
pub(super) fn unknown_or_wrong_number(arguments: &[Bytes]) -> CommandError {
    let word = |at: usize| arguments.get(at).map_or(&b""[..], Bytes::as_ref);
    let subcommand = word(1);
    refusal(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
        lossy_text(subcommand.get(..128).unwrap_or(subcommand)),
        lossy_text(word(0)).to_uppercase()
    ))
}

/// The command table has a subcommand that the code has not: a mistake of ours.
pub(super) fn not_implemented() -> CommandError {
    CommandError::text("ERR command is not carried out by this server")
}
