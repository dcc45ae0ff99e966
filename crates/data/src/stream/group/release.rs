//! XNACK: giving pending entries back.

use std::collections::HashSet;

use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{StreamId, StreamPending};
use quoin_store::StoreError;

use super::OpenGroup;
use super::pending::{PendingChanges, PendingEntry};

/// What XNACK says of the delivery that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseMode {
    /// It does not count.
    Silent,
    /// It counts.
    Fail,
    /// No other can do better.
    Fatal,
}

/// How entries are given back.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    /// What becomes of the number of deliveries.
    pub mode: ReleaseMode,
    /// The number of deliveries, if it is not left to the mode.
    pub deliveries: Option<u64>,
    /// Entries that are not pending are made so.
    pub is_forced: bool,
}

/// The number of deliveries after a fatal one, as in Redis.
const FATAL_DELIVERIES: u64 = i64::MAX as u64;

impl Release {
    fn deliveries(&self, before: Option<&PendingEntry>) -> u64 {
        let before = before.map_or(0, |before| before.row.deliveries);
        match (self.deliveries, self.mode) {
            (Some(deliveries), _) => deliveries,
            (None, ReleaseMode::Silent) => before.saturating_sub(1),
            (None, ReleaseMode::Fail) => before,
            (None, ReleaseMode::Fatal) => FATAL_DELIVERIES,
        }
    }
}

impl WriteContext<'_> {
    /// Gives pending entries back to their group: no consumer has them, and the next one that claims
    /// them gets them at once. Answers how many. Clients that wait are woken, where the group hands out entries again.
    pub async fn stream_release(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids: &[StreamId],
        release: &Release,
    ) -> Result<i64, StoreError> {
        let mut seen = HashSet::with_capacity(ids.len());
        let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        let found = self
            .stream_pending_each(key, group, &ids, self.isolation)
            .await?;
        let mut changes = PendingChanges::default();
        let mut count = 0;
        for (id, before) in ids.into_iter().zip(&found) {
            let is_there = match before {
                Some(_) => true,
                None => release.is_forced && self.stream_entry(key, id).await?.is_some(),
            };
            if !is_there {
                continue;
            }
            let after = PendingEntry {
                id,
                row: StreamPending {
                    consumer: None,
                    delivered_at_ms: 0,
                    deliveries: release.deliveries(before.as_ref()),
                },
            };
            self.put_pending(key, group, after, before.as_ref(), &mut changes);
            count += 1;
        }
        self.count_pending(key, group, changes);
        if count > 0 && group.row.policy.is_some() {
            self.wake_waiting(key);
        }
        Ok(count)
    }
}
