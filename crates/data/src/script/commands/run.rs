//! Runs one script within a unit of work.

use bytes::Bytes;

use super::calls::Calls;
use super::machines;
use super::reading::Reading;
use crate::error::CommandError;
use crate::unit::AnyUnit;
use quoin_base::limits::SCRIPT_CLUSTER_TIME_MAX;
use quoin_lua::{Caller, End, Program, TimeLimit};
use quoin_resp::reply::Reply;
use quoin_store::{Growth, StoreError};

const LATE: CommandError = CommandError::text(
    "ERR script needs longer than a transaction of the store may last; nothing was changed",
);

/// What a script or a function is run with.
pub(super) struct Call<'c> {
    pub(super) program: &'c Program,
    pub(super) caller: Caller,
    pub(super) keys: Vec<Bytes>,
    pub(super) arguments: Vec<Bytes>,
    pub(super) database: u32,
    /// It may call nothing that writes.
    pub(super) only_reads: bool,
}

/// Runs a script. What it has written stays where it fails, as in Redis, unless it is `atomic`.
///
/// # Errors
/// What ends the script without a trace: the store's errors, more than the transaction holds
/// (`StoreError::TooLarge`), queues whose grants return first (`GrantsOutstanding`), too long a run
/// (`ScriptOutOfTime`, where the unit limits scripts).
pub(super) async fn run(unit: AnyUnit<'_>, call: Call<'_>) -> Result<Reply, CommandError> {
    let flags = call.program.flags();
    if unit.growth() == Growth::AtBound && flags.need_room() {
        return Err(CommandError::OutOfMemory);
    }
    let is_atomic = flags.is_atomic;
    let AnyUnit::Write(writable) = unit else {
        return to_result(unit, run_machine(unit, call).await?);
    };
    // Its reads decide about its writes, and its calls are one moment.
    writable.transaction.conflict_on_own_rows();
    let savepoint = writable.savepoint();
    let (keys, arguments) = (&call.keys, &call.arguments);
    let reading = Reading::begin(writable, call.database, call.program, keys, arguments).await;
    let ended = run_machine(unit, call).await;
    if let Some(reading) = reading {
        reading.end(writable);
    }
    let end = match ended {
        Ok(end) => end,
        Err(
            error @ (CommandError::Store(StoreError::TooLarge) | CommandError::GrantsOutstanding),
        ) => {
            writable.rollback(savepoint);
            return Err(error);
        }
        // The transaction ends with it.
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
    // A new machine takes time that is not the script's.
    let mut machine = machines::take().map_err(|line| CommandError::Text(line.into()))?;
    let limit = match unit.script_limit() {
        Some(limit) => TimeLimit::Busy(limit),
        None if environment.capabilities.single_writer => TimeLimit::Nothing,
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
    machines::give_back(machine);
    calls.end(end)
}
