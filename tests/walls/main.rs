//! The walls of the house. Imports run down the order of rooms that docs/understand/architecture.md gives, and
//! no files of one room import each other in a circle. Code of tests does not count.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod circles;
mod links;
mod modules;
mod tokens;
mod troubleshooting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use modules::Modules;

/// The document that gives the order of rooms, in a block that begins with this line.
const ORDER_DOCUMENT: &str = "docs/understand/architecture.md";
const ORDER_BEGIN: &str = "```rooms";

/// The table of commands knows every family, and some commands are about the table (COMMAND): what
/// it lists does not count.
const TABLE: &str = "commands/table";

fn house() -> Modules {
    Modules::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

/// The rooms' floors: 0 is the highest. Rooms of one floor do not know each other.
fn floors() -> BTreeMap<String, usize> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join(ORDER_DOCUMENT);
    let text = std::fs::read_to_string(document).unwrap();
    let block = text.lines().skip_while(|line| *line != ORDER_BEGIN).skip(1);
    let lines = block.take_while(|line| *line != "```");
    let rooms = lines.enumerate().flat_map(|(floor, line)| {
        let rooms = line.split_whitespace();
        rooms.map(move |room| (room.to_owned(), floor))
    });
    rooms.collect()
}

#[test]
fn imports_run_down_the_order_of_rooms() {
    let (house, floors) = (house(), floors());
    let floor = |room: &str| {
        let known = floors.get(room);
        *known.unwrap_or_else(|| panic!("{ORDER_DOCUMENT} does not name the room {room}"))
    };
    let mut upwards = BTreeSet::new();
    for (from, to) in house.imports() {
        let (from_room, to_room) = (modules::room(from), modules::room(to));
        if from_room != to_room && floor(from_room) >= floor(to_room) {
            upwards.insert(format!("{from_room} -> {to_room}: {from} -> {to}"));
        }
    }
    assert!(
        upwards.is_empty(),
        "imports run upwards:\n{}",
        join(upwards)
    );
}

#[test]
fn every_room_of_the_order_is_there() {
    let house = house();
    let rooms: BTreeSet<&str> = house.files().map(modules::room).collect();
    for room in floors().keys() {
        assert!(rooms.contains(room.as_str()), "there is no room {room}");
    }
}

#[test]
fn no_files_of_a_room_import_each_other_in_a_circle() {
    let house = house();
    let within =
        |(from, to): &(&str, &str)| modules::room(from) == modules::room(to) && *from != TABLE;
    let imports: Vec<(&str, &str)> = house.imports().filter(within).collect();
    let circles = circles::find(&imports);
    let lines = circles.into_iter().map(|circle| {
        let ties = imports
            .iter()
            .filter(|(from, to)| circle.contains(from) && circle.contains(to));
        let ties: Vec<String> = ties.map(|(from, to)| format!("  {from} -> {to}")).collect();
        format!("{} files:\n{}", circle.len(), ties.join("\n"))
    });
    let lines: BTreeSet<String> = lines.collect();
    assert!(lines.is_empty(), "circles:\n{}", join(lines));
}

fn join(lines: BTreeSet<String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}
