//! A new type touches three places outside its folder. The test adds a toy type to a copy of the sources, compiles the
//! copy, and runs the commands of the type. CONTRIBUTING explains the additions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Places outside the type's folder: a file, a line of it, and the line that is added before that
/// one.
const PLACES: [(&str, &str, &str); 3] = [
    (
        "crates/layout/src/lib.rs",
        "        /// A list.\n        List = 1,\n",
        "        /// A bag.\n        Bag = 200,\n",
    ),
    (
        "crates/data/src/lib.rs",
        "pub mod cluster;\n",
        "pub mod bag;\n",
    ),
    (
        "crates/data/src/table.rs",
        "        ValueType::List => ",
        "        ValueType::Bag => (&crate::bag::KIND, &[crate::bag::ROWS]),\n",
    ),
];

fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that cargo builds into.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    // target/debug/deps/toy_type-…
    program.ancestors().nth(3).unwrap().to_owned()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// A copy of the sources with the toy type.
fn with_the_toy(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for name in [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "crates",
        "src",
        "tests",
        "benches",
    ] {
        copy(&sources().join(name), &folder.join(name));
    }
    for (file, place) in [
        ("bag.rs", "crates/data/src/bag/mod.rs"),
        ("session.rs", "crates/engine/examples/bag.rs"),
    ] {
        let place = folder.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        copy(&sources().join("tests/toy_type").join(file), &place);
    }
    for (file, line, added) in PLACES {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(line).count(), 1, "{file} has {line:?} once");
        fs::write(&path, text.replacen(line, &format!("{added}{line}"), 1)).unwrap();
    }
}

#[test]
fn a_toy_type_touches_three_places_outside_its_folder() {
    // Always the same folder, because cargo builds the crates of another folder again, in addition
    // to the last one's.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toy_type");
    let _ = fs::remove_dir_all(&folder);
    with_the_toy(&folder);
    let run = Command::new(env!("CARGO"))
        .current_dir(&folder)
        .args(["run", "--offline", "--package", "quoin-engine"])
        .args(["--features", "testing", "--example", "bag"])
        // Other crates are already built there.
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_INCREMENTAL", "0")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    assert!(!errors.contains("warning: "), "{errors}");
    let expected = [
        "BAG.ADD b x: Simple(\"OK\")",
        "BAG.ADD b x: Simple(\"OK\")",
        "BAG.LEN b: Integer(2)",
        "TYPE b: Simple(\"bag\")",
        "DEL b: Integer(1)",
        "BAG.LEN b: Integer(0)",
    ];
    let said = String::from_utf8(run.stdout).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}
