//! The subcommands of FUNCTION. LOAD, DELETE, FLUSH and RESTORE change libraries; LIST, DUMP, HELP and KILL do not.

use std::sync::Arc;

use bytes::Bytes;
use quoin_base::glob::{Case, matches};
use quoin_base::limits::{LIBRARIES_BYTES_MAX, LIBRARIES_MAX, LIBRARY_LOAD_TIME_MAX};
use quoin_lua::{
    Function, LIBRARY_NAME_REFUSED, Libraries, Library, Run, is_library_name, library_source,
};
use quoin_resp::reply::Reply;
use quoin_resp::wire;

use crate::command::arguments::{argument, is_word, rest};
use crate::command::help;
use crate::error::CommandError;
use crate::script::calls::write;
use crate::script::eval::check_enabled;
use crate::script::{cache, eval};
use crate::unit::AnyUnit;
use crate::unit::context::Environment;

fn refused(line: String) -> CommandError {
    CommandError::Text(line.into())
}

/// Redis's error for a known subcommand with too many arguments.
fn wrong_number(subcommand: &str) -> CommandError {
    refused(format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try FUNCTION HELP."
    ))
}

/// `FUNCTION LOAD [REPLACE] function-code`.
pub(super) async fn load(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let Some((code, options)) = rest(arguments, 2).split_last() else {
        return Err(CommandError::text("ERR Function code is missing"));
    };
    let mut replaces = false;
    for option in options {
        if !is_word(option, "replace") {
            let option = String::from_utf8_lossy(option);
            return Err(refused(format!("ERR Unknown option given: {option}")));
        }
        replaces = true;
    }
    let name = library_name(code)?;
    let known = unit.read_context(database).libraries().await?;
    if let Some(library) = known.library(&name)
        && !replaces
    {
        if unit.repeats() && library.code == *code {
            return Ok(Reply::bulk(name));
        }
        return Err(refused(format!("ERR Library '{name}' already exists")));
    }
    let library = read_library(unit, name, code)?;
    let others = known.all().filter(|other| other.name != library.name);
    let others = Libraries::new(known.version, others.cloned());
    check_functions(&library, &others)?;
    check_room(others.all().chain([&library]))?;
    write(unit, database, |context| {
        context.store_library(&library);
        Ok(())
    })?;
    Ok(Reply::bulk(library.name.clone()))
}

/// `FUNCTION DELETE library-name`.
pub(super) async fn delete(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let known = unit.read_context(database).libraries().await?;
    let name = std::str::from_utf8(argument(arguments, 2)?);
    let Some(library) = name.ok().and_then(|name| known.library(name)) else {
        if unit.repeats() {
            return Ok(Reply::OK);
        }
        return Err(CommandError::text("ERR Library not found"));
    };
    write(unit, database, |context| {
        context.remove_library(&library.name);
        Ok(())
    })?;
    Ok(Reply::OK)
}

/// `FUNCTION FLUSH [ASYNC | SYNC]`.
pub(super) async fn flush(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    match rest(arguments, 2) {
        [] => {}
        [mode] if is_word(mode, "sync") || is_word(mode, "async") => {}
        [_] => {
            return Err(CommandError::text(
                "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
            ));
        }
        _ => {
            return Err(wrong_number(&String::from_utf8_lossy(argument(
                arguments, 1,
            )?)));
        }
    }
    write(unit, database, |context| {
        context.remove_libraries();
        Ok(())
    })?;
    Ok(Reply::OK)
}

/// How FUNCTION RESTORE treats existing libraries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Append,
    Replace,
    Flush,
}

/// `FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]`.
pub(super) async fn restore(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let policy = match rest(arguments, 3) {
        [] => Policy::Append,
        [policy] if is_word(policy, "append") => Policy::Append,
        [policy] if is_word(policy, "replace") => Policy::Replace,
        [policy] if is_word(policy, "flush") => Policy::Flush,
        [_] => {
            return Err(CommandError::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => {
            return Err(wrong_number(&String::from_utf8_lossy(argument(
                arguments, 1,
            )?)));
        }
    };
    let codes = quoin_rdb::read_libraries(argument(arguments, 2)?)
        .map_err(|error| refused(format!("ERR {error}")))?;
    let mut restored = Libraries::default();
    for code in &codes {
        let name = library_name(code)?;
        if restored.library(&name).is_some() {
            return Err(refused(format!("ERR Library '{name}' already exists")));
        }
        let library = read_library(unit, name, code)?;
        check_functions(&library, &restored)?;
        restored.add(library);
    }
    let known = unit.read_context(database).libraries().await?;
    let stays = |library: &&Arc<Library>| restored.library(&library.name).is_none();
    let others = match policy {
        Policy::Flush => Libraries::default(),
        _ => Libraries::new(known.version, known.all().filter(stays).cloned()),
    };
    if policy == Policy::Append {
        let is_known = |library: &&Arc<Library>| {
            let same = known.library(&library.name);
            same.is_some_and(|same| !unit.repeats() || same.code != library.code)
        };
        if let Some(library) = restored.all().find(is_known) {
            let name = &library.name;
            return Err(refused(format!("ERR Library {name} already exists")));
        }
    }
    for library in restored.all() {
        check_functions(library, &others)?;
    }
    check_room(others.all().chain(restored.all()))?;
    write(unit, database, |context| {
        if policy == Policy::Flush {
            context.remove_libraries();
        }
        for library in restored.all() {
            context.store_library(library);
        }
        Ok(())
    })?;
    Ok(Reply::OK)
}

/// The name in a library's first line (Redis: `functionExtractLibMetaData`).
fn library_name(code: &Bytes) -> Result<String, CommandError> {
    const INVALID: CommandError = CommandError::text("ERR Invalid library metadata");
    if !code.starts_with(b"#!") {
        return Err(CommandError::text("ERR Missing library metadata"));
    }
    let line = code.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.len() == code.len() || line.contains(&0) {
        return Err(INVALID);
    }
    let words = wire::split_arguments(line).ok_or(INVALID)?;
    let (engine, options) = words.split_first().ok_or(INVALID)?;
    let mut name = None;
    for option in options {
        match option.split_at_checked(b"name=".len()) {
            Some((prefix, _)) if prefix.eq_ignore_ascii_case(b"name=") && name.is_some() => {
                return Err(CommandError::text(
                    "ERR Invalid metadata value, name argument was given multiple times",
                ));
            }
            Some((prefix, given)) if prefix.eq_ignore_ascii_case(b"name=") => {
                name = Some(given.to_vec());
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(refused(format!(
                    "ERR Invalid metadata value given: {option}"
                )));
            }
        }
    }
    let Some(name) = name else {
        return Err(CommandError::text("ERR Library name was not given"));
    };
    if !is_library_name(&name) {
        return Err(refused(format!("ERR {LIBRARY_NAME_REFUSED}")));
    }
    let engine = engine.get(b"#!".len()..).unwrap_or_default();
    if !engine.eq_ignore_ascii_case(b"lua") {
        let engine = String::from_utf8_lossy(engine);
        return Err(refused(format!("ERR Engine '{engine}' not found")));
    }
    // A valid name has only ASCII characters.
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Executes a library's code to find the functions that it registers.
fn read_library(
    unit: AnyUnit<'_>,
    name: String,
    code: &Bytes,
) -> Result<Arc<Library>, CommandError> {
    let mut machine = eval::take(unit.environment().reported_version).map_err(refused)?;
    let run = Run::of_load(LIBRARY_LOAD_TIME_MAX);
    let functions = machine.load(library_source(code), &run);
    eval::give_back(machine);
    let functions = functions.map_err(refused)?;
    if functions.is_empty() {
        return Err(CommandError::text("ERR No functions registered"));
    }
    Ok(Arc::new(Library {
        id: unit.environment().random.next_u64(),
        name,
        code: code.clone(),
        functions,
    }))
}

/// A function name must be unique among all libraries.
fn check_functions(library: &Library, others: &Libraries) -> Result<(), CommandError> {
    let names = library.functions.iter().map(|function| &function.name);
    match names.clone().find(|name| others.has_function(name)) {
        None => Ok(()),
        Some(name) => Err(refused(format!("ERR Function {name} already exists"))),
    }
}

fn check_room<'l>(all: impl Iterator<Item = &'l Arc<Library>>) -> Result<(), CommandError> {
    let (mut count, mut bytes) = (0, 0_usize);
    for library in all {
        count += 1;
        bytes = bytes.saturating_add(library.code.len());
    }
    match count > LIBRARIES_MAX || bytes > LIBRARIES_BYTES_MAX {
        true => Err(CommandError::text("ERR too many libraries of functions")),
        false => Ok(()),
    }
}

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
    cache::kill_running(environment, true)
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
