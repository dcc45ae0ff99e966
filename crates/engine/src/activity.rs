//! Queue activity: how many elements went in and out of the most active queues, since counting
//! began and recently (docs/understand/decisions/051-activity.md).

mod table;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use quoin_base::limits::COUNTED_QUEUES_MAX;
use quoin_data::unit::flows::Flow;

pub use table::QueueActivity;
use table::Table;

/// Counts changes to the most active queues, at most [`COUNTED_QUEUES_MAX`] of them.
#[derive(Debug)]
pub struct Activity(Mutex<Table>);

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(Table::new(COUNTED_QUEUES_MAX, Instant::now())))
    }
}

impl Activity {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what a batch has committed.
    pub(super) fn note(&self, flows: Vec<Flow>) {
        if flows.is_empty() {
            return;
        }
        let mut table = self.table();
        for flow in &flows {
            table.note(flow);
        }
    }

    /// Must be called once a second.
    pub fn tick(&self, now: Instant) {
        self.table().tick(now);
    }

    /// Forgets all counts (CONFIG RESETSTAT).
    pub fn reset(&self, now: Instant) {
        *self.table() = Table::new(COUNTED_QUEUES_MAX, now);
    }

    /// The counted queues, most active first: by current rates, then by earlier activity.
    pub fn queues(&self, now: Instant) -> Vec<QueueActivity> {
        let mut queues = self.table().queues(now);
        queues.sort_by(QueueActivity::compare);
        queues
    }
}

#[cfg(test)]
mod tests;
