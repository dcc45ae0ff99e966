//! The only way to execute a command: for a batch, for EXEC, and for a client that waited.

use bytes::Bytes;

use crate::command::flags::Flags;
use crate::command::grammar::Syntax;
use crate::command::resolve;
use crate::command::resolve::Refusal;
use crate::command::row::{Group, Handler, Row};
use crate::error::CommandError;
use crate::keyspace::key::ClientKey;
use crate::unit::host::Origin;
use crate::unit::known::KnownKeys;
use crate::unit::{AnyUnit, Savepoint, Unit};
use quoin_resp::reply::Reply;
use quoin_store::{Growth, StoreError};

/// A command that was found in the table, with a valid number of arguments.
#[derive(Clone)]
pub struct Invocation {
    /// The row of the command or subcommand.
    pub row: &'static Row,
    /// Its arguments, starting with the command's name.
    pub arguments: Vec<Bytes>,
    /// The client's database.
    pub database: u32,
    /// On whose behalf it runs.
    pub origin: Origin,
}

impl Invocation {
    /// Looks up a command and checks its number of arguments.
    ///
    /// # Errors
    /// Redis's reason why there is no such command.
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

/// The circumstances in which a command is executed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mode<'k> {
    /// Every read takes part in conflict detection. Set within EXEC, and for reads that follow a write of the same
    /// client.
    pub is_strict: bool,
    /// What is known about its keys.
    pub known_keys: KnownKeys<'k>,
    /// A script called it.
    pub is_in_script: bool,
    /// It belongs to an EXEC.
    pub is_in_exec: bool,
}

impl Mode<'_> {
    /// Whether the command belongs to a script or EXEC, which is refused as a whole if it adds data.
    fn is_part(self) -> bool {
        self.is_in_script || self.is_in_exec
    }
}

/// Why a command has no reply yet. None of its changes are in the transaction.
#[derive(Debug)]
pub enum CallError {
    /// The store failed. The whole transaction fails.
    Store(StoreError),
    /// The transaction has no room for the command. An emptier one may have.
    TooLarge,
    /// Elements of this queue, which the command replaces, are granted to other servers. They must be returned before
    /// the command is executed again; see [`with_returns`].
    MustReturn(ClientKey),
    /// A script exceeded the time that scripts may take in this unit of work.
    OutOfTime,
}

/// Maximum number of queues whose grants are returned for one command.
const RETURNS_MAX: usize = 16;

/// Executes a command in a transaction. If the command fails or does not fit into the transaction, its changes are
/// undone. Errors of the command itself are replies.
///
/// # Errors
/// See [`CallError`].
pub async fn call(
    unit: &Unit<'_>,
    invocation: &Invocation,
    mode: Mode<'_>,
) -> Result<Reply, CallError> {
    with_returns(unit, async || {
        call_once(AnyUnit::Write(unit), invocation, mode).await
    })
    .await
}

/// Calls `run`. If it meets a queue whose elements are granted to other servers, its changes are undone, the elements are
/// returned to the queue in the same transaction, and `run` is called again.
///
/// # Errors
/// See [`CallError`].
pub async fn with_returns(
    unit: &Unit<'_>,
    run: impl AsyncFn() -> Result<Reply, CallError>,
) -> Result<Reply, CallError> {
    for _ in 0..RETURNS_MAX {
        let key = match run().await {
            Err(CallError::MustReturn(key)) => key,
            result => return result,
        };
        let savepoint = unit.savepoint();
        let returned = unit
            .write_context(key.database)
            .return_grants_of(&key.key)
            .await;
        if let Err(error) = end(unit, savepoint, returned)? {
            return Ok(to_reply(Err(error)));
        }
    }
    Err(CallError::TooLarge)
}

/// Executes a command once, in a transaction or on a snapshot. Unlike [`call`], it does not use [`with_returns`]: the
/// caller either returns grants for several commands together or does not write.
///
/// # Errors
/// See [`CallError`].
pub async fn call_once(
    any: AnyUnit<'_>,
    invocation: &Invocation,
    mode: Mode<'_>,
) -> Result<Reply, CallError> {
    let Invocation {
        row,
        arguments,
        database,
        origin,
    } = invocation;
    if !mode.is_in_script {
        any.set_origin(*origin);
    }
    if !mode.is_part()
        && row.flags.contains(Flags::DENYOOM)
        && let Some(refusal) = CommandError::of_growth(any.growth())
    {
        return Ok(to_reply(Err(refusal)));
    }
    // A command that only removes may temporarily write a little more than it removes.
    let is_bounded = !mode.is_part() && !row.only_removes();
    match (row.handler, any) {
        (Handler::Write(handler), AnyUnit::Write(unit)) => {
            let savepoint = unit.savepoint().bounding_growth(is_bounded);
            let mut context = unit.write_context(*database);
            if origin.lacks_named_keys {
                context = context.lacking_named_keys();
            }
            if mode.is_strict {
                context = context.strict();
            }
            let mut context = context.knowing(mode.known_keys);
            if mode.is_in_script {
                context = context.in_script();
            }
            let result = handler(&context, arguments).await;
            let ended = end(unit, savepoint, result).map(|result| reply_of(row, result));
            note_reads(any, invocation);
            ended
        }
        (Handler::Read(handler), _) => {
            let mut context = any.context(*database, mode.is_strict);
            context.is_in_script = mode.is_in_script;
            context.lacks_named_keys = origin.lacks_named_keys;
            let result = handler(&context, arguments).await;
            note_reads(any, invocation);
            check(result).map(|result| reply_of(row, result))
        }
        (Handler::Script(handler), _) => {
            let is_counted = is_bounded && any.growth() == Growth::DiskFull;
            let savepoint = match any {
                AnyUnit::Write(unit) if is_counted || any.script_limit().is_some() => {
                    Some((unit, unit.savepoint().bounding_growth(is_bounded)))
                }
                _ => None,
            };
            let result = check(handler(any, *database, arguments).await).map(to_reply);
            match (savepoint, result) {
                // The writes of a failed script stay.
                (Some((unit, savepoint)), Ok(reply)) => {
                    end(unit, savepoint, Ok(reply)).map(to_reply)
                }
                (Some((unit, savepoint)), Err(error)) => Err(undo(unit, savepoint, error)),
                (None, result) => result,
            }
        }
        (Handler::Pure(handler), _) => check(handler(any.environment(), arguments)).map(to_reply),
        (Handler::Write(_) | Handler::Connection(_) | Handler::Container, _) => {
            Ok(needs_connection())
        }
    }
}

/// Records the keys that a command reads, whatever its reply, if its client tracks keys (Redis:
/// `trackingRememberKeys`). The commands that a script calls record their own keys.
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

/// Keeps the changes since the savepoint if `result` is a success. They are undone if `result` is an error, if the
/// transaction has become too large, or if it adds more than a full disk allows. The inner error is one that does not
/// come from the store.
///
/// # Errors
/// See [`CallError`].
pub fn end<T>(
    unit: &Unit<'_>,
    savepoint: Savepoint,
    result: Result<T, CommandError>,
) -> Result<Result<T, CommandError>, CallError> {
    match check(result) {
        Ok(Ok(_)) if unit.has_outgrown(&savepoint) => {
            unit.rollback(savepoint);
            Ok(Err(CommandError::NoRoomToGrow))
        }
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
        Ok(Err(error)) => {
            unit.rollback(savepoint);
            Ok(Err(error))
        }
        Err(error) => Err(undo(unit, savepoint, error)),
    }
}

/// Undoes the changes since the savepoint, unless the error ends the transaction.
pub fn undo(unit: &Unit<'_>, savepoint: Savepoint, error: CallError) -> CallError {
    if !matches!(error, CallError::Store(_)) {
        unit.rollback(savepoint);
    }
    error
}

/// Separates failures of the store, which end the transaction, from those of the command.
///
/// # Errors
/// See [`CallError`].
pub fn check<T>(result: Result<T, CommandError>) -> Result<Result<T, CommandError>, CallError> {
    match result {
        // The transaction refused a write, and a later read reports it.
        Err(CommandError::Store(StoreError::TooLarge)) => Err(CallError::TooLarge),
        Err(CommandError::GrantsOutstanding { database, key }) => {
            Err(CallError::MustReturn(ClientKey { database, key }))
        }
        Err(CommandError::ScriptOutOfTime) => Err(CallError::OutOfTime),
        Err(CommandError::Store(error)) if !error.is_about_rows() => Err(CallError::Store(error)),
        Err(error) => {
            // The store itself logs damaged rows only once a minute.
            if let CommandError::Store(error @ StoreError::Corrupt(_)) = &error {
                tracing::error!(%error, "a command met rows that it cannot read");
            }
            Ok(Err(error))
        }
        Ok(value) => Ok(Ok(value)),
    }
}

/// [`to_reply`], but a syntax error of a command that Redis does not have also gives the expected syntax.
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

/// Turns an error of the command into its reply.
pub fn to_reply(result: Result<Reply, CommandError>) -> Reply {
    result.unwrap_or_else(|error| Reply::Error(error.to_line()))
}

fn needs_connection() -> Reply {
    Reply::Error("ERR command needs a connection of its own".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_to_run_again_is_told_from_the_others() {
        let of = |error: CommandError| check::<()>(Err(error));
        let too_large = of(StoreError::TooLarge.into());
        assert!(matches!(too_large, Err(CallError::TooLarge)));
        let late = of(CommandError::ScriptOutOfTime);
        assert!(matches!(late, Err(CallError::OutOfTime)));
        assert!(matches!(of(CommandError::Syntax), Ok(Err(_))));
    }
}
