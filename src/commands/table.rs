//! All commands.

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::Bytes;

use super::{connection, keys, lists};
use super::row::{KeyPositions, Row};
use super::sorted_sets;
use crate::executor::Claims;

/// The families' tables.
const FAMILIES: &[&[Row]] = &[connection::ROWS, keys::ROWS, lists::ROWS, sorted_sets::ROWS];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Row>> =
    LazyLock::new(|| all().map(|row| (row.name, row)).collect());

/// Every command, by family.
pub fn all() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().copied().flatten()
}

/// Names are at most this long; longer ones are unknown without a look.
const NAME_BYTES_MAX: usize = 32;

/// The command of this name, in whatever case it is written.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    let mut lower = [0_u8; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    let name = std::str::from_utf8(lower).ok()?;
    BY_NAME.get(name).copied()
}

/// What a command claims of the keyspace: its keys, or everything where it writes and does not
/// name keys.
pub fn claims(row: &Row, database: u32, arguments: &[Bytes]) -> Claims {
    if row.keys == KeyPositions::None {
        return if row.flags.contains(super::row::Flags::WRITE) {
            Claims::Everything
        } else {
            Claims::Nothing
        };
    }
    let keys = row
        .key_indexes(arguments)
        .into_iter()
        .filter_map(|index| arguments.get(index))
        .map(|key| Claims::hash_key(database, key));
    Claims::Keys(keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::row::{Flags, Handler};

    #[test]
    fn names_are_unique_and_lower_case() {
        let mut names: Vec<_> = all().map(|row| row.name).collect();
        assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
        assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_row_says_write_just_where_its_code_can_write() {
        for row in all() {
            let is_write = matches!(row.handler, Handler::Write(_));
            assert_eq!(row.flags.contains(Flags::WRITE), is_write, "{}", row.name);
            assert!(!(is_write && row.flags.contains(Flags::READONLY)), "{}", row.name);
        }
    }

    #[test]
    fn a_name_is_found_in_any_case() {
        assert!(find(b"LPush").is_some());
        assert!(find(b"nosuch").is_none());
        assert!(find(&[b'x'; 1000]).is_none());
    }
}
