//! COMMAND, all of it from the table of commands.

use bytes::Bytes;

use super::help::help;
use super::not_carried_out;
use crate::commands::arguments::{is_word, rest};
use crate::commands::table::{self, Entry};
use crate::commands::{Row, details};
use crate::error::CommandError;
use crate::glob::{self, Case};
use crate::reply::Reply;

mod docs;
mod info;
mod keys;

/// `COMMAND [subcommand …]`.
pub(super) fn carry_out(subcommand: &str, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    match subcommand {
        "command" => Ok(all_infos()),
        "count" => Ok(Reply::count(table::all().count())),
        "docs" => Ok(docs::docs(rest(arguments, 2))),
        "getkeys" => keys::keys(rest(arguments, 2), false),
        "getkeysandflags" => keys::keys(rest(arguments, 2), true),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "info" => Ok(match rest(arguments, 2) {
            [] => all_infos(),
            names => Reply::Array(
                names
                    .iter()
                    .map(|name| find(name).map_or(Reply::Null, info::info))
                    .collect(),
            ),
        }),
        "list" => list(rest(arguments, 2)),
        _ => Err(not_carried_out()),
    }
}

/// Commands, without those that belong to another.
fn commands() -> impl Iterator<Item = &'static Entry> {
    let entries = table::entries().iter();
    entries.filter(|entry| entry.container.is_none())
}

fn all_infos() -> Reply {
    Reply::Array(commands().map(info::info).collect())
}

/// The command or subcommand (`container|subcommand`) of this name.
fn find(name: &[u8]) -> Option<&'static Entry> {
    let mut entries = table::entries().iter();
    entries.find(|entry| entry.full_name.as_bytes().eq_ignore_ascii_case(name))
}

/// The entry of a row.
fn entry(row: &'static Row) -> Option<&'static Entry> {
    table::entries().get(table::slot(row))
}

/// The subcommands of an entry.
fn subcommands(entry: &Entry) -> impl Iterator<Item = &'static Entry> {
    entry.row.subcommands.iter().filter_map(self::entry)
}

/// `COMMAND LIST [FILTERBY <MODULE name | ACLCAT category | PATTERN pattern>]`.
fn list(options: &[Bytes]) -> Result<Reply, CommandError> {
    let names = |is_listed: &dyn Fn(&Entry) -> bool| {
        let listed = table::entries().iter().filter(|entry| is_listed(entry));
        Reply::Array(
            listed
                .map(|entry| Reply::bulk(entry.full_name.as_str()))
                .collect(),
        )
    };
    match options {
        [] => Ok(names(&|_| true)),
        [word, kind, value] if is_word(word, "filterby") => {
            if is_word(kind, "module") {
                Ok(names(&|_| false))
            } else if is_word(kind, "aclcat") {
                Ok(names(&|entry| {
                    details::categories(entry).iter().any(|category| {
                        category
                            .strip_prefix('@')
                            .is_some_and(|name| is_word(value, name))
                    })
                }))
            } else if is_word(kind, "pattern") {
                Ok(names(&|entry| {
                    glob::matches(value, entry.full_name.as_bytes(), Case::Insensitive)
                }))
            } else {
                Err(CommandError::Syntax)
            }
        }
        _ => Err(CommandError::Syntax),
    }
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
