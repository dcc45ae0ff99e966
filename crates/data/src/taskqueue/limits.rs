//! Limits how many tasks consumers get: RATE and LEASES of TASK.SETOPTIONS. [`turns`](super::turns)
//! has GROUPLEASES.
//!
//! With one of these limits, takes from a queue conflict with each other, because each counts all
//! of them. Waiting consumers are woken when a lease ends, and when a [period](TaskEnding::Rate)
//! ends, by its row by time.

use super::{TaskQueue, TaskQueueMut, endings};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{
    TaskCounter, TaskEnding, TaskKept, TaskNumber, TaskOptions, decode_counter, encode_counter,
};
use quoin_store::{Isolation, StoreError};

/// The name of the period in which takes are counted. There is only one.
const NAME: &[u8] = b"";

/// How many tasks consumers may get now.
#[derive(Debug)]
pub(super) struct Room {
    /// `None` without limit.
    pub(super) tasks: Option<usize>,
    /// The period that has begun.
    period: Option<Period>,
}

impl Room {
    /// No task.
    pub(super) fn none() -> Self {
        Self {
            tasks: Some(0),
            period: None,
        }
    }
}

/// A time in which takes are counted.
#[derive(Debug, Clone, Copy)]
struct Period {
    until_ms: i64,
    /// Tasks that consumers got in it.
    taken: i64,
}

impl TaskQueue<'_, '_> {
    /// How many tasks consumers may get now. `leases`: whether they are leased.
    pub(super) async fn room(
        &self,
        options: &TaskOptions,
        leases: bool,
    ) -> Result<Room, StoreError> {
        let mut room = None;
        let mut period = None;
        let leases_max = options.number(TaskNumber::LeasesMax);
        if leases && leases_max > 0 {
            let leased = self.counter_in(TaskCounter::Leased, Isolation::Serializable);
            room = Some(leases_max.saturating_sub(leased.await?));
        }
        let rate_max = options.number(TaskNumber::RateMax);
        if rate_max > 0 {
            period = self.period().await?;
            let left = rate_max.saturating_sub(period.map_or(0, |period| period.taken));
            room = Some(room.map_or(left, |room: i64| room.min(left)));
        }
        let tasks = room.map(|room| usize::try_from(room).unwrap_or(0));
        Ok(Room { tasks, period })
    }

    /// The current period.
    async fn period(&self) -> Result<Option<Period>, StoreError> {
        let kept = self.kept(TaskEnding::Rate, NAME, Isolation::Serializable);
        match kept
            .await?
            .filter(|kept| kept.until_ms > self.context.now_ms)
        {
            Some(kept) => Ok(Some(Period {
                until_ms: kept.until_ms,
                taken: decode_counter(Some(&kept.value))?,
            })),
            None => Ok(None),
        }
    }
}

impl TaskQueueMut<'_, '_> {
    /// Counts tasks that consumers got, if the queue has RATE. The first one begins a period.
    pub(super) async fn count_taken(
        &self,
        options: &TaskOptions,
        room: &Room,
        taken: i64,
    ) -> Result<(), StoreError> {
        if options.number(TaskNumber::RateMax) == 0 || taken == 0 {
            return Ok(());
        }
        let counted = |until_ms, taken| TaskKept {
            until_ms,
            value: encode_counter(taken).to_vec().into(),
        };
        if let Some(Period {
            until_ms,
            taken: before,
        }) = room.period
        {
            // `remember` would read the period twice more, which a take pays for: its row by time,
            // the timer and the key's metadata stay as they are.
            let layout = self.context.layout();
            let row = layout.task_kept_key(self.key.data(), TaskEnding::Rate, NAME);
            let kept = counted(until_ms, before.saturating_add(taken));
            self.context.transaction.set(&row, &kept.encode());
            return Ok(());
        }
        let period_ms = options.number(TaskNumber::RatePeriodMs);
        let kept = counted(self.context.now_ms.saturating_add(period_ms), taken);
        let mut key = self.key.clone();
        endings::remember(self.context, &mut key, TaskEnding::Rate, NAME, &kept).await
    }

    /// Wakes consumers that wait, after a lease has ended, if the queue has LEASES or GROUPLEASES.
    pub(super) fn wake_for_lease(&self, options: &TaskOptions) {
        let limits = [TaskNumber::LeasesMax, TaskNumber::GroupLeasesMax];
        if limits.iter().any(|limit| options.number(*limit) > 0) {
            self.context.wake_waiting(self.key);
        }
    }
}

/// Ends a period whose limit has changed.
pub(super) async fn forget_takes(
    context: &WriteContext<'_>,
    key: &OpenKey,
) -> Result<(), StoreError> {
    let (layout, data) = (context.layout(), key.data());
    let queue = TaskQueue::open(context, key);
    let kept = queue.kept(TaskEnding::Rate, NAME, Isolation::Serializable);
    if let Some(kept) = kept.await? {
        let kind = TaskEnding::Rate;
        let rows = [
            layout.task_kept_key(data, kind, NAME),
            layout.task_end_key(data, kept.until_ms, kind, NAME),
        ];
        rows.iter().for_each(|row| context.transaction.clear(row));
    }
    Ok(())
}
