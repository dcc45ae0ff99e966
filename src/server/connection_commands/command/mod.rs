//! COMMAND, all of it from the table of commands.

use bytes::Bytes;

use super::errors::not_implemented;
use super::help::help;
use crate::commands::arguments::{is_word, rest};
use crate::commands::details;
use crate::commands::table::{self, Entry};
use crate::error::CommandError;
use crate::glob::{self, Case};
use crate::reply::Reply;

mod docs;
mod entries;
mod info;
mod keys;

use entries::{commands, find};

/// `COMMAND [subcommand …]`.
pub(super) fn execute(subcommand: &str, arguments: &[Bytes]) -> Result<Reply, CommandError> {
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
        _ => Err(not_implemented()),
    }
}

fn all_infos() -> Reply {
    Reply::Array(commands().map(info::info).collect())
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
