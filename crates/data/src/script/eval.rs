//! EVAL, EVALSHA, EVAL_RO, EVALSHA_RO, FCALL and FCALL_RO.
//!
//! Each executes one script within a unit of work, on a machine of the thread. A machine stays on its thread and
//! executes one script at a time. On a cluster, scripts of several batches are in progress at once, so a thread has
//! several machines.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use quoin_base::limits::{SCRIPT_CLUSTER_TIME_MAX, SCRIPT_MACHINES_KEPT_MAX};
use quoin_base::number::parse_i64;
use quoin_base::redis_version::RedisVersion;
use quoin_layout::ScriptOrigin;
use quoin_lua::{Caller, End, Kept, Machine, Program, Script, ScriptFlags, TimeLimit};
use quoin_resp::reply::Reply;
use quoin_store::{Growth, StoreError};

use crate::command::arguments::{argument, integer, rest};
use crate::command::call::Invocation;
use crate::command::flags::Flags;
use crate::command::row::{Handler, Row};
use crate::error::CommandError;
use crate::script::calls::Calls;
use crate::unit::AnyUnit;
use crate::unit::context::ReadContext;

const NO_SCRIPT: CommandError = CommandError::text("NOSCRIPT No matching script. Please use EVAL.");
const TURNED_OFF: CommandError =
    CommandError::text("ERR scripts are turned off by the setting enable-scripts");

/// Length of a script's SHA-1 name in bytes.
const SHA_BYTES: usize = 40;

/// Fails if the setting `enable-scripts` is off.
pub(super) fn check_enabled(unit: AnyUnit<'_>) -> Result<(), CommandError> {
    match unit.environment().scripts.is_enabled() {
        true => Ok(()),
        false => Err(TURNED_OFF),
    }
}

/// Whether this is an EVAL whose script declares that it only reads, so that it can use a snapshot.
pub fn only_reads(invocation: &Invocation) -> bool {
    let text = invocation.arguments.get(1);
    invocation.row.name == "eval" && text.is_some_and(|text| Script::declares_no_writes(text))
}

/// The flags that a command's script or function declares; `None` if it declares none or does not exist (Redis:
/// `getCommandFlags`).
pub async fn declared_flags(
    context: &ReadContext<'_>,
    row: &Row,
    arguments: &[Bytes],
) -> Result<Option<ScriptFlags>, CommandError> {
    if !runs_script(row) {
        return Ok(None);
    }
    let named = argument(arguments, 1)?;
    let flags = match row.name {
        "eval" | "eval_ro" => context
            .environment
            .scripts
            .of_text(named)
            .ok()
            .map(|script| script.flags),
        "evalsha" | "evalsha_ro" => match find(context, named).await {
            Ok(script) => Some(script.flags),
            Err(CommandError::Store(error)) => return Err(error.into()),
            Err(_) => None,
        },
        _ => {
            let libraries = context.libraries().await?;
            { libraries.function(named) }.map(|function| function.flags())
        }
    };
    Ok(flags.filter(|flags| !flags.is_plain))
}

/// Whether a command executes a script or a function.
pub fn runs_script(row: &Row) -> bool {
    matches!(row.handler, Handler::Script(_)) && row.flags.contains(Flags::NO_MANDATORY_KEYS)
}

/// `EVAL script numkeys [key ...] [arg ...]`, or `EVAL_RO`.
pub(super) async fn eval<const IS_RO: bool>(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let inputs = keys_and_values(arguments)?;
    let scripts = &unit.environment().scripts;
    let script = scripts.of_text(argument(arguments, 1)?);
    let script = script.map_err(|line| CommandError::Text(line.into()))?;
    keep(unit, database, &script).await?;
    run_script(unit, database, &script, inputs, IS_RO).await
}

/// `EVALSHA sha1 numkeys [key ...] [arg ...]`, or `EVALSHA_RO`.
pub(super) async fn evalsha<const IS_RO: bool>(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let sha = argument(arguments, 1)?;
    if sha.len() != SHA_BYTES {
        return Err(NO_SCRIPT);
    }
    let inputs = keys_and_values(arguments)?;
    let script = find(&unit.read_context(database), sha).await?;
    run_script(unit, database, &script, inputs, IS_RO).await
}

async fn run_script(
    unit: AnyUnit<'_>,
    database: u32,
    script: &Arc<Script>,
    (keys, arguments): (Vec<Bytes>, Vec<Bytes>),
    is_ro: bool,
) -> Result<Reply, CommandError> {
    let call = Call {
        only_reads: may_only_read(script.flags, is_ro)?,
        caller: Caller::Script,
        program: &Program::Script(Arc::clone(script)),
        keys,
        arguments,
        database,
    };
    run(unit, call).await
}

/// Splits the arguments after the number of keys into keys and other arguments.
pub(super) fn keys_and_values(
    arguments: &[Bytes],
) -> Result<(Vec<Bytes>, Vec<Bytes>), CommandError> {
    let count = integer(argument(arguments, 2)?)?;
    let all = rest(arguments, 3);
    if count > i64::try_from(all.len()).unwrap_or(i64::MAX) {
        return Err(CommandError::text(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::text("ERR Number of keys can't be negative"));
    };
    let keys = all.get(..count).unwrap_or_default();
    Ok((keys.to_vec(), rest(all, count).to_vec()))
}

/// Whether a script with these flags may only call commands that do not write.
pub(super) fn may_only_read(flags: ScriptFlags, is_ro: bool) -> Result<bool, CommandError> {
    if is_ro && !flags.is_plain && !flags.no_writes {
        return Err(CommandError::text(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    Ok(is_ro || flags.no_writes)
}

/// Stores a script of EVAL, so that EVALSHA finds it on every server. A script that only reads must not write, so only
/// this server remembers it.
async fn keep(unit: AnyUnit<'_>, database: u32, script: &Arc<Script>) -> Result<(), CommandError> {
    let AnyUnit::Write(writable) = unit else {
        let flushes = unit.read_context(database).script_flushes().await?;
        let scripts = &unit.environment().scripts;
        if scripts.kept(flushes, script).is_none() {
            scripts.note_met(flushes, &script.sha);
            scripts.remember(flushes, Arc::clone(script), Kept::OnServer);
        }
        return Ok(());
    };
    let scripts = &unit.environment().scripts;
    let context = writable.write_context(database);
    let flushes = context.script_flushes().await?;
    if scripts.kept(flushes, script) == Some(Kept::InStore) {
        return Ok(());
    }
    scripts.note_met(flushes, &script.sha);
    let stored = context.stored_script(&script.sha).await?;
    match stored {
        // A script stored by this attempt is not committed yet.
        Some(stored) if stored.at_ms != context.now_ms => {
            scripts.remember(flushes, Arc::clone(script), Kept::InStore);
        }
        Some(_) => {}
        // On a full disk the script is executed without being stored, because consumers use scripts too.
        None => match context.store_script(script, ScriptOrigin::Eval, None) {
            Ok(()) | Err(CommandError::NoRoomToGrow) => {}
            Err(error) => return Err(error),
        },
    }
    Ok(())
}

/// A stored script.
async fn find(context: &ReadContext<'_>, sha: &[u8]) -> Result<Arc<Script>, CommandError> {
    let Some(sha) = std::str::from_utf8(sha)
        .ok()
        .filter(|sha| sha.len() == SHA_BYTES)
    else {
        return Err(NO_SCRIPT);
    };
    let sha = sha.to_ascii_lowercase();
    let scripts = &context.environment.scripts;
    let flushes = context.script_flushes().await?;
    if let Some(script) = scripts.known(flushes, &sha) {
        return Ok(script);
    }
    let Some((stored, text)) = context.load_script(&sha).await? else {
        return Err(NO_SCRIPT);
    };
    let script = Script::parse(text).map_err(|line| CommandError::Text(line.into()))?;
    let script = Arc::new(script);
    scripts.note_met(flushes, &script.sha);
    if stored.at_ms != context.now_ms {
        scripts.remember(flushes, Arc::clone(&script), Kept::InStore);
    }
    Ok(script)
}

/// `FCALL function numkeys [key ...] [arg ...]`, or `FCALL_RO`.
pub(super) async fn fcall<const IS_RO: bool>(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let libraries = unit.read_context(database).libraries().await?;
    let Some(program) = libraries.function(argument(arguments, 1)?) else {
        return Err(CommandError::text("ERR Function not found"));
    };
    if parse_i64(argument(arguments, 2)?).is_none() {
        return Err(CommandError::text("ERR Bad number of keys provided"));
    }
    let (keys, values) = keys_and_values(arguments)?;
    let call = Call {
        only_reads: may_only_read(program.flags(), IS_RO)?,
        caller: Caller::Function(program.name().to_owned(), arguments.to_vec()),
        program: &program,
        keys,
        arguments: values,
        database,
    };
    run(unit, call).await
}

const LATE: CommandError = CommandError::text(
    "ERR script needs longer than a transaction of the store may last; nothing was changed",
);

/// A call of a script or function.
pub(super) struct Call<'c> {
    pub(super) program: &'c Program,
    pub(super) caller: Caller,
    pub(super) keys: Vec<Bytes>,
    pub(super) arguments: Vec<Bytes>,
    pub(super) database: u32,
    /// It may not call commands that write.
    pub(super) only_reads: bool,
}

/// Executes a script. As in Redis, the writes of a failed script stay, unless it is `atomic`.
///
/// # Errors
/// Errors that end the script and discard its writes: those of the store, a transaction that is too large
/// (`StoreError::TooLarge`), queues whose grants must be returned first (`GrantsOutstanding`), and exceeding the time
/// limit for scripts, if the unit has one (`ScriptOutOfTime`).
pub(super) async fn run(unit: AnyUnit<'_>, call: Call<'_>) -> Result<Reply, CommandError> {
    let flags = call.program.flags();
    if unit.growth() == Growth::AtBound && flags.need_room() {
        return Err(CommandError::OutOfMemory);
    }
    let is_atomic = flags.is_atomic;
    let AnyUnit::Write(writable) = unit else {
        return to_result(unit, run_machine(unit, call).await?);
    };
    // Its writes may depend on its reads, and all its calls must appear to happen at one moment.
    writable.transaction.conflict_on_own_rows();
    let savepoint = writable.savepoint();
    let end = match run_machine(unit, call).await {
        Ok(end) => end,
        Err(
            error @ (CommandError::Store(StoreError::TooLarge)
            | CommandError::GrantsOutstanding { .. }),
        ) => {
            writable.rollback(savepoint);
            return Err(error);
        }
        // The error ends the transaction.
        Err(error) => return Err(error),
    };
    if writable.is_too_large() {
        writable.rollback(savepoint);
        return Err(StoreError::TooLarge.into());
    }
    let has_failed = match &end {
        End::Replied(reply, _) => is_atomic && matches!(reply, Reply::Error(_)),
        End::Failed(..) | End::Killed(_) => is_atomic,
        End::Late | End::Aborted => true,
    };
    match has_failed {
        true => writable.rollback(savepoint),
        false => writable.release(savepoint),
    }
    to_result(unit, end)
}

fn to_result(unit: AnyUnit<'_>, end: End) -> Result<Reply, CommandError> {
    match end {
        End::Replied(reply, _) => Ok(reply),
        End::Failed(line, _) | End::Killed(line) => Err(CommandError::Text(line.into())),
        End::Late if unit.script_limit().is_some() => Err(CommandError::ScriptOutOfTime),
        End::Late => Err(LATE),
        End::Aborted => Err(CommandError::text("ERR the script was ended")),
    }
}

async fn run_machine(unit: AnyUnit<'_>, call: Call<'_>) -> Result<End, CommandError> {
    let environment = unit.environment();
    // Creating a new machine must not count as the script's time.
    let mut machine =
        take(environment.reported_version).map_err(|line| CommandError::Text(line.into()))?;
    let limit = match unit.script_limit() {
        Some(limit) => TimeLimit::Busy(limit),
        None if !environment.capabilities.bounds_transaction_time => TimeLimit::Nothing,
        None => TimeLimit::Elapsed(SCRIPT_CLUSTER_TIME_MAX),
    };
    let guard = environment.scripts.begin(call.caller, limit);
    let allows_oom = call.program.flags().allow_oom;
    let mut calls = Calls::new(
        unit,
        call.database,
        call.only_reads,
        allows_oom,
        guard.run(),
    );
    let Call {
        program,
        keys,
        arguments,
        ..
    } = call;
    let end = machine.run(program, keys, arguments, guard.run(), &mut calls);
    let end = end.await;
    give_back(machine);
    calls.end(end)
}

thread_local! {
    static IDLE: RefCell<Vec<Machine>> = const { RefCell::new(Vec::new()) };
}

/// An idle machine that tells scripts this version of Redis.
///
/// # Errors
/// The error line if no machine can be created.
pub(super) fn take(version: RedisVersion) -> Result<Machine, String> {
    let idle = IDLE.with_borrow_mut(|idle| {
        let at = idle.iter().rposition(|one| one.version() == version);
        at.map(|at| idle.swap_remove(at))
    });
    match idle {
        Some(machine) => Ok(machine),
        None => {
            Machine::new(version).map_err(|reason| format!("ERR no machine for a script: {reason}"))
        }
    }
}

/// Keeps a machine for the next script.
pub(super) fn give_back(machine: Machine) {
    if machine.is_reusable() {
        IDLE.with_borrow_mut(|idle| {
            if idle.len() < SCRIPT_MACHINES_KEPT_MAX {
                idle.push(machine);
            }
        });
    }
}
