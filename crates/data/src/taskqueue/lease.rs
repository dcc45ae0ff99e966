//! What becomes of tasks that were taken: acknowledged, given back, kept longer; and of those
//! that are cancelled or dead.

use bytes::Bytes;

use super::{lease_answer, state_after};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{TaskRow, TaskState};
use quoin_store::{Isolation, StoreError};

/// What is answered to who says something about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// Done.
    Done,
    /// Done, and that was the last try: the task is dead.
    Dead,
    /// There is no such task: it was acknowledged, cancelled, or never there.
    Missing,
    /// The task is not leased any more.
    Lapsed,
    /// The task is leased, but with another token.
    Foreign,
}

impl LeaseAnswer {
    /// The number in replies.
    pub fn code(self) -> i64 {
        match self {
            LeaseAnswer::Done => 1,
            LeaseAnswer::Dead => 2,
            LeaseAnswer::Missing => 0,
            LeaseAnswer::Lapsed => -1,
            LeaseAnswer::Foreign => -2,
        }
    }
}

impl WriteContext<'_> {
    /// A task on lease, or why there is none of the caller's.
    async fn task_on_lease(
        &self,
        key: &OpenKey,
        id: &Bytes,
        token: Option<u64>,
    ) -> Result<Result<TaskRow, LeaseAnswer>, StoreError> {
        let Some(row) = self.task_row(key, id, Isolation::Serializable).await? else {
            return Ok(Err(LeaseAnswer::Missing));
        };
        Ok(match lease_answer(&row, token, self.now_ms) {
            LeaseAnswer::Done => Ok(row),
            refused => Err(refused),
        })
    }

    /// Ends a task that is done. The caller ends with [`WriteContext::remove_if_empty`].
    pub async fn task_ack(
        &self,
        key: &OpenKey,
        id: &Bytes,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        match self.task_on_lease(key, id, token).await? {
            Err(answer) => Ok(answer),
            Ok(row) => {
                self.task_remove(key, id, &row)?;
                self.count_change(key, -1);
                Ok(LeaseAnswer::Done)
            }
        }
    }

    /// Gives a task back: it is ready at its old place, at once or after a delay, or dead where
    /// this was its last try.
    pub async fn task_nack(
        &self,
        key: &OpenKey,
        id: &Bytes,
        delay_ms: i64,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        let mut row = match self.task_on_lease(key, id, token).await? {
            Err(answer) => return Ok(answer),
            Ok(row) => row,
        };
        self.task_leave(key, &row);
        row.token = 0;
        row.at_ms = 0;
        row.state = state_after(&row);
        if row.state == TaskState::Dead {
            row.at_ms = self.now_ms;
        } else if delay_ms > 0 {
            row.state = TaskState::Delayed;
            row.at_ms = self.now_ms.saturating_add(delay_ms);
        }
        self.task_enter(key, id, &row).await?;
        self.signals.task_end(row.state == TaskState::Dead);
        self.mark_changed(key);
        Ok(match row.state {
            TaskState::Dead => LeaseAnswer::Dead,
            _ => LeaseAnswer::Done,
        })
    }

    /// Lets a lease end so long from now.
    pub async fn task_extend(
        &self,
        key: &OpenKey,
        id: &Bytes,
        lease_ms: i64,
        token: Option<u64>,
    ) -> Result<LeaseAnswer, StoreError> {
        let mut row = match self.task_on_lease(key, id, token).await? {
            Err(answer) => return Ok(answer),
            Ok(row) => row,
        };
        self.task_leave(key, &row);
        row.at_ms = self.lease_end_ms(lease_ms);
        self.task_enter(key, id, &row).await?;
        self.mark_changed(key);
        Ok(LeaseAnswer::Done)
    }

    /// Removes a task, whatever its state; false where there is none. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn task_cancel(&self, key: &OpenKey, id: &Bytes) -> Result<bool, StoreError> {
        let Some(row) = self.task_row(key, id, Isolation::Serializable).await? else {
            return Ok(false);
        };
        self.task_remove(key, id, &row)?;
        self.count_change(key, -1);
        Ok(true)
    }

    /// Makes a dead task ready again at its old place, as if it had never been tried; false where
    /// it is not dead.
    pub async fn task_revive(&self, key: &OpenKey, id: &Bytes) -> Result<bool, StoreError> {
        let found = self.task_row(key, id, Isolation::Serializable).await?;
        let Some(mut row) = found.filter(|row| row.state == TaskState::Dead) else {
            return Ok(false);
        };
        self.task_leave(key, &row);
        row.state = TaskState::Ready;
        row.tries = 0;
        row.at_ms = 0;
        self.task_enter(key, id, &row).await?;
        self.mark_changed(key);
        Ok(true)
    }
}
