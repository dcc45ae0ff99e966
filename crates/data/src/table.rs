//! The table of types and the table of commands.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

use quoin_layout::ValueType;

use crate::command::flags::Flags;
use crate::command::row::Row;
use crate::keyspace::kind::{TypeKind, ValueKind};
use crate::server_commands::{command, connection, pubsub, queues, sentinel, transactions};
use crate::{hash, keys, list, pqueue, script, set, stream, string, taskqueue, zset};

impl TypeKind for ValueType {
    fn kind(self) -> &'static ValueKind {
        type_of(self).0
    }
}

/// A type's descriptor and its commands.
type Type = (&'static ValueKind, &'static [&'static [Row]]);

/// The type with this code in metadata.
fn type_of(value_type: ValueType) -> Type {
    match value_type {
        ValueType::List => (&list::KIND, &[list::commands::ROWS]),
        ValueType::SortedSet => (
            &zset::KIND,
            &[zset::commands::ROWS, zset::geo::commands::ROWS],
        ),
        ValueType::PriorityQueue => (&pqueue::KIND, &[pqueue::commands::ROWS]),
        ValueType::TaskQueue => (&taskqueue::KIND, &[taskqueue::commands::ROWS]),
        ValueType::String => (
            &string::KIND,
            &[
                string::commands::ROWS,
                string::commands::BITMAP_ROWS,
                string::commands::HYPERLOGLOG_ROWS,
            ],
        ),
        ValueType::Hash => (&hash::KIND, &[hash::commands::ROWS]),
        ValueType::Set => (&set::KIND, &[set::commands::ROWS]),
        ValueType::Stream => (&stream::KIND, &[stream::commands::ROWS]),
    }
}

/// Rows of commands that belong to no type.
const GENERAL: &[&[Row]] = &[
    keys::ROWS,
    queues::ROWS,
    script::ROWS,
    connection::ROWS,
    command::ROWS,
    pubsub::ROWS,
    transactions::ROWS,
];

/// The rows of the ports for data, then those of the Sentinel port only.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let of_types = ValueType::ALL.iter().flat_map(|each| type_of(*each).1);
    let of_data = of_types.chain(GENERAL).copied().flatten();
    let rows = with_subcommands(of_data.chain(sentinel::ROWS));
    rows.enumerate()
        .map(|(id, row)| Row { id, ..*row })
        .collect()
});

/// The number of rows of the ports for data.
static DATA_ROWS: LazyLock<usize> =
    LazyLock::new(|| ROWS.len() - with_subcommands(sentinel::ROWS.iter()).count());

fn with_subcommands<'r>(commands: impl Iterator<Item = &'r Row>) -> impl Iterator<Item = &'r Row> {
    commands.flat_map(|row| std::iter::once(row).chain(row.subcommands))
}

/// The names are fixed, so clients cannot provoke collisions in a fast hash.
static BY_NAME: LazyLock<FxHashMap<&'static str, &'static Row>> =
    LazyLock::new(|| commands().map(|row| (row.name, row)).collect());

/// Rows of the Sentinel port only, by name.
static SENTINEL_BY_NAME: LazyLock<FxHashMap<&'static str, &'static Row>> = LazyLock::new(|| {
    let commands = of_all_ports().iter().filter(|row| !row.is_subcommand());
    let there = commands.filter(|row| row.flags.contains(Flags::SENTINEL));
    there.map(|row| (row.name, row)).collect()
});

/// Commands and subcommands of the ports for data, each subcommand after its container. A row's index is its id.
pub fn all() -> &'static [Row] {
    ROWS.get(..*DATA_ROWS).unwrap_or_default()
}

/// The same, followed by the rows of the Sentinel port only.
pub fn of_all_ports() -> &'static [Row] {
    &ROWS
}

/// All commands without subcommands, by family.
pub fn commands() -> impl Iterator<Item = &'static Row> {
    all().iter().filter(|row| !row.is_subcommand())
}

/// The subcommands of a command.
pub fn subcommands(row: &Row) -> &'static [Row] {
    let first = row.id + 1;
    of_all_ports()
        .get(first..first + row.subcommands.len())
        .unwrap_or_default()
}

/// Maximum length of a name. Longer names are rejected without a lookup.
const NAME_BYTES_MAX: usize = 32;

/// The command of this name, ignoring case.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    find_in(&BY_NAME, name)
}

/// The command of this name on the Sentinel port, ignoring case.
pub fn find_on_sentinel(name: &[u8]) -> Option<&'static Row> {
    find_in(&SENTINEL_BY_NAME, name)
}

fn find_in(commands: &FxHashMap<&'static str, &'static Row>, name: &[u8]) -> Option<&'static Row> {
    let mut lower = [0_u8; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    let name = std::str::from_utf8(lower).ok()?;
    commands.get(name).copied()
}

/// The subcommand of this name, ignoring case.
pub fn find_subcommand(row: &Row, name: &[u8]) -> Option<&'static Row> {
    let is_named = |row: &&Row| row.own_name().as_bytes().eq_ignore_ascii_case(name);
    subcommands(row).iter().find(is_named)
}

/// The command or subcommand (`client|kill`) of this name, ignoring case.
pub fn find_by_full_name(name: &[u8]) -> Option<&'static Row> {
    match name.iter().position(|byte| *byte == b'|') {
        None => find(name),
        Some(at) => find_subcommand(find(name.get(..at)?)?, name.get(at + 1..)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lower_case() {
        let mut names: Vec<_> = all().iter().map(|row| row.name).collect();
        assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
        assert!(commands().all(|row| row.name.len() <= NAME_BYTES_MAX));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_row_is_found_by_its_id_and_its_name() {
        for (id, row) in all().iter().enumerate() {
            assert_eq!(row.id, id, "{}", row.name);
            let found = find_by_full_name(row.name.to_ascii_uppercase().as_bytes());
            assert_eq!(found.map(|row| row.id), Some(id), "{}", row.name);
        }
    }

    #[test]
    fn the_sentinel_port_has_its_own_commands_and_harmless_ones_of_the_others() {
        let names = |rows: &mut dyn Iterator<Item = &Row>| {
            let mut names: Vec<_> = rows.map(|row| row.name).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(
            names(&mut SENTINEL_BY_NAME.values().copied()),
            [
                "auth",
                "client",
                "hello",
                "info",
                "ping",
                "psubscribe",
                "punsubscribe",
                "quit",
                "reset",
                "role",
                "sentinel",
                "subscribe",
                "unsubscribe",
            ]
        );
        let client = find(b"client").unwrap();
        let there = subcommands(client).iter();
        let mut there = there.filter(|row| row.flags.contains(Flags::SENTINEL));
        assert_eq!(
            names(&mut there),
            [
                "client|getname",
                "client|help",
                "client|id",
                "client|info",
                "client|maint_notifications",
                "client|reply",
                "client|setinfo",
                "client|setname",
            ]
        );
        assert!(find(b"sentinel").is_none());
        let sentinel = find_on_sentinel(b"Sentinel").unwrap();
        assert_eq!(sentinel.id, all().len());
        assert_eq!(
            sentinel.id + 1 + subcommands(sentinel).len(),
            of_all_ports().len()
        );
        let masters = find_subcommand(sentinel, b"MASTERS").unwrap();
        assert_eq!(of_all_ports()[masters.id].name, "sentinel|masters");
        // Only commands that need authentication change something.
        let mut changing = subcommands(sentinel).iter();
        let mut changing = changing
            .by_ref()
            .filter(|row| !row.flags.contains(Flags::NO_AUTH));
        assert_eq!(names(&mut changing), ["sentinel|failover"]);
    }

    #[test]
    fn subcommands_bear_the_name_of_their_container() {
        for container in commands() {
            for row in subcommands(container) {
                assert_eq!(row.name, format!("{}|{}", container.name, row.own_name()));
                assert!(row.subcommands.is_empty(), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_name_is_found_in_any_case() {
        assert!(find(b"LPush").is_some());
        assert!(find(b"nosuch").is_none());
        assert!(find(b"client|kill").is_none());
        assert!(find(&[b'x'; 1000]).is_none());
    }
}
