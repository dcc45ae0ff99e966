//! Rules that the compiler does not enforce: crates follow the order in
//! docs/understand/architecture.md, and files of one crate do not import each other in a circle.
//! Test code does not count.
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
use std::path::{Path, PathBuf};

use modules::Modules;

/// The document that gives the order of crates, in a block that begins with this line.
const ORDER_DOCUMENT: &str = "docs/understand/architecture.md";
const ORDER_BEGIN: &str = "```crates";

/// The table of types and commands knows every type, and some commands are about the table
/// (COMMAND), so what it lists does not count.
const TABLE: &str = "table";

/// Modules of one crate on floors. Each may import modules on its own and on later floors.
const MODULES_IN_ORDER: [(&str, &[&[&str]]); 2] = [
    (
        "data",
        &[
            &["script", "keys", "server_commands"],
            &[
                "list",
                "string",
                "hash",
                "set",
                "zset",
                "stream",
                "pqueue",
                "taskqueue",
            ],
            &["fields"],
            &["command", "prefetch"],
            &["cluster", "keyspace", "rows", "unit"],
            &["error"],
        ],
    ),
    ("resp", &[&["wire"], &["reply"]]),
];

fn crates_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")
}

/// The folders in `crates/`.
fn crates() -> BTreeSet<String> {
    let entries = std::fs::read_dir(crates_folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn modules_of(name: &str) -> Modules {
    Modules::read(&crates_folder().join(name).join("src"))
}

/// The crates' floors. 0 is the highest. Crates on one floor do not know each other.
fn floors() -> BTreeMap<String, usize> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join(ORDER_DOCUMENT);
    let text = std::fs::read_to_string(document).unwrap();
    let block = text.lines().skip_while(|line| *line != ORDER_BEGIN).skip(1);
    let lines = block.take_while(|line| *line != "```");
    let crates = lines.enumerate().flat_map(|(floor, line)| {
        let names = line.split_whitespace();
        names.map(move |name| (name.to_owned(), floor))
    });
    crates.collect()
}

/// The crates that a manifest lists as dependencies, without those for tests.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(crates_folder().join(name).join("Cargo.toml")).unwrap();
    let lines = manifest.lines();
    let section = lines.skip_while(|line| *line != "[dependencies]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let names = section.filter_map(|line| line.strip_prefix("quoin-"));
    let names = names.map(|rest| rest.split(['.', ' ']).next().unwrap().to_owned());
    names.collect()
}

#[test]
fn the_order_names_every_crate() {
    let named: BTreeSet<String> = floors().into_keys().collect();
    assert_eq!(named, crates());
}

#[test]
fn dependencies_run_down_the_order() {
    let floors = floors();
    let mut upwards = BTreeSet::new();
    for name in crates() {
        let needed = dependencies(&name).into_iter();
        let needed = needed.filter(|other| floors[other] <= floors[&name]);
        upwards.extend(needed.map(|other| format!("{name} -> {other}")));
    }
    assert!(upwards.is_empty(), "{}", join(upwards));
}

#[test]
fn modules_of_a_crate_run_down_their_order() {
    let mut upwards = BTreeSet::new();
    for (name, order) in MODULES_IN_ORDER {
        let house = modules_of(name);
        let place = |file: &str| {
            order
                .iter()
                .position(|floor| floor.contains(&modules::room(file)))
        };
        for (from, to) in house.imports() {
            if let (Some(own), Some(other)) = (place(from), place(to))
                && own > other
            {
                upwards.insert(format!("{name}: {from} -> {to}"));
            }
        }
    }
    assert!(upwards.is_empty(), "{}", join(upwards));
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let mut lines = BTreeSet::new();
    for name in crates() {
        let house = modules_of(&name);
        let imports: Vec<(&str, &str)> =
            house.imports().filter(|(from, _)| *from != TABLE).collect();
        for circle in circles::find(&imports) {
            let ties = imports
                .iter()
                .filter(|(from, to)| circle.contains(from) && circle.contains(to));
            let ties: Vec<String> = ties.map(|(from, to)| format!("  {from} -> {to}")).collect();
            lines.insert(format!(
                "{name}, {} files:\n{}",
                circle.len(),
                ties.join("\n")
            ));
        }
    }
    assert!(lines.is_empty(), "circles:\n{}", join(lines));
}

fn join(lines: BTreeSet<String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}
