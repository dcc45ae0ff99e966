//! `quoin restore --follow`: a standby, which applies the commits of an archive as they appear.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::file::{BackupError, BackupFile};
use super::restore::{RestoreFailure, RestoreOptions, restore};
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::log_throttle::LogThrottle;
use quoin_base::size::{counted, size};
use quoin_base::threads;
use quoin_store_embedded::{
    ArchiveError, ArchiveTail, OpenError, Reached, Refusal, RestoreError, Standby, TailEnd,
    has_store,
};

/// Interval at which an archive without anything new is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two lines in the log while commits are applied.
const BUSY_LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of log lines while nothing is new.
const IDLE_LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Why a standby does not continue. Its folder has all commits up to some point.
#[derive(Debug, thiserror::Error)]
pub enum FollowFailure {
    /// There is no store in the folder, and no backup to start from.
    #[error("there is no store in {}: name the backup to start from with --from", folder.display())]
    NoBackup {
        /// The folder.
        folder: PathBuf,
    },
    /// The backup could not be restored.
    #[error(transparent)]
    Restore(#[from] RestoreFailure),
    /// The header of the backup cannot be read.
    #[error(transparent)]
    Backup(BackupError),
    /// The backup is of another store than the one that the folder follows.
    #[error(
        "{} follows a different store from that of the backup: name a folder that is empty or does \
         not exist", folder.display()
    )]
    OtherStore {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Open(RestoreError),
    /// The archive has no commits of the store.
    #[error(transparent)]
    Archive(ArchiveError),
    /// A commit is missing, damaged, or cannot be applied.
    #[error("{}; {} has everything up to {reached}", why(source), folder.display())]
    Stuck {
        /// The folder.
        folder: PathBuf,
        /// The last commit that was applied.
        reached: Reached,
        /// Why it does not go on.
        source: RestoreError,
    },
    /// The system refuses a thread, or signals.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

/// The reason for a gap, without advice that applies only to a restore that has not begun.
fn why(source: &RestoreError) -> String {
    match source {
        RestoreError::Archive(ArchiveError::Gap { missing, why, .. }) => {
            format!("commit {missing} {why}")
        }
        source => source.to_string(),
    }
}

/// A standby that was stopped.
#[derive(Debug)]
pub struct Followed {
    /// Its folder.
    pub folder: PathBuf,
    /// Commits that were applied since the start.
    pub applied: u64,
    /// The last commit that it has.
    pub reached: Reached,
}

impl fmt::Display for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commits = counted(self.applied, "archived commit", "archived commits");
        write!(
            f,
            "{}: {commits}, up to {}",
            self.folder.display(),
            self.reached
        )
    }
}

/// Restores a backup, unless the folder follows already, and applies archived commits until a
/// SIGINT or SIGTERM.
///
/// # Errors
/// See [`FollowFailure`].
pub fn follow(options: &RestoreOptions) -> Result<Followed, FollowFailure> {
    let folder = options.data_dir.clone();
    let needs_backup = match has_store(&folder) {
        Ok(has_store) => !has_store,
        Err(OpenError::Refused {
            refusal: Refusal::UnfinishedRestore,
            ..
        }) => true,
        Err(error) => return Err(FollowFailure::Open(error.into())),
    };
    if needs_backup {
        if options.from.is_none() {
            return Err(FollowFailure::NoBackup { folder });
        }
        let restored = restore(options)?;
        tracing::info!("restored {restored}");
    }
    let standby = Standby::open(&folder).map_err(FollowFailure::Open)?;
    check_backup(options, &standby)?;
    let stop = Stop::at_signals().map_err(FollowFailure::Signals)?;
    let first = standby.last_commit();
    let archive = options.journal_archive.clone().unwrap_or_default();
    let after = Reached {
        commit: first,
        time_ms: None,
    };
    let mut tail =
        ArchiveTail::open(&archive, &standby.followed(), after).map_err(FollowFailure::Archive)?;
    let mut log = ProgressLog::new();
    loop {
        let polled = tail.poll(|archived, left_bytes| {
            let reached = Reached {
                commit: archived.commit,
                time_ms: Some(archived.time_ms),
            };
            standby.apply(archived)?;
            log.applied(reached, left_bytes);
            Ok(match stop.is_asked() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        match polled {
            Ok(TailEnd::Stopped) => break,
            Ok(end) => log.waits(tail.reached(), end),
            // The file system of the archive may be back later.
            Err(RestoreError::Archive(error @ ArchiveError::Io { .. })) => {
                log.unreadable(&error);
            }
            Err(source) => {
                let reached = tail.reached();
                return Err(FollowFailure::Stuck {
                    folder,
                    reached,
                    source,
                });
            }
        }
        if stop.waits(POLL_INTERVAL) {
            break;
        }
    }
    drop(standby);
    let reached = tail.reached();
    Ok(Followed {
        folder,
        applied: reached.commit - first,
        reached,
    })
}

/// A standby does not need its backup, which may have been removed since. An existing one must be
/// of the same store.
fn check_backup(options: &RestoreOptions, standby: &Standby) -> Result<(), FollowFailure> {
    let Some(from) = options.from.as_deref().filter(|from| from.exists()) else {
        return Ok(());
    };
    let header = BackupFile::open(from)
        .map_err(FollowFailure::Backup)?
        .header();
    if header.store == standby.followed() {
        return Ok(());
    }
    Err(FollowFailure::OtherStore {
        folder: options.data_dir.clone(),
    })
}

/// Learns of a SIGINT or SIGTERM.
struct Stop {
    asked: Receiver<()>,
}

impl Stop {
    fn at_signals() -> io::Result<Self> {
        let (ask, asked) = mpsc::sync_channel(1);
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let (mut terminate, mut interrupt) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            )
        };
        // The thread ends with the process.
        threads::spawn("signals", move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            // If the archive was damaged, nobody waits any more.
            let _ = ask.send(());
        })?;
        Ok(Self { asked })
    }

    fn is_asked(&self) -> bool {
        self.asked.try_recv() != Err(TryRecvError::Empty)
    }

    /// Waits for a time. Returns whether to stop.
    fn waits(&self, time: Duration) -> bool {
        self.asked.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}

/// Says in the log how far a standby is.
struct ProgressLog {
    last_line: Option<Instant>,
    has_news: bool,
    unreadable: LogThrottle,
}

impl ProgressLog {
    fn new() -> Self {
        Self {
            last_line: None,
            has_news: false,
            unreadable: LogThrottle::new(),
        }
    }

    fn is_due(&self, interval: Duration) -> bool {
        self.last_line.is_none_or(|last| last.elapsed() >= interval)
    }

    fn applied(&mut self, reached: Reached, left_bytes: u64) {
        self.has_news = true;
        if self.is_due(BUSY_LINE_INTERVAL) {
            self.line(
                reached,
                &format!("{} of the archive left", size(left_bytes)),
            );
        }
    }

    fn waits(&mut self, reached: Reached, end: TailEnd) {
        match end {
            TailEnd::Missing => {
                self.unreadable(&"it has no files of the store");
                return;
            }
            TailEnd::Doubtful => {
                self.unreadable(&"what follows is not a commit");
                return;
            }
            TailEnd::Complete | TailEnd::Unfinished | TailEnd::Stopped => {}
        }
        let interval = match self.has_news {
            true => BUSY_LINE_INTERVAL,
            false => IDLE_LINE_INTERVAL,
        };
        if self.is_due(interval) {
            let left = match end {
                TailEnd::Unfinished => "the archive ends within the next commit",
                _ => "nothing of the archive left",
            };
            self.line(reached, left);
        }
    }

    fn line(&mut self, reached: Reached, left: &str) {
        self.last_line = Some(Instant::now());
        self.has_news = false;
        let age_s = reached.time_ms.and_then(|time_ms| {
            let now_ms = u64::try_from(SystemClock.now_ms()).ok()?;
            Some(now_ms.saturating_sub(time_ms) / 1_000)
        });
        match age_s {
            Some(age_s) => tracing::info!("up to {reached}, {age_s} s ago; {left}"),
            None => tracing::info!("up to {reached}; {left}"),
        }
    }

    fn unreadable(&self, why: &dyn fmt::Display) {
        if let Some(more) = self.unreadable.pass() {
            tracing::warn!("cannot read the archive, trying again: {why}{more}");
        }
    }
}
