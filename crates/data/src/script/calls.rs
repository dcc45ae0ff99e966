//! The commands that a script calls. Each call is checked as in Redis and then executed like any other command.
//!
//! Also writes for commands that receive the whole unit of work.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quoin_lua::{Commands, End, Fiber, KILLED_LINE, Origin, Run};
use quoin_resp::reply::Reply;
use quoin_store::{Growth, StoreError};

use crate::command::arguments::{argument, integer};
use crate::command::call::{CallError, Invocation, Mode, call_once};
use crate::command::flags::Flags;
use crate::command::resolve;
use crate::command::row::{ConnectionCommand, Handler, Row};
use crate::error::CommandError;
use crate::keyspace::key::ClientKey;
use crate::stream::commands::refusal_in_script;
use crate::unit::AnyUnit;
use crate::unit::context::WriteContext;
use crate::unit::host::{CallResult, ClientRights, ScriptCall};

/// The state of one script's calls.
pub(super) struct Calls<'c> {
    unit: AnyUnit<'c>,
    /// The database that the script has selected.
    database: u32,
    only_reads: bool,
    /// It may add data although `maxmemory` is reached.
    allows_oom: bool,
    run: &'c Run,
    /// The time, which is the same for the whole script.
    now_us: i64,
    /// The rights of the script's client; `None` means all.
    rights: Option<Arc<dyn ClientRights>>,
    /// Calls that are not counted yet.
    made: Vec<ScriptCall>,
    /// Why a call ended the script, if one did.
    stop: Option<CallStop>,
}

/// Why a script ends at a call.
enum CallStop {
    /// The script exceeds the time that a transaction of the store may last.
    Late,
    /// The store failed, or the transaction cannot hold the script in its current state.
    Failed(CommandError),
}

impl Commands for Calls<'_> {
    fn call(&mut self, arguments: Vec<Bytes>, fiber: &Fiber<'_>) -> Option<Reply> {
        if self.run.is_late() {
            self.stop = Some(CallStop::Late);
            return None;
        }
        // Pinned in place: the future is large and is not moved.
        let reply = {
            let reply = pin!(self.run(arguments));
            fiber.wait(reply)?
        };
        match reply {
            Ok(reply) => Some(reply),
            Err(error) => {
                self.stop = Some(CallStop::Failed(error));
                None
            }
        }
    }

    fn check(&mut self, arguments: Vec<Bytes>) -> Reply {
        check(self.unit, &arguments)
    }
}

/// Most calls that are counted together.
const MADE_MAX: usize = 256;

impl<'c> Calls<'c> {
    /// The state of a script that has called nothing yet.
    pub(super) fn new(
        unit: AnyUnit<'c>,
        database: u32,
        only_reads: bool,
        allows_oom: bool,
        run: &'c Run,
    ) -> Self {
        Self {
            unit,
            database,
            only_reads,
            allows_oom,
            run,
            now_us: unit.environment().clock.now_us(),
            rights: rights_of(unit),
            made: Vec::new(),
            stop: None,
        }
    }

    /// Returns how the script ended, and counts its calls.
    ///
    /// # Errors
    /// An error of the store, or the transaction cannot hold the script.
    pub(super) fn end(mut self, end: End) -> Result<End, CommandError> {
        let end = match self.stop.take() {
            Some(CallStop::Failed(error)) => return Err(error),
            Some(CallStop::Late) => End::Late,
            None => end,
        };
        if let End::Replied(Reply::Error(line), Origin::Call) | End::Failed(line, Origin::Call) =
            &end
        {
            self.leave_to_reply(line);
        }
        let runs_again = matches!(end, End::Late) && self.unit.script_limit().is_some();
        if !runs_again {
            self.tell();
        }
        Ok(end)
    }

    /// Executes a command. Its errors are replies.
    ///
    /// # Errors
    /// An error of the store, or the transaction cannot hold the command. The script ends.
    async fn run(&mut self, arguments: Vec<Bytes>) -> Result<Reply, CommandError> {
        let started = Instant::now();
        let mut invocation = match Invocation::resolve(self.database, arguments) {
            Ok(invocation) => invocation,
            Err(refusal) => {
                let reason = match refusal.row {
                    None => "ERR Unknown Redis command called from script",
                    Some(_) => "ERR Wrong number of args calling Redis command from script",
                };
                return Ok(self.reject(refusal.row, started, reason));
            }
        };
        let row = invocation.row;
        if let Err(reason) = self.check_row(row) {
            return Ok(self.reject(Some(row), started, reason));
        }
        if let Some(rights) = &self.rights {
            let (id, arguments) = (row.id, invocation.arguments.as_slice());
            if let Err(refused) = rights.check(id, arguments) {
                let line = format!("ERR ACL failure in script: {}", refused.message);
                let reply = self.reject(Some(row), started, &line);
                if let Some(call) = self.made.last_mut() {
                    call.refused = Some(Box::new((self.unit.client(), refused)));
                }
                return Ok(reply);
            }
            let names_keys = row.names_keys_by_values();
            invocation.origin.lacks_named_keys =
                names_keys && !rights.reads_all_keys(id, arguments);
        }
        if let Err(reason) = self.check_writes(row) {
            return Ok(self.reject(Some(row), started, reason));
        }
        if self.lacks_room(row) {
            let line = CommandError::OutOfMemory.to_line();
            return Ok(self.reject(Some(row), started, &line));
        }
        let database = self.database;
        let reply = self.run_checked(&invocation).await?;
        let (result, error) = match &reply {
            Reply::Error(line) => (CallResult::Failed, Some(code_of(line).into())),
            _ => (CallResult::Done, None),
        };
        let counter = self.unit.environment().script_calls.as_ref();
        let is_shown = counter.is_some_and(|counter| counter.are_shown());
        let shown = is_shown.then_some((database, invocation.arguments));
        self.note(ScriptCall {
            command_id: Some(row.id),
            duration: started.elapsed(),
            result,
            error,
            shown,
            refused: None,
        });
        Ok(reply)
    }

    /// Whether scripts in general may call it.
    fn check_row(&self, row: &Row) -> Result<(), &'static str> {
        match row.flags.contains(Flags::NOSCRIPT) {
            true => Err("ERR This Redis command is not allowed from script"),
            false => Ok(()),
        }
    }

    /// Whether this script may call it.
    fn check_writes(&self, row: &Row) -> Result<(), &'static str> {
        let writes = row.flags.contains(Flags::WRITE) || row.flags.contains(Flags::MAY_REPLICATE);
        if writes && self.only_reads {
            return Err("ERR Write commands are not allowed from read-only scripts.");
        }
        Ok(())
    }

    /// Whether a command is refused because `maxmemory` is reached. As in Redis, this applies only before the script's
    /// first write, so that the script is not stopped half-way. On a full disk the whole script is refused.
    fn lacks_room(&self, row: &Row) -> bool {
        row.flags.contains(Flags::DENYOOM)
            && !self.allows_oom
            && self.unit.growth() == Growth::AtBound
            && !self.run.has_written()
    }

    async fn run_checked(&mut self, invocation: &Invocation) -> Result<Reply, CommandError> {
        if let Some(reason) = refusal_in_script(invocation.row, &invocation.arguments) {
            return Ok(Reply::Error(reason));
        }
        if invocation.row.flags.contains(Flags::WRITE) && !self.run.may_write() {
            // The script ends at one of its next instructions.
            return Ok(Reply::Error(KILLED_LINE.into()));
        }
        match invocation.row.handler {
            Handler::Connection(ConnectionCommand::Select) => {
                let selected = self.select(&invocation.arguments);
                if let Ok(database) = selected {
                    self.database = database;
                }
                Ok(crate::command::call::to_reply(selected.map(|_| Reply::OK)))
            }
            // There are no replicas, and scripts do not wait.
            Handler::Connection(ConnectionCommand::Wait) => Ok(Reply::Integer(0)),
            _ if invocation.row.name == "time" => Ok(self.time()),
            _ => self.run_row(invocation).await,
        }
    }

    fn select(&self, arguments: &[Bytes]) -> Result<u32, CommandError> {
        let index = integer(argument(arguments, 1)?)?;
        self.unit.environment().database(index)
    }

    /// Refuses a call before it is executed.
    fn reject(&mut self, row: Option<&Row>, started: Instant, line: &str) -> Reply {
        self.note(ScriptCall {
            command_id: row.map(|row| row.id),
            duration: started.elapsed(),
            result: CallResult::Rejected,
            error: Some(code_of(line).into()),
            shown: None,
            refused: None,
        });
        Reply::Error(line.to_owned())
    }

    fn note(&mut self, call: ScriptCall) {
        // Calls of a script that may be executed again are not reported before it ends.
        if self.made.len() >= MADE_MAX && self.unit.script_limit().is_none() {
            self.tell();
        }
        self.made.push(call);
    }

    /// The script ends with this error of a call. The error is counted with the script's reply, so it is not counted
    /// with the call. (If calls are reported before the end, the call is not found after [`MADE_MAX`] further calls.)
    fn leave_to_reply(&mut self, line: &str) {
        let code = code_of(line);
        let mut latest = self.made.iter_mut().rev();
        if let Some(call) = latest.find(|call| call.error.as_deref() == Some(code)) {
            call.error = None;
        }
    }

    /// Reports the calls to be counted. Those of a transaction are counted when it is committed.
    fn tell(&mut self) {
        let made = std::mem::take(&mut self.made);
        let at_once = match self.unit {
            AnyUnit::Write(unit) => unit.signals.script_calls.keep(made),
            AnyUnit::Read(_) => made,
        };
        if let Some(counter) = self.unit.environment().script_calls.as_ref() {
            for call in &at_once {
                counter.tell(call);
            }
        }
    }

    async fn run_row(&self, invocation: &Invocation) -> Result<Reply, CommandError> {
        let mode = Mode {
            is_strict: !invocation.row.flags.contains(Flags::AT_SNAPSHOT),
            is_in_script: true,
            ..Mode::default()
        };
        // The grants of queues are returned for the whole script.
        let result = call_once(self.unit, invocation, mode).await;
        result.map_err(|error| match error {
            CallError::Store(error) => error.into(),
            CallError::MustReturn(ClientKey { database, key }) => {
                CommandError::GrantsOutstanding { database, key }
            }
            // A script cannot call another script.
            CallError::TooLarge | CallError::OutOfTime => StoreError::TooLarge.into(),
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

/// The code of an error line.
fn code_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}

/// The rights of the client on whose behalf a script is executed; `None` means all.
fn rights_of(unit: AnyUnit<'_>) -> Option<Arc<dyn ClientRights>> {
    let rights = unit.environment().rights.as_ref()?;
    rights.of(unit.client())
}

/// `redis.acl_check_cmd`: whether the script's client may call a command.
fn check(unit: AnyUnit<'_>, arguments: &[Bytes]) -> Reply {
    let row = match resolve(arguments) {
        Ok(row) => Some(row),
        // As in Redis, the number of arguments does not matter.
        Err(refusal) => refusal.row,
    };
    let Some(row) = row else {
        return Reply::Error("ERR Invalid command passed to redis.acl_check_cmd()".to_owned());
    };
    let rights = rights_of(unit);
    let is_allowed = rights.is_none_or(|rights| rights.check(row.id, arguments).is_ok());
    Reply::Boolean(is_allowed)
}

/// Performs all writes, or none if the transaction cannot hold them.
///
/// # Errors
/// `StoreError::TooLarge`, and the errors of `writes`.
pub(super) fn write(
    unit: AnyUnit<'_>,
    database: u32,
    writes: impl FnOnce(&WriteContext<'_>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let AnyUnit::Write(unit) = unit else {
        return Ok(());
    };
    let savepoint = unit.savepoint();
    let mut written = writes(&unit.write_context(database));
    if unit.is_too_large() {
        written = Err(StoreError::TooLarge.into());
    }
    match written {
        Ok(()) => unit.release(savepoint),
        Err(_) => unit.rollback(savepoint),
    }
    written
}
