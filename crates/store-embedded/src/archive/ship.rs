//! Ships files of the archive elsewhere with a command of the operator, like PostgreSQL's
//! `archive_command`.
//!
//! A file is shipped when nothing more is appended to it. It is removed only after the command has
//! succeeded. The file SHIPPED then names its last commit, so that the archive knows what it had.
//! After a crash in between, the command runs again for the same bytes.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::command::ArchiveCommand;
use super::keeper::Keeper;
use crate::background::BackgroundThread;
use crate::shared::Shared;
use quoin_base::limits;

/// Interval at which complete files are searched for.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause after a failure. Each pause is twice as long as the previous one.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long commands may run while the store is closing.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Starts the thread that runs the command. When it is dropped, the thread ships what is left, for
/// a limited time.
pub(in super::super) fn start_shipping(
    keeper: Arc<Keeper>,
    shared: Arc<Shared>,
    text: String,
) -> io::Result<BackgroundThread> {
    keeper.expect_command();
    let command = ArchiveCommand { text };
    BackgroundThread::start("store-ship", shared, move |ended| {
        run(&keeper, &command, &Closing::of(ended));
    })
}

/// Whether the store is closing, and how long commands may still run.
struct Closing {
    ended: Receiver<()>,
    until: Cell<Option<Instant>>,
}

impl Closing {
    fn of(ended: Receiver<()>) -> Self {
        Self {
            ended,
            until: Cell::new(None),
        }
    }

    /// Waits for a time, or until the store is closing. Returns whether it is.
    fn waits(&self, time: Duration) -> bool {
        let is_begun = self.ended.recv_timeout(time) == Err(RecvTimeoutError::Disconnected);
        if is_begun && self.until.get().is_none() {
            self.until.set(Some(Instant::now() + CLOSING_MAX));
        }
        is_begun
    }

    fn is_over(&self) -> bool {
        self.waits(Duration::ZERO);
        self.until
            .get()
            .is_some_and(|until| Instant::now() >= until)
    }
}

fn run(keeper: &Keeper, command: &ArchiveCommand, closing: &Closing) {
    let command_time_max = Duration::from_millis(limits::ARCHIVE_COMMAND_MS_MAX);
    let is_late = |time: Duration| time >= command_time_max || closing.is_over();
    let mut pause = INTERVAL;
    let mut is_closing = false;
    while !is_closing {
        is_closing = closing.waits(pause);
        // When the store closes, the latest commits are shipped too.
        let age_max = match is_closing {
            true => Duration::ZERO,
            false => Duration::from_millis(limits::ARCHIVE_FILE_AGE_MS_MAX),
        };
        while !closing.is_over() {
            match keeper.ship_next(command, age_max, &is_late) {
                Ok(is_shipped) => {
                    pause = INTERVAL;
                    if !is_shipped {
                        break;
                    }
                }
                Err(_) => {
                    pause = (pause * 2).min(PAUSE_MAX);
                    break;
                }
            }
        }
    }
}
