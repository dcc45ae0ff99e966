//! Takes the files of the archive to another place, by a command of the operator, as PostgreSQL's
//! `archive_command` does.
//!
//! A file gets its turn when nothing is appended to it any more. It is removed once the command has
//! succeeded, and not before. The file SHIPPED then has its last commit, so that the archive knows
//! what it had. A crash in between runs the command again for the same bytes.

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

/// Time between two looks for a file that is complete.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause after a failure. Each one is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long commands may run while the store is closed.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Starts the thread that runs the command. When it is dropped, it runs it for what is left, for a short
/// time.
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

/// Whether the store is being closed, and how long commands may still run.
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

    /// Waits for a time, unless the store is being closed. Returns whether it is.
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
        // What was committed last shall not stay here when the store is closed.
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
