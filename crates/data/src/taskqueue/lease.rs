//! The ends of leases (TASK.ACK, TASK.NACK), their extension, TASK.PROGRESS, TASK.CANCEL and TASK.REVIVE.

use bytes::Bytes;

use super::{TaskQueueMut, is_too_old, state_after};
use crate::unit::spans::TaskPartEnd;
use quoin_base::limits::TASK_CLOCK_TOLERANCE_MS;
use quoin_layout::{TaskRow, TaskState};
use quoin_store::{Isolation, StoreError};

/// The name that traces use for a lease ended by TASK.NACK.
const GIVEN_BACK: &str = "nack";

/// The answer to a client that names its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseAnswer {
    /// Done.
    Done,
    /// Done, and it was the last try: the task is dead.
    Dead,
    /// There is no such task: it was acknowledged or cancelled, or never existed.
    Missing,
    /// The lease of the task is over.
    Lapsed,
    /// The task is leased, but with another token.
    Foreign,
}

impl LeaseAnswer {
    /// The number in replies.
    pub(super) fn code(self) -> i64 {
        match self {
            LeaseAnswer::Done => 1,
            LeaseAnswer::Dead => 2,
            LeaseAnswer::Missing => 0,
            LeaseAnswer::Lapsed => -1,
            LeaseAnswer::Foreign => -2,
        }
    }
}

impl TaskQueueMut<'_, '_> {
    /// A leased task, or why the caller does not have the lease.
    async fn leased(
        &self,
        id: &Bytes,
        token: Option<u64>,
    ) -> Result<Result<TaskRow, LeaseAnswer>, StoreError> {
        let Some(row) = self.row(id, Isolation::Serializable).await? else {
            return Ok(Err(LeaseAnswer::Missing));
        };
        Ok(match lease_answer(&row, token, self.context.now_ms) {
            LeaseAnswer::Done => Ok(row),
            refused => Err(refused),
        })
    }

    /// Removes a leased task. The caller calls [`remove_if_empty`] afterwards.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn ack(
        &self,
        id: &Bytes,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        match self.leased(id, token).await? {
            Err(answer) => Ok(answer),
            Ok(row) => {
                self.end_run(id, &row, TaskPartEnd::Done);
                self.remove(id, &row).await?;
                self.context.count_change(self.key, -1);
                self.acknowledged(id, &row).await?;
                self.wake_for_lease(&self.options().await?);
                Ok(LeaseAnswer::Done)
            }
        }
    }

    /// Ends a lease without success. The task becomes ready at its old place, at once or after a
    /// delay, or dead if this was its last try or it is too old. Without a delay, that of the
    /// queue's options applies. A reason is stored with the task. Without one, the previous reason
    /// stays.
    pub(super) async fn nack(
        &self,
        id: &Bytes,
        delay_ms: Option<i64>,
        reason: Option<Bytes>,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        let mut row = match self.leased(id, token).await? {
            Err(answer) => return Ok(answer),
            Ok(row) => row,
        };
        let options = self.options().await?;
        self.leave(&row);
        row.token = 0;
        row.at_ms = self.context.now_ms;
        row.state = state_after(&row);
        let is_dead = row.state == TaskState::Dead || is_too_old(&row, self.context.now_ms);
        self.fail_run(id, &mut row, GIVEN_BACK, reason.as_ref(), is_dead);
        if reason.is_some() {
            row.notes.reason = reason;
        }
        let delay_ms = delay_ms.unwrap_or_else(|| self.backoff_ms(&options, row.tries));
        if !is_dead && delay_ms > 0 {
            row.state = TaskState::Delayed;
            row.at_ms = self.context.now_ms.saturating_add(delay_ms);
        }
        match row.state {
            TaskState::Dead => self.bury(id, &row, &options).await?,
            _ => self.enter(id, &row).await?,
        }
        self.count_failed_lease(is_dead);
        self.context.mark_changed(self.key);
        self.wake_for_lease(&options);
        if is_too_old(&row, self.context.now_ms) {
            self.expire(id, row, &options).await?;
            self.context.remove_if_empty(self.key).await?;
        }
        Ok(match is_dead {
            true => LeaseAnswer::Dead,
            false => LeaseAnswer::Done,
        })
    }

    /// Sets the end of a lease to `lease_ms` from now.
    pub(super) async fn extend(
        &self,
        id: &Bytes,
        lease_ms: i64,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        let mut row = match self.leased(id, token).await? {
            Err(answer) => return Ok(answer),
            Ok(row) => row,
        };
        self.leave(&row);
        row.at_ms = self.lease_end_ms(lease_ms);
        self.enter(id, &row).await?;
        self.context.mark_changed(self.key);
        Ok(LeaseAnswer::Done)
    }

    /// Stores how far the consumer of a task has come. The next consumer sees it too.
    pub(super) async fn note_progress(
        &self,
        id: &Bytes,
        progress: Bytes,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        let mut row = match self.leased(id, token).await? {
            Err(answer) => return Ok(answer),
            Ok(row) => row,
        };
        row.notes.progress = Some(progress);
        let task = self.context.layout().task_key(self.key.data(), id);
        self.context.transaction.set(&task, &row.encode());
        self.context.mark_changed(self.key);
        Ok(LeaseAnswer::Done)
    }

    /// Removes a task in any state. Returns false if the task does not exist. The caller calls [`remove_if_empty`] afterwards.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn cancel(&self, id: &Bytes) -> Result<bool, StoreError> {
        let Some(row) = self.row(id, Isolation::Serializable).await? else {
            return Ok(false);
        };
        self.end_run(id, &row, TaskPartEnd::Cancelled);
        self.remove(id, &row).await?;
        self.context.count_change(self.key, -1);
        if row.state == TaskState::Leased {
            self.wake_for_lease(&self.options().await?);
        }
        Ok(true)
    }

    /// Makes a dead task ready again at its old place, with all its tries, or a waiting task ready
    /// at once. Returns false if the task is neither.
    pub(super) async fn revive(&self, id: &Bytes) -> Result<bool, StoreError> {
        let found = self.row(id, Isolation::Serializable).await?;
        let row = match found {
            Some(row) if row.state == TaskState::Dead => self.leave_dead(id, row),
            Some(mut row) if row.state == TaskState::Waiting => {
                self.stop_waiting(&row).await?;
                self.leave(&row);
                row.state = TaskState::Ready;
                row.at_ms = self.context.now_ms;
                row
            }
            _ => return Ok(false),
        };
        self.enter(id, &row).await?;
        self.context.mark_changed(self.key);
        Ok(true)
    }

    /// Removes the row by which a dead task is found. Returns the task in its new ready state,
    /// regardless of its age.
    pub(super) fn leave_dead(&self, id: &[u8], mut row: TaskRow) -> TaskRow {
        self.leave(&row);
        self.clear_end(id, &row);
        row.notes.expires_ms = None;
        row.state = TaskState::Ready;
        row.tries = 0;
        row.at_ms = self.context.now_ms;
        row
    }

    /// When a lease that is granted now will have ended on all servers.
    pub(super) fn lease_end_ms(&self, lease_ms: i64) -> i64 {
        self.context
            .now_ms
            .saturating_add(lease_ms)
            .saturating_add(self.clock_tolerance_ms())
    }

    /// How long a lease lasts after its end by the clock of the server that granted it. On a store
    /// with several servers, this allows for differences between their clocks.
    fn clock_tolerance_ms(&self) -> i64 {
        if !self.context.environment.capabilities.has_other_writers {
            0
        } else {
            TASK_CLOCK_TOLERANCE_MS
        }
    }
}

/// Whether the task is leased now, with this token if one is given.
fn lease_answer(row: &TaskRow, token: Option<u64>, now_ms: i64) -> LeaseAnswer {
    match row.state {
        TaskState::Leased if row.at_ms > now_ms => match token {
            Some(token) if token != row.token => LeaseAnswer::Foreign,
            _ => LeaseAnswer::Done,
        },
        _ => LeaseAnswer::Lapsed,
    }
}
