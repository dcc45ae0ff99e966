//! Options that the tools which read and write servers have in common.

use clap::Arg;

/// `--databases`.
pub fn databases_argument(help: &'static str) -> Arg {
    Arg::new("databases")
        .long("databases")
        .value_name("all|N,…")
        .help(help)
}

/// `--match`.
pub fn match_argument(help: &'static str) -> Arg {
    Arg::new("match")
        .long("match")
        .value_name("PATTERN")
        .help(help)
}
