//! Finds queues: a bounded number of names at a time, in the order of SCAN.

use quoin_client::{Client, ClientError};
use quoin_resp::wire::reply_reader::Value;

use crate::kind::Kind;
use crate::reply::{Words, expect, items, run_all, text};

/// Which queues to search for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only of this type. `None` means all types.
    pub kind: Option<Kind>,
    /// With names that match this glob pattern; empty for all.
    pub pattern: Vec<u8>,
}

/// Limits of one search.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Names that one SCAN examines.
    pub names_at_once: usize,
    /// Names in all, about.
    pub names_max: usize,
    /// Queues, about: the last SCAN may find more.
    pub queues_max: usize,
}

/// The result of a search.
#[derive(Debug)]
pub struct Names {
    /// Names and types.
    pub keys: Vec<(Vec<u8>, Kind)>,
    /// SCAN's cursor for the next search, or `None` after the last name.
    pub next: Option<String>,
    /// Names that were examined, about.
    pub examined: usize,
}

/// Finds queues of the selected database, starting at a SCAN cursor (`0` is the beginning).
///
/// # Errors
/// The connection's, and `Refused` if the user may not SCAN.
pub fn find(
    client: &mut Client,
    wanted: &Wanted,
    cursor: &str,
    bounds: Bounds,
) -> Result<Names, ClientError> {
    let mut names = Names {
        keys: Vec::new(),
        next: Some(cursor.to_owned()),
        examined: 0,
    };
    while let Some(cursor) = names.next.take() {
        let mut command = words!["SCAN", cursor, "COUNT", bounds.names_at_once.to_string()];
        if !wanted.pattern.is_empty() {
            command.extend(words!["MATCH", wanted.pattern]);
        }
        if let Some(kind) = wanted.kind {
            command.extend(words!["TYPE", kind.type_name()]);
        }
        let (next, found) = cursor_and_names(expect(client, &command)?);
        names.next = next;
        names.examined += bounds.names_at_once;
        let kinds = match wanted.kind {
            Some(kind) => vec![Some(kind); found.len()],
            None => kinds_of(client, &found)?,
        };
        let queues = found.into_iter().zip(kinds);
        let queues = queues.filter_map(|(name, kind)| Some((name, kind?)));
        names.keys.extend(queues);
        if names.keys.len() >= bounds.queues_max || names.examined >= bounds.names_max {
            break;
        }
    }
    Ok(names)
}

fn kinds_of(client: &mut Client, names: &[Vec<u8>]) -> Result<Vec<Option<Kind>>, ClientError> {
    let commands: Vec<Words> = names.iter().map(|name| words!["TYPE", name]).collect();
    let replies = run_all(client, &commands)?;
    let kinds = replies.iter().map(|reply| Kind::of_type(&text(reply)));
    Ok(kinds.collect())
}

/// The pattern for a text that a person typed. The text may occur anywhere in a name, unless it is
/// a pattern itself.
pub fn pattern_of(typed: &[u8]) -> Vec<u8> {
    match typed.iter().any(|byte| b"*?[".contains(byte)) {
        _ if typed.is_empty() => Vec::new(),
        true => typed.to_vec(),
        false => [b"*", typed, b"*"].concat(),
    }
}

/// The cursor in a reply of SCAN, if there is more, and the names.
pub fn cursor_and_names(reply: Value) -> (Option<String>, Vec<Vec<u8>>) {
    match items(&reply) {
        [cursor, names] => {
            let cursor = Some(text(cursor)).filter(|cursor| cursor != "0");
            (cursor, names.clone().into_strings().unwrap_or_default())
        }
        _ => (None, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_looked_for_anywhere() {
        assert_eq!(pattern_of(b"mail"), b"*mail*");
        assert_eq!(pattern_of(b"mail:?"), b"mail:?");
        assert_eq!(pattern_of(b""), b"");
    }
}
