//! Log lines about clients that change the server: its settings, its users, or that it stops. And the
//! redaction of passwords among arguments, for logs and MONITOR.

use std::borrow::Cow;

use bytes::Bytes;

use crate::clients::cut;
use crate::session::Session;
use quoin_base::limits::{LOG_TEXT_BYTES_MAX, SLOWLOG_ARGUMENT_BYTES_MAX, SLOWLOG_ARGUMENTS_MAX};
use quoin_data::command::arguments::is_word;

/// Logs a command that has changed the server, and the client that sent it. Passwords are redacted.
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

/// A rule of a user, without its password or password hash.
fn without_password(rule: &Bytes) -> Bytes {
    match rule.first() {
        Some(sign @ (b'>' | b'<' | b'#' | b'!')) => {
            Bytes::from([&[*sign], &b"(redacted)"[..]].concat())
        }
        _ => rule.clone(),
    }
}

/// An argument, escaped and cut for the log.
fn loggable(argument: &Bytes) -> String {
    let beginning = argument.get(..SLOWLOG_ARGUMENT_BYTES_MAX);
    let shown = beginning.unwrap_or(argument);
    let mut text = String::from_utf8_lossy(shown).escape_debug().to_string();
    if shown.len() < argument.len() {
        text.push_str(&format!("… ({} more bytes)", argument.len() - shown.len()));
    }
    text
}

/// The arguments with `(redacted)` instead of passwords, as in Redis.
pub(super) fn without_secrets(arguments: &[Bytes]) -> Cow<'_, [Bytes]> {
    let word = |at: usize| arguments.get(at).map_or(&b""[..], Bytes::as_ref);
    let is_secret: &dyn Fn(usize) -> bool = if is_word(word(0), "auth") {
        &|at| at >= 1
    } else if is_word(word(0), "hello") {
        &|at| (1..=2).any(|back| at >= back && is_word(word(at - back), "auth"))
    } else if is_word(word(0), "migrate") {
        &|at| {
            let follows = |back: usize, option| at >= 6 + back && is_word(word(at - back), option);
            follows(1, "auth") || follows(1, "auth2") || follows(2, "auth2")
        }
    } else if is_word(word(0), "acl") && is_about_users(word(1)) {
        &|at| at >= 2
    } else if is_word(word(0), "config") && is_word(word(1), "set") {
        &|at| at >= 3 && quoin_config::is_secret(word(at - 1))
    } else {
        return Cow::Borrowed(arguments);
    };
    let shown = arguments.iter().enumerate().map(|(at, argument)| {
        if is_secret(at) {
            Bytes::from_static(b"(redacted)")
        } else {
            argument.clone()
        }
    });
    Cow::Owned(shown.collect())
}

/// Subcommands of ACL that name users and their rules.
fn is_about_users(subcommand: &[u8]) -> bool {
    let known = ["setuser", "deluser", "getuser"];
    known.iter().any(|known| is_word(subcommand, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_setting_is_shown() {
        let names = [
            "requirepass",
            "masterauth",
            "masteruser",
            "tls-key-file-pass",
            "tls-client-key-file-pass",
            "fdb-tls-password",
            "Requirepass",
        ];
        for name in names {
            let words = ["CONFIG", "SET", name, "secret", "timeout", "1"];
            let words: Vec<Bytes> = words.map(|word| Bytes::from(word.to_owned())).to_vec();
            assert_eq!(without_secrets(&words)[3], "(redacted)", "{name}");
            assert_eq!(without_secrets(&words)[5], "1");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for (given, shown) in [
            ("AUTH a b", "AUTH (redacted) (redacted)"),
            (
                "HELLO 3 AUTH u p SETNAME n",
                "HELLO 3 AUTH (redacted) (redacted) SETNAME n",
            ),
            (
                "CONFIG SET timeout 1 requirepass p",
                "CONFIG SET timeout 1 requirepass (redacted)",
            ),
            (
                "MIGRATE h 1 k 0 9 AUTH p COPY",
                "MIGRATE h 1 k 0 9 AUTH (redacted) COPY",
            ),
            (
                "MIGRATE auth auth k 0 9 AUTH2 u p KEYS a b",
                "MIGRATE auth auth k 0 9 AUTH2 (redacted) (redacted) KEYS a b",
            ),
            (
                "ACL SETUSER alice on >p",
                "ACL SETUSER (redacted) (redacted) (redacted)",
            ),
            ("ACL DELUSER alice", "ACL DELUSER (redacted)"),
            ("ACL GETUSER alice", "ACL GETUSER (redacted)"),
            ("ACL CAT read", "ACL CAT read"),
            ("LPUSH auth a", "LPUSH auth a"),
        ] {
            let words: Vec<Bytes> = given
                .split(' ')
                .map(|word| word.to_owned().into())
                .collect();
            let words: Vec<_> = without_secrets(&words).iter().cloned().collect();
            assert_eq!(words.join(&b' '), shown.as_bytes());
        }
    }
}
