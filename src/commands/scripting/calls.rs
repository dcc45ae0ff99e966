//! What a script calls: checked as Redis checks it, then run as any command.

use bytes::Bytes;

use crate::commands::arguments::{argument, integer};
use crate::commands::call::{CallError, Invocation, Mode, call_once, call_read};
use crate::commands::flags::Flags;
use crate::commands::resolve::resolve;
use crate::commands::row::{ConnectionCommand, Handler};
use crate::error::CommandError;
use crate::limits::DATABASES;
use crate::reply::Reply;
use crate::scripting::Run;
use crate::store::StoreError;
use crate::types::unit::AnyUnit;

/// What holds for the calls of one script.
pub(super) struct Calls<'c> {
    pub(super) unit: AnyUnit<'c>,
    /// The database that the script has selected.
    pub(super) database: u32,
    pub(super) only_reads: bool,
    pub(super) run: &'c Run,
    /// The time for all of the script.
    pub(super) now_us: i64,
}

impl Calls<'_> {
    /// Runs a command. Its errors are replies.
    ///
    /// # Errors
    /// The store's, or that the transaction cannot hold it: the script ends.
    pub(super) async fn run(&mut self, arguments: Vec<Bytes>) -> Result<Reply, StoreError> {
        let invocation = match Invocation::resolve(self.database, arguments) {
            Ok(invocation) => invocation,
            Err(refusal) => {
                let reason = match refusal.row {
                    None => "ERR Unknown Redis command called from script",
                    Some(_) => "ERR Wrong number of args calling Redis command from script",
                };
                return Ok(Reply::Error(reason.to_owned()));
            }
        };
        let flags = invocation.row.flags;
        let refused = |reason: &str| Ok(Reply::Error(reason.to_owned()));
        if flags.contains(Flags::NOSCRIPT) {
            return refused("ERR This Redis command is not allowed from script");
        }
        let writes = flags.contains(Flags::WRITE) || flags.contains(Flags::MAY_REPLICATE);
        if writes && self.only_reads {
            return refused("ERR Write commands are not allowed from read-only scripts.");
        }
        if flags.contains(Flags::WRITE) {
            self.run.note_write();
        }
        match invocation.row.handler {
            Handler::Connection(ConnectionCommand::Select) => {
                let selected = select(&invocation.arguments);
                if let Ok(database) = selected {
                    self.database = database;
                }
                Ok(crate::commands::call::to_reply(selected.map(|_| Reply::OK)))
            }
            // There are no replicas, and scripts do not wait.
            Handler::Connection(ConnectionCommand::Wait) => Ok(Reply::Integer(0)),
            _ if invocation.row.name == "time" => Ok(self.time()),
            _ => self.call(&invocation).await,
        }
    }

    async fn call(&self, invocation: &Invocation) -> Result<Reply, StoreError> {
        let mode = Mode {
            is_strict: !invocation.row.flags.contains(Flags::AT_SNAPSHOT),
            ..Mode::default()
        };
        let result = match self.unit {
            // Queues that other servers hold elements of come back for the whole script.
            AnyUnit::Write(unit) => call_once(unit, invocation, mode).await,
            AnyUnit::Read(unit) => call_read(unit, invocation).await,
        };
        result.map_err(|error| match error {
            CallError::Store(error) => error,
            CallError::TooLarge => StoreError::TooLarge,
        })
    }

    fn time(&self) -> Reply {
        let text = |number: i64| Reply::bulk(number.to_string());
        Reply::Array(vec![
            text(self.now_us.div_euclid(1_000_000)),
            text(self.now_us.rem_euclid(1_000_000)),
        ])
    }
}

/// `redis.acl_check_cmd`: there is one user, who may call everything that there is.
pub(super) fn check(arguments: &[Bytes]) -> Reply {
    match resolve(arguments) {
        Err(refusal) if refusal.row.is_none() => {
            Reply::Error("ERR Invalid command passed to redis.acl_check_cmd()".to_owned())
        }
        _ => Reply::OK,
    }
}

fn select(arguments: &[Bytes]) -> Result<u32, CommandError> {
    let index = integer(argument(arguments, 1)?)?;
    let database = u32::try_from(index).ok();
    database
        .filter(|database| *database < DATABASES)
        .ok_or(CommandError::DatabaseOutOfRange)
}
