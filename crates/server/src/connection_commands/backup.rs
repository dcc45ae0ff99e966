//! BGSAVE, BGREWRITEAOF, SAVE and LASTSAVE: backups of the embedded store.

use std::sync::Arc;

use bytes::Bytes;

use crate::connection_commands::shared::refusal;
use crate::session::Session;
use crate::state::ServerState;
use quoin_data::command::arguments::{is_word, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;
use quoin_tools::backup::{Backups, Retention, StartError};

/// `BGSAVE [SCHEDULE]`. Within EXEC every backup is scheduled. Otherwise SCHEDULE makes no
/// difference, because only another backup can prevent one.
pub(super) fn bgsave(
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match rest(arguments, 1) {
        [] => {}
        [word] if is_word(word, "schedule") => {}
        _ => return Err(CommandError::Syntax),
    }
    match begin(session, state)? {
        Begun::Scheduled => Ok(Reply::Simple("Background saving scheduled")),
        Begun::Started => Ok(Reply::Simple("Background saving started")),
    }
}

/// `BGREWRITEAOF`. The journal needs no rewriting, so this makes a backup too.
pub(super) fn bgrewriteaof(session: &Session, state: &ServerState) -> Result<Reply, CommandError> {
    match begin(session, state) {
        Ok(Begun::Scheduled) => Ok(Reply::Simple(
            "Background append only file rewriting scheduled",
        )),
        Ok(Begun::Started) => Ok(Reply::Simple(
            "Background append only file rewriting started",
        )),
        Err(NotBegun::Refused(StartError::AlreadyRunning)) => Err(CommandError::text(
            "ERR Background append only file rewriting already in progress",
        )),
        Err(error) => Err(error.into()),
    }
}

/// The result of a request for a backup.
enum Begun {
    Started,
    /// It begins after the transaction.
    Scheduled,
}

/// Why a backup did not begin.
enum NotBegun {
    /// This store has no backups.
    NoBackups(CommandError),
    Refused(StartError),
}

impl From<NotBegun> for CommandError {
    fn from(error: NotBegun) -> Self {
        match error {
            NotBegun::NoBackups(error) => error,
            NotBegun::Refused(error) => refused(error),
        }
    }
}

fn begin(session: &Session, state: &ServerState) -> Result<Begun, NotBegun> {
    let backups = backups(state).map_err(NotBegun::NoBackups)?;
    if session.is_in_exec {
        backups.schedule().map_err(NotBegun::Refused)?;
        return Ok(Begun::Scheduled);
    }
    start(backups, state).map_err(NotBegun::Refused)?;
    Ok(Begun::Started)
}

/// `SAVE`. Only its client waits.
pub(super) async fn save(state: &ServerState) -> Result<Reply, CommandError> {
    let ended = start(backups(state)?, state).map_err(refused)?;
    match ended.await {
        Ok(Ok(())) => Ok(Reply::OK),
        Ok(Err(error)) => Err(refusal(format!("ERR {error}"))),
        Err(_) => Err(CommandError::text("ERR the backup ended without a result")),
    }
}

/// `LASTSAVE`. As in Redis, the server's start time if there is no backup, which is always the case
/// on FoundationDB.
pub(super) fn lastsave(state: &ServerState) -> Reply {
    Reply::Integer(last_save_s(state))
}

/// The time of the last good backup, in seconds since the Unix epoch.
pub(super) fn last_save_s(state: &ServerState) -> i64 {
    let last = state.backups.as_ref().and_then(|one| one.status().last);
    last.map_or(state.started_ms, |last| last.time_ms) / 1000
}

fn backups(state: &ServerState) -> Result<&Arc<Backups>, CommandError> {
    state.backups.as_ref().ok_or(CommandError::text(
        "ERR a server on FoundationDB does not back up the cluster; use fdbbackup \
         (docs/operate/backup.md)",
    ))
}

type Ended = tokio::sync::oneshot::Receiver<Result<(), Arc<quoin_tools::backup::BackupError>>>;

fn start(backups: &Arc<Backups>, state: &ServerState) -> Result<Ended, StartError> {
    backups.start(Retention::of(&state.config.settings()))
}

fn refused(error: StartError) -> CommandError {
    match error {
        StartError::Store(error) => error.into(),
        error => refusal(format!("ERR {error}")),
    }
}
