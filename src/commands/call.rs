//! The one way to run a command: for a batch, for EXEC, for a client that waited.

use bytes::Bytes;

use super::flags::Flags;
use super::grammar::Syntax;
use super::resolve::{Refusal, resolve};
use super::row::{Group, Handler, Row};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::store::{Growth, StoreError};
use crate::types::known_keys::KnownKeys;
use crate::types::tracking::Origin;
use crate::types::unit::{AnyUnit, ReadUnit, Savepoint, Unit};

/// A command with its arguments: found in the table, and as many as it takes.
#[derive(Clone)]
pub struct Invocation {
    /// The row of the command or subcommand.
    pub row: &'static Row,
    /// Its arguments, the command's name first.
    pub arguments: Vec<Bytes>,
    /// The client's database.
    pub database: u32,
    /// On whose behalf it runs.
    pub origin: Origin,
}

impl Invocation {
    /// Looks a command up and counts its arguments.
    ///
    /// # Errors
    /// Why there is no such command, as Redis says it.
    pub fn resolve(database: u32, arguments: Vec<Bytes>) -> Result<Self, Refusal> {
        let row = resolve(&arguments)?;
        Ok(Self {
            row,
            arguments,
            database,
            origin: Origin::SERVER,
        })
    }
}

/// In what circumstances a command runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mode<'k> {
    /// Every read takes part in conflict detection: within EXEC, and of reads that follow a write of
    /// their client.
    pub is_strict: bool,
    /// It pops from what other servers have popped for the unit, where they have.
    pub pops_grants: bool,
    /// What is known of its keys.
    pub known_keys: KnownKeys<'k>,
    /// A script calls it.
    pub is_in_script: bool,
    /// It is one of the commands of an EXEC.
    pub is_in_exec: bool,
}

impl Mode<'_> {
    /// Whether the command is a part of what is refused as a whole where it adds data.
    fn is_part(self) -> bool {
        self.is_in_script || self.is_in_exec
    }
}

/// Why a command has no reply yet. Nothing of it is in the transaction.
#[derive(Debug)]
pub enum CallError {
    /// The store failed, for the whole transaction.
    Store(StoreError),
    /// The transaction cannot hold the command. One that holds less may.
    TooLarge,
    /// It is a script that needs longer than scripts may take in this unit of work.
    OutOfTime,
}

/// Queues whose grants may return for one command.
const RETURNS_MAX: usize = 16;

/// Runs a command in a unit of work: all of it or, where it fails or the transaction cannot hold it,
/// nothing. Errors of the command itself are replies.
///
/// # Errors
/// See [`CallError`].
pub async fn call(
    unit: &Unit<'_>,
    invocation: &Invocation,
    mode: Mode<'_>,
) -> Result<Reply, CallError> {
    unit.signals.set_origin(invocation.origin);
    with_returns(unit, async || call_once(unit, invocation, mode).await).await
}

/// Runs what is undone where it meets a queue of which other servers hold elements: these return to
/// the queue, in the same transaction, and it runs again.
///
/// # Errors
/// See [`CallError`].
pub async fn with_returns(
    unit: &Unit<'_>,
    run: impl AsyncFn() -> Result<Reply, CallError>,
) -> Result<Reply, CallError> {
    for _ in 0..RETURNS_MAX {
        let result = run().await;
        let met = match &result {
            Err(CallError::TooLarge) => unit.grants.take_met(),
            _ => None,
        };
        let Some(key) = met else {
            return result;
        };
        let savepoint = unit.savepoint();
        let returned = unit.write_context(0).return_grants(&key).await;
        if let Err(error) = end(unit, savepoint, returned)? {
            return Ok(to_reply(Err(error)));
        }
    }
    Err(CallError::TooLarge)
}

/// [`call`] without [`with_returns`]: for a command of several that return and run again together.
///
/// # Errors
/// See [`CallError`].
pub async fn call_once(
    unit: &Unit<'_>,
    invocation: &Invocation,
    mode: Mode<'_>,
) -> Result<Reply, CallError> {
    let Invocation {
        row,
        arguments,
        database,
        origin,
    } = invocation;
    if !mode.is_part()
        && row.flags.contains(Flags::DENYOOM)
        && let Some(refusal) = CommandError::of_growth(unit.transaction.growth())
    {
        return Ok(to_reply(Err(refusal)));
    }
    // A command that only removes may write a little more than it removes, for the moment.
    let may_outgrow = !mode.is_part() && !row.only_removes();
    match row.handler {
        Handler::Write(handler) => {
            let savepoint = unit.savepoint();
            let mut context = unit.write_context(*database);
            if origin.lacks_named_keys {
                context = context.lacking_named_keys();
            }
            if mode.pops_grants {
                context = context.popping_grants();
            }
            if mode.is_strict {
                context = context.strict();
            }
            let mut context = context.knowing(mode.known_keys);
            if mode.is_in_script {
                context = context.in_script();
            }
            let mut result = handler(&context, arguments).await;
            if result.is_ok() && may_outgrow && unit.has_outgrown(&savepoint) {
                result = Err(CommandError::NoRoomToGrow);
            }
            let ended = end(unit, savepoint, result).map(|result| reply_of(row, result));
            note_reads(AnyUnit::Write(unit), invocation);
            ended
        }
        Handler::Read(handler) => {
            let mut context = unit.read_context(*database);
            if mode.is_strict {
                context = context.strict();
            }
            context.is_in_script = mode.is_in_script;
            context.lacks_named_keys = origin.lacks_named_keys;
            let result = handler(&context, arguments).await;
            note_reads(AnyUnit::Write(unit), invocation);
            check(result).map(|result| reply_of(row, result))
        }
        Handler::Script(handler) => {
            let any = AnyUnit::Write(unit);
            let is_counted = may_outgrow && any.growth() == Growth::DiskFull;
            let is_undone = is_counted || any.script_limit().is_some();
            let savepoint = is_undone.then(|| unit.savepoint());
            let result = check(handler(any, *database, arguments).await);
            if let Some(savepoint) = savepoint {
                // What a script has written stays where it fails.
                if result.is_ok() && may_outgrow && unit.has_outgrown(&savepoint) {
                    unit.rollback(savepoint);
                    return Ok(to_reply(Err(CommandError::NoRoomToGrow)));
                }
                match &result {
                    Err(CallError::OutOfTime) => unit.rollback(savepoint),
                    // The transaction ends with it.
                    Err(CallError::Store(_)) => {}
                    _ => unit.release(savepoint),
                }
            }
            result.map(to_reply)
        }
        Handler::Pure(handler) => check(handler(unit.environment(), arguments)).map(to_reply),
        Handler::Connection(_) | Handler::Container => Ok(needs_connection()),
    }
}

/// Runs a command that only reads on a snapshot.
///
/// # Errors
/// `Store`: the snapshot is of no more use.
pub async fn call_read(
    unit: &ReadUnit<'_>,
    invocation: &Invocation,
    mode: Mode<'_>,
) -> Result<Reply, CallError> {
    let arguments = &invocation.arguments;
    match invocation.row.handler {
        Handler::Read(handler) => {
            let mut context = unit.context(invocation.database);
            context.is_in_script = mode.is_in_script;
            context.lacks_named_keys = invocation.origin.lacks_named_keys;
            let result = handler(&context, arguments).await;
            note_reads(AnyUnit::Read(unit), invocation);
            check(result).map(|result| reply_of(invocation.row, result))
        }
        Handler::Script(handler) => {
            let unit = AnyUnit::Read(unit);
            check(handler(unit, invocation.database, arguments).await).map(to_reply)
        }
        Handler::Pure(handler) => check(handler(unit.environment, arguments)).map(to_reply),
        Handler::Write(_) | Handler::Connection(_) | Handler::Container => Ok(needs_connection()),
    }
}

/// Remembers the keys of a command that reads, whatever its reply, if its client tracks keys (Redis:
/// `trackingRememberKeys`). Of a script these are the keys of what it calls.
fn note_reads(unit: AnyUnit<'_>, invocation: &Invocation) {
    if !unit.tracks() || !invocation.row.flags.contains(Flags::READONLY) {
        return;
    }
    for at in invocation.row.key_indexes(&invocation.arguments) {
        if let Some(key) = invocation.arguments.get(at) {
            unit.note_read(key.clone());
        }
    }
}

/// Keeps what was done since the savepoint, or undoes it where it failed or where the transaction
/// has become too large. Failures that are not the store's are the inner error.
///
/// # Errors
/// See [`CallError`].
pub fn end<T>(
    unit: &Unit<'_>,
    savepoint: Savepoint,
    result: Result<T, CommandError>,
) -> Result<Result<T, CommandError>, CallError> {
    match check(result) {
        Ok(Ok(_)) if unit.is_too_large() => {
            unit.rollback(savepoint);
            Err(CallError::TooLarge)
        }
        Ok(Ok(_)) if unit.signals.has_refused() => {
            unit.rollback(savepoint);
            Ok(Err(CommandError::PublishesTooMuch))
        }
        Ok(Ok(value)) => {
            unit.release(savepoint);
            Ok(Ok(value))
        }
        // The transaction ends with it.
        Err(CallError::Store(error)) => Err(CallError::Store(error)),
        failed => {
            unit.rollback(savepoint);
            failed
        }
    }
}

/// Tells failures of the store, which end the transaction, from those of the command.
///
/// # Errors
/// See [`CallError`].
pub fn check<T>(result: Result<T, CommandError>) -> Result<Result<T, CommandError>, CallError> {
    match result {
        // A write was refused, which a later read was told; or grants have to return first.
        Err(CommandError::Store(StoreError::TooLarge) | CommandError::GrantsOutstanding) => {
            Err(CallError::TooLarge)
        }
        Err(CommandError::ScriptOutOfTime) => Err(CallError::OutOfTime),
        Err(CommandError::Store(error)) if !error.is_about_rows() => Err(CallError::Store(error)),
        Err(error) => {
            // The store itself logs damaged rows, once a minute.
            if let CommandError::Store(error @ StoreError::Corrupt(_)) = &error {
                tracing::error!(%error, "a command met rows that it cannot read");
            }
            Ok(Err(error))
        }
        Ok(value) => Ok(Ok(value)),
    }
}

/// [`to_reply`], where a syntax error of a command that Redis does not have says what is expected.
fn reply_of(row: &Row, result: Result<Reply, CommandError>) -> Reply {
    let is_own = matches!(row.group, Group::PriorityQueue | Group::TaskQueue);
    to_reply(result.map_err(|error| match error {
        CommandError::Syntax if is_own => {
            let name = row.name.to_uppercase();
            let expected = Syntax(row.arguments);
            CommandError::Text(format!("ERR syntax error, expected {name} {expected}").into())
        }
        error => error,
    }))
}

/// An error of the command is its reply.
pub fn to_reply(result: Result<Reply, CommandError>) -> Reply {
    result.unwrap_or_else(|error| Reply::Error(error.to_line()))
}

fn needs_connection() -> Reply {
    Reply::Error("ERR command needs a connection of its own".to_owned())
}
