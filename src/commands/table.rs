//! All commands.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::row::Row;
use super::{connection, keys, lists, priority_queues, pubsub, sorted_sets, tasks, transactions};

/// The families' tables. A static, so that each row has one address.
static FAMILIES: &[&[Row]] = &[
    connection::ROWS,
    keys::ROWS,
    lists::ROWS,
    lists::BLOCKING_ROWS,
    priority_queues::ROWS,
    priority_queues::BLOCKING_ROWS,
    pubsub::ROWS,
    sorted_sets::ROWS,
    sorted_sets::BLOCKING_ROWS,
    tasks::ROWS,
    transactions::ROWS,
];

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

/// A command or subcommand with its place in [`entries`].
pub struct Entry {
    /// Its row.
    pub row: &'static Row,
    /// The row of the command that contains it.
    pub container: Option<&'static Row>,
    /// `container|subcommand`, or the command's name.
    pub full_name: String,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for row in all() {
        entries.push(Entry {
            row,
            container: None,
            full_name: row.name.to_owned(),
        });
        entries.extend(row.subcommands.iter().map(|subcommand| Entry {
            row: subcommand,
            container: Some(row),
            full_name: format!("{}|{}", row.name, subcommand.name),
        }));
    }
    entries
});

/// Commands and subcommands, each behind the one that contains it.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

static SLOTS: LazyLock<HashMap<usize, usize, BuildHasherDefault<AddressHasher>>> =
    LazyLock::new(|| {
        let slots = entries().iter().enumerate();
        slots
            .map(|(slot, entry)| (address(entry.row), slot))
            .collect()
    });

/// The place of a row of this table in [`entries`]; of any other, the number of entries.
pub fn slot(row: &'static Row) -> usize {
    let slot = SLOTS.get(&address(row)).copied();
    slot.unwrap_or(ENTRIES.len())
}

fn address(row: &'static Row) -> usize {
    std::ptr::from_ref(row).addr()
}

/// Spreads addresses, which differ in their middle bits; asked for each command.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        let mixed = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
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
            if row.flags.contains(Flags::MAY_REPLICATE) {
                // PUBLISH takes part in transactions, but writes no keys.
                continue;
            }
            let is_write = matches!(row.handler, Handler::Write(_));
            assert_eq!(row.flags.contains(Flags::WRITE), is_write, "{}", row.name);
            assert!(
                !(is_write && row.flags.contains(Flags::READONLY)),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn every_entry_is_found_by_its_row() {
        for (number, entry) in entries().iter().enumerate() {
            assert_eq!(slot(entry.row), number, "{}", entry.full_name);
        }
        assert_eq!(slot(find(b"lpush").unwrap()), slot(find(b"LPUSH").unwrap()));
    }

    #[test]
    fn a_name_is_found_in_any_case() {
        assert!(find(b"LPush").is_some());
        assert!(find(b"nosuch").is_none());
        assert!(find(&[b'x'; 1000]).is_none());
    }
}
