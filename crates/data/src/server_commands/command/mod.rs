//! COMMAND, which tells what is known of commands: all of it from their rows.

use bytes::Bytes;

use crate::command::arguments::{is_word, rest};
use crate::command::categories::categories;
use crate::command::help::help;
use crate::command::row::Row;
use crate::error::CommandError;
use crate::table;
use crate::unit::context::Environment;
use quoin_base::glob::{self, Case};
use quoin_resp::reply::Reply;

mod docs;
mod found;
mod info;
mod keys;
mod rows;

pub use rows::ROWS;

/// `COMMAND COUNT`.
fn count(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::count(table::commands().count()))
}

/// `COMMAND LIST [FILTERBY <MODULE name | ACLCAT category | PATTERN pattern>]`.
fn list(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let names = |is_listed: &dyn Fn(&Row) -> bool| {
        let listed = table::all().iter().filter(|row| is_listed(row));
        Reply::Array(listed.map(|row| Reply::bulk(row.name)).collect())
    };
    match rest(arguments, 2) {
        [] => Ok(names(&|_| true)),
        [word, kind, value] if is_word(word, "filterby") => {
            if is_word(kind, "module") {
                Ok(names(&|_| false))
            } else if is_word(kind, "aclcat") {
                let is_wanted = |category: &str| is_word(value, category.trim_start_matches('@'));
                Ok(names(&|row| categories(row).any(is_wanted)))
            } else if is_word(kind, "pattern") {
                Ok(names(&|row| {
                    glob::matches(value, row.name.as_bytes(), Case::Insensitive)
                }))
            } else {
                Err(CommandError::Syntax)
            }
        }
        _ => Err(CommandError::Syntax),
    }
}

/// `COMMAND HELP`.
fn command_help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help(HELP_TITLE, HELP))
}

const HELP_TITLE: &str = "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
];
