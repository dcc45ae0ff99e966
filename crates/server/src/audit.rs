//! The log's lines about who has changed the server: its settings, its users, or that it stops.

use std::borrow::Cow;

use bytes::Bytes;

use super::clients::cut;
use super::secrets::{is_about_users, without_secrets};
use super::session::Session;
use quoin_base::limits::{LOG_TEXT_BYTES_MAX, SLOWLOG_ARGUMENT_BYTES_MAX, SLOWLOG_ARGUMENTS_MAX};
use quoin_data::command::arguments::is_word;

/// Logs a command that has changed the server, and who sent it. Without secret values: of the rules of a
/// user, those that hold a password.
pub(super) fn log_change(arguments: &[Bytes], session: &Session) {
    let word = |at: usize| arguments.get(at).map_or(&b""[..], Bytes::as_ref);
    let is_users = is_word(word(0), "acl") && is_about_users(word(1));
    let shown = match is_users {
        true => Cow::Owned(arguments.iter().map(without_password).collect()),
        false => without_secrets(arguments),
    };
    let mut command: Vec<String> = shown
        .iter()
        .take(SLOWLOG_ARGUMENTS_MAX)
        .map(loggable)
        .collect();
    if shown.len() > command.len() {
        command.push(format!("… ({} more)", shown.len() - command.len()));
    }
    let name = cut(&session.client.details().name, LOG_TEXT_BYTES_MAX).to_owned();
    tracing::info!(
        user = loggable(session.user.name()),
        address = %session.client.address,
        name,
        "{}",
        command.join(" ")
    );
}

/// A rule of a user without its password, or the hash of one.
fn without_password(rule: &Bytes) -> Bytes {
    match rule.first() {
        Some(sign @ (b'>' | b'<' | b'#' | b'!')) => {
            Bytes::from([&[*sign], &b"(redacted)"[..]].concat())
        }
        _ => rule.clone(),
    }
}

/// An argument as a line of the log can hold it.
fn loggable(argument: &Bytes) -> String {
    let beginning = argument.get(..SLOWLOG_ARGUMENT_BYTES_MAX);
    let shown = beginning.unwrap_or(argument);
    let mut text = String::from_utf8_lossy(shown).escape_debug().to_string();
    if shown.len() < argument.len() {
        text.push_str(&format!("… ({} more bytes)", argument.len() - shown.len()));
    }
    text
}
