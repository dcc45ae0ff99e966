//! The one way to run a command: for a batch, for EXEC, for a client that waited.

use bytes::Bytes;

use super::resolve::{Refusal, resolve};
use super::row::{Handler, Row};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::store::StoreError;
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
        })
    }
}

/// In what circumstances a command runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mode {
    /// Every read takes part in conflict detection: within EXEC, and of reads that follow a write of
    /// their client.
    pub is_strict: bool,
    /// It pops from what other servers have popped for the unit, where they have.
    pub pops_staged: bool,
}

/// Why a command has no reply yet. Nothing of it is in the transaction.
#[derive(Debug)]
pub enum CallError {
    /// The store failed, for the whole transaction.
    Store(StoreError),
    /// The transaction cannot hold the command. One that holds less may.
    TooLarge,
}

/// Runs a command in a unit of work: all of it or, where it fails or the transaction cannot hold it,
/// nothing. Errors of the command itself are replies.
///
/// # Errors
/// See [`CallError`].
pub async fn call(
    unit: &Unit<'_>,
    invocation: &Invocation,
    mode: Mode,
) -> Result<Reply, CallError> {
    let Invocation {
        row,
        arguments,
        database,
    } = invocation;
    match row.handler {
        Handler::Write(handler) => {
            let savepoint = unit.savepoint();
            let mut context = unit.write_context(*database);
            if mode.pops_staged {
                context = context.with_staged(&unit.staged);
            }
            if mode.is_strict {
                context = context.strict();
            }
            let result = handler(&context, arguments).await;
            end(unit, savepoint, result).map(to_reply)
        }
        Handler::Read(handler) => {
            let mut context = unit.read_context(*database);
            if mode.is_strict {
                context = context.strict();
            }
            check(handler(&context, arguments).await).map(to_reply)
        }
        Handler::Script(handler) => {
            let unit = AnyUnit::Write(unit);
            check(handler(unit, *database, arguments).await).map(to_reply)
        }
        Handler::Pure(handler) => check(handler(unit.environment(), arguments)).map(to_reply),
        Handler::Connection(_) | Handler::Container => Ok(needs_connection()),
    }
}

/// Runs a command that only reads on a snapshot.
///
/// # Errors
/// `Store`: the snapshot is of no more use.
pub async fn call_read(unit: &ReadUnit<'_>, invocation: &Invocation) -> Result<Reply, CallError> {
    let arguments = &invocation.arguments;
    match invocation.row.handler {
        Handler::Read(handler) => {
            let context = unit.context(invocation.database);
            check(handler(&context, arguments).await).map(to_reply)
        }
        Handler::Script(handler) => {
            let unit = AnyUnit::Read(unit);
            check(handler(unit, invocation.database, arguments).await).map(to_reply)
        }
        Handler::Pure(handler) => check(handler(unit.environment, arguments)).map(to_reply),
        Handler::Write(_) | Handler::Connection(_) | Handler::Container => Ok(needs_connection()),
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
        // A write was refused, which a later read was told.
        Err(CommandError::Store(StoreError::TooLarge)) => Err(CallError::TooLarge),
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

/// An error of the command is its reply.
pub fn to_reply(result: Result<Reply, CommandError>) -> Reply {
    result.unwrap_or_else(|error| Reply::Error(error.to_line()))
}

fn needs_connection() -> Reply {
    Reply::Error("ERR command needs a connection of its own".to_owned())
}
