//! The period in which commands read keys that clients track, and what is recorded at its end.

use std::sync::Arc;

use crate::unit::context::Environment;
use crate::unit::host::{Change, Trackers};

/// A period in which commands read. Changes of keys are recorded until it is dropped.
pub struct ReadWindow {
    trackers: Arc<dyn Trackers>,
    number: u64,
}

impl ReadWindow {
    /// The window's number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ReadWindow {
    fn drop(&mut self) {
        self.trackers.close_window(self.number);
    }
}

impl Environment {
    /// Opens a window if clients track keys. Must be called before the snapshot for their reads is opened.
    pub fn open_read_window(&self) -> Option<ReadWindow> {
        let trackers = self
            .trackers
            .as_ref()
            .filter(|trackers| trackers.is_any())?;
        Some(ReadWindow {
            number: trackers.open_window(),
            trackers: Arc::clone(trackers),
        })
    }

    /// Whether clients of this server track keys.
    pub fn has_trackers(&self) -> bool {
        let trackers = self.trackers.as_ref();
        trackers.is_some_and(|trackers| trackers.is_any())
    }

    /// Passes changes and reads to the trackers.
    pub fn note_changes(&self, window: Option<&ReadWindow>, changes: &[Change]) {
        if !changes.is_empty()
            && let Some(trackers) = self.trackers.as_ref()
            && trackers.is_any()
        {
            trackers.note(changes, window.map(ReadWindow::number));
        }
    }
}
