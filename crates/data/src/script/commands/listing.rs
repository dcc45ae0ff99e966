//! FUNCTION LIST, DUMP, HELP and KILL: what changes no library.

use bytes::Bytes;

use super::admin;
use crate::command::arguments::{is_word, rest};
use crate::command::help;
use crate::error::CommandError;
use crate::unit::AnyUnit;
use crate::unit::context::Environment;
use quoin_base::glob::{Case, matches};
use quoin_lua::{Function, Library};
use quoin_resp::reply::Reply;

/// `FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]`.
pub(super) async fn list(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let mut with_code = false;
    let mut pattern = None;
    let mut words = rest(arguments, 2).iter();
    while let Some(word) = words.next() {
        if !with_code && is_word(word, "withcode") {
            with_code = true;
        } else if pattern.is_none() && is_word(word, "libraryname") {
            pattern = match words.next() {
                Some(pattern) => Some(pattern),
                None => {
                    return Err(CommandError::text(
                        "ERR library name argument was not given",
                    ));
                }
            };
        } else {
            let word = String::from_utf8_lossy(word);
            let line = format!("ERR Unknown argument {word}");
            return Err(CommandError::Text(line.into()));
        }
    }
    let libraries = unit.read_context(database).libraries().await?;
    let is_wanted = |library: &&std::sync::Arc<Library>| {
        pattern.is_none_or(|pattern| matches(pattern, library.name.as_bytes(), Case::Insensitive))
    };
    let wanted = libraries.all().filter(is_wanted);
    Ok(Reply::Array(
        wanted.map(|library| describe(library, with_code)).collect(),
    ))
}

fn describe(library: &Library, with_code: bool) -> Reply {
    let functions = library.functions.iter().map(describe_function);
    let mut fields = vec![
        (
            Reply::bulk("library_name"),
            Reply::bulk(library.name.clone()),
        ),
        (Reply::bulk("engine"), Reply::bulk("LUA")),
        (Reply::bulk("functions"), Reply::Array(functions.collect())),
    ];
    if with_code {
        let code = Reply::Bulk(library.code.clone());
        fields.push((Reply::bulk("library_code"), code));
    }
    Reply::Map(fields)
}

fn describe_function(function: &Function) -> Reply {
    let description = function.description.clone();
    let flags = function.flags.names().map(Reply::Simple).collect();
    Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(function.name.clone())),
        (
            Reply::bulk("description"),
            description.map_or(Reply::Null, Reply::Bulk),
        ),
        (Reply::bulk("flags"), Reply::Set(flags)),
    ])
}

/// `FUNCTION DUMP`.
pub(super) async fn dump(
    unit: AnyUnit<'_>,
    database: u32,
    _: &[Bytes],
) -> Result<Reply, CommandError> {
    let libraries = unit.read_context(database).libraries().await?;
    let codes = libraries.all().map(|library| &library.code);
    Ok(Reply::Bulk(quoin_rdb::libraries_payload(codes)))
}

/// `FUNCTION KILL`.
pub(super) fn kill(environment: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    admin::kill_running(environment, true)
}

/// `FUNCTION HELP`.
pub(super) fn function_help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(
        "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        &[
            "LOAD [REPLACE] <FUNCTION CODE>",
            "    Create a new library with the given library name and code.",
            "DELETE <LIBRARY NAME>",
            "    Delete the given library.",
            "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
            "    Return general information on all the libraries:",
            "    * Library name",
            "    * The engine used to run the Library",
            "    * Library description",
            "    * Functions list",
            "    * Library code (if WITHCODE is given)",
            "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
            "STATS",
            "    Return information about the current function running:",
            "    * Function name",
            "    * Command used to run the function",
            "    * Duration in MS that the function is running",
            "    If no function is running, return nil",
            "    In addition, returns a list of available engines.",
            "KILL",
            "    Kill the current running function.",
            "FLUSH [ASYNC|SYNC]",
            "    Delete all the libraries.",
            "    When called without the optional mode argument, the behavior is determined by the",
            "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
            "    * ASYNC: Asynchronously flush the libraries.",
            "    * SYNC: Synchronously flush the libraries.",
            "DUMP",
            "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
            "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
            "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
            "    control how to handle existing libraries (default APPEND):",
            "    * FLUSH: delete all existing libraries.",
            "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
            "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
            "      libraries with the new libraries (notice that even on this option there is a chance of failure",
            "      in case of functions name collision with another library).",
        ],
    ))
}
