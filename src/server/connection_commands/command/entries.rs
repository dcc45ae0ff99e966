//! Entries of the command table, as COMMAND lists them.

use crate::commands::Row;
use crate::commands::table::{self, Entry};

/// Commands, without subcommands.
pub(super) fn commands() -> impl Iterator<Item = &'static Entry> {
    let entries = table::entries().iter();
    entries.filter(|entry| entry.container.is_none())
}

/// The command or subcommand (`container|subcommand`) of this name.
pub(super) fn find(name: &[u8]) -> Option<&'static Entry> {
    let mut entries = table::entries().iter();
    entries.find(|entry| entry.full_name.as_bytes().eq_ignore_ascii_case(name))
}

/// The entry of a row.
pub(super) fn entry(row: &'static Row) -> Option<&'static Entry> {
    table::entries().get(table::slot(row))
}

/// The subcommands of an entry.
pub(super) fn subcommands(entry: &Entry) -> impl Iterator<Item = &'static Entry> {
    entry.row.subcommands.iter().filter_map(self::entry)
}
