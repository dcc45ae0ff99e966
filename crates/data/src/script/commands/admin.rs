//! SCRIPT.

use std::sync::Arc;

use bytes::Bytes;

use super::eval::check_enabled;
use super::machines;
use super::writing::write;
use crate::command::arguments::{argument, is_word, rest};
use crate::command::help;
use crate::error::CommandError;
use crate::unit::AnyUnit;
use crate::unit::context::Environment;
use quoin_layout::ScriptOrigin;
use quoin_lua::{KillError, Script};
use quoin_resp::reply::Reply;

/// `SCRIPT LOAD script`.
pub(super) async fn load(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let refused = |line: String| CommandError::Text(line.into());
    let script = Script::parse(argument(arguments, 2)?.clone()).map_err(refused)?;
    let script = Arc::new(script);
    let mut machine = machines::take().map_err(refused)?;
    let compiled = machine.compile(&script);
    machines::give_back(machine);
    compiled.map_err(refused)?;
    let context = unit.read_context(database);
    let stored = context.stored_script(&script.sha).await?;
    let flushes = context.script_flushes().await?;
    unit.environment().scripts.note_met(flushes, &script.sha);
    write(unit, database, |context| {
        context.store_script(&script, ScriptOrigin::Load, stored)
    })?;
    Ok(Reply::bulk(script.sha.clone()))
}

/// `SCRIPT EXISTS sha1 [sha1 ...]`.
pub(super) async fn exists(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let context = unit.read_context(database);
    let scripts = &unit.environment().scripts;
    let flushes = context.script_flushes().await?;
    let mut found = Vec::new();
    for sha in rest(arguments, 2) {
        let sha = std::str::from_utf8(sha).unwrap_or_default();
        let sha = sha.to_ascii_lowercase();
        let is_there =
            scripts.known(flushes, &sha).is_some() || context.stored_script(&sha).await?.is_some();
        found.push(Reply::Integer(i64::from(is_there)));
    }
    Ok(Reply::Array(found))
}

/// `SCRIPT FLUSH [ASYNC | SYNC]`.
pub(super) async fn flush(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    match rest(arguments, 2) {
        [] => {}
        [mode] if is_word(mode, "sync") || is_word(mode, "async") => {}
        _ => {
            return Err(CommandError::text(
                "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
            ));
        }
    }
    if let AnyUnit::Write(writable) = unit {
        writable.write_context(database).flush_scripts();
        unit.environment().scripts.forget_met();
    }
    Ok(Reply::OK)
}

/// What is answered while a script or a function runs for too long.
pub fn busy(is_function: bool) -> CommandError {
    CommandError::text(match is_function {
        true => {
            "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN \
             NOSAVE."
        }
        false => {
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        }
    })
}

/// `SCRIPT KILL`.
pub(super) fn kill(environment: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    kill_running(environment, false)
}

/// Kills the scripts, or the functions, that run.
pub(super) fn kill_running(
    environment: &Environment,
    functions: bool,
) -> Result<Reply, CommandError> {
    match environment.scripts.kill(functions) {
        Ok(()) => Ok(Reply::OK),
        Err(KillError::OtherKind) => Err(busy(!functions)),
        Err(KillError::NotBusy) => Err(CommandError::text(
            "NOTBUSY No scripts in execution right now.",
        )),
        Err(KillError::Unkillable) => Err(CommandError::text(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You \
             can either wait the script termination or kill the server in a hard way using the \
             SHUTDOWN NOSAVE command.",
        )),
    }
}

/// `SCRIPT DEBUG <YES | SYNC | NO>`: there is no debugger that could be turned on.
pub(super) fn debug(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let mode = argument(arguments, 2)?;
    if is_word(mode, "no") {
        return Ok(Reply::OK);
    }
    let is_known = is_word(mode, "yes") || is_word(mode, "sync");
    Err(CommandError::text(match is_known {
        true => "ERR There is no debugger of scripts",
        false => "ERR Use SCRIPT DEBUG YES/SYNC/NO",
    }))
}

/// `SCRIPT HELP`.
pub(super) fn script_help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(
        "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        &[
            "DEBUG (YES|SYNC|NO)",
            "    Set the debug mode for subsequent scripts executed.",
            "EXISTS <sha1> [<sha1> ...]",
            "    Return information about the existence of the scripts in the script cache.",
            "FLUSH [ASYNC|SYNC]",
            "    Flush the Lua scripts cache. Very dangerous on replicas.",
            "    When called without the optional mode argument, the behavior is determined by the",
            "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
            "    * ASYNC: Asynchronously flush the scripts cache.",
            "    * SYNC: Synchronously flush the scripts cache.",
            "KILL",
            "    Kill the currently executing Lua script.",
            "LOAD <script>",
            "    Load a script into the scripts cache without executing it.",
        ],
    ))
}
