//! Passwords among arguments, which no log and no monitor shows.

use std::borrow::Cow;

use bytes::Bytes;

use crate::commands::arguments::is_word;

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
    } else if is_word(word(0), "acl") && is_word(word(1), "setuser") {
        &|at| at >= 2
    } else if is_word(word(0), "config") && is_word(word(1), "set") {
        &|at| {
            at >= 3
                && SECRET_PARAMETERS
                    .iter()
                    .any(|name| is_word(word(at - 1), name))
        }
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

/// Parameters whose values are redacted in CONFIG SET.
const SECRET_PARAMETERS: &[&str] = &["requirepass", "masterauth", "masteruser"];

#[cfg(test)]
mod tests {
    use super::*;

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
