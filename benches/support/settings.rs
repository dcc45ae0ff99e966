//! Settings that benchmarks have in common, from the command line.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// A benchmark with these settings, `--folder`, and the arguments that cargo passes to every
/// benchmark.
pub(crate) fn read(name: &'static str, numbers: impl IntoIterator<Item = Arg>) -> ArgMatches {
    Command::new(name)
        .args(numbers)
        .arg(
            Arg::new("folder")
                .long("folder")
                .help("Where the servers' temporary folders are made")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("bench")
                .long("bench")
                .hide(true)
                .action(ArgAction::SetTrue),
        )
        .get_matches()
}

/// A numeric setting.
pub(crate) fn number(name: &'static str, default: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .default_value(default)
        .value_parser(value_parser!(u64))
}

/// A text setting, empty by default.
#[allow(dead_code)] // not every benchmark has one
pub(crate) fn text(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).default_value("")
}

/// The value of a numeric setting.
pub(crate) fn count(matches: &ArgMatches, name: &str) -> u64 {
    *matches.get_one(name).unwrap()
}

/// The folder for temporary folders.
pub(crate) fn folder(matches: &ArgMatches) -> PathBuf {
    let folder = matches.get_one("folder").cloned();
    folder.unwrap_or_else(std::env::temp_dir)
}
