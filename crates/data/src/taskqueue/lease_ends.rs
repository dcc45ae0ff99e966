//! The ends of leases and delays. The next TASK.TAKE puts their tasks back, or background work
//! does, which a [timer](super::timers) starts.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use super::ended::Ended;
use super::index::Scope;
use super::{TaskQueueMut, is_full_or_old, is_too_old, range_rows, state_after};
use crate::unit::flows::FlowCounts;
use quoin_base::limits::REAPER_READS_AT_ONCE;
use quoin_layout::{KeyRange, TaskRegistry, TaskRow, TaskState, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

/// Due tasks that are read first, while their size is unknown.
const DUE_READS_FIRST: usize = 16;
/// The name that traces use for a lease that no consumer ended.
const LAPSED: &str = "lease_expired";
/// Number of requests for maintenance of a queue's index that one background pass handles
/// concurrently.
const REQUESTS_PER_PASS: usize = 64;
/// Every other pass handles fewer requests: it halves the number at random, down to 1. The number of sizes.
const REQUESTS_SIZES: u64 = 7;

/// A row by time, and the task's own row if it exists.
pub(super) type Due = (KeyValue, Option<TaskRow>);

/// The background work of a queue. It is read before anything is written.
pub(super) struct QueueWork {
    due: Vec<Due>,
    has_more_due: bool,
    ended: Vec<Ended>,
    has_more_ended: bool,
    /// Rows that ask for maintenance of the index.
    requests: Vec<KeyValue>,
    requests_max: usize,
    /// Their class, place and scope.
    requests_read: Vec<(u32, Vec<u8>, Scope)>,
    registry: TaskRegistry,
}

/// What happened to due tasks.
#[derive(Debug, Clone, Copy, Default)]
struct PutBack {
    /// Whether some are left, because the batch has no room for more tasks that move to another
    /// queue.
    is_left: bool,
    /// Some were too old, and removed. The caller calls
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    has_expired: bool,
}

/// Approximate bytes written when a task changes its place: its row, and its id in some other rows.
fn written_bytes(id: &[u8], row: &TaskRow) -> usize {
    row.payload.len() + 2 * row.notes.size_bytes() + 4 * id.len()
}

impl TaskQueueMut<'_, '_> {
    /// Puts back up to `limit` tasks whose lease or delay has ended, with about `bytes_max` bytes
    /// of payloads. Stops when the batch is full, but puts back at least one. Returns whether some
    /// were too old and removed.
    pub(super) async fn put_back_due(
        &self,
        limit: usize,
        bytes_max: usize,
    ) -> Result<bool, StoreError> {
        let (due, _) = self.due_rows(limit, bytes_max).await?;
        Ok(self.put_back_all(&due).await?.has_expired)
    }

    /// The tasks that [`Self::put_back_due`] puts back, and whether there may be more.
    async fn due_rows(
        &self,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Due>, bool), StoreError> {
        let layout = self.context.layout();
        let range = layout.task_due_by(self.key.data(), self.context.now_ms);
        self.tasks_by_time(&range, limit, bytes_max).await
    }

    /// The first tasks of a range of rows by time, and whether there may be more. At most `limit`
    /// tasks with about `bytes_max` bytes to write, and only as many as the batch has room for, but
    /// at least one.
    pub(super) async fn tasks_by_time(
        &self,
        range: &KeyRange,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Due>, bool), StoreError> {
        let due = range_rows(self.context, range, limit, self.context.relaxed()).await?;
        let soft_max = self.context.environment.capabilities.batch_bytes_soft_max;
        let room = soft_max.saturating_sub(self.context.transaction.size_bytes());
        let mut bytes_left = bytes_max.min(room);
        let mut found: Vec<Due> = Vec::with_capacity(due.len());
        let mut reads_max = DUE_READS_FIRST;
        while found.len() < due.len()
            && (found.is_empty() || (bytes_left > 0 && !is_full_or_old(self.context)))
        {
            let some = due.get(found.len()..).unwrap_or_default();
            let (some, _) = some.split_at(some.len().min(reads_max));
            // Concurrently, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|row| self.row(&row.value, Isolation::Serializable));
            let mut bytes_largest = 1;
            for (due_row, row) in some.iter().zip(try_join_all(reads).await?) {
                let bytes = row
                    .as_ref()
                    .map_or(0, |row| written_bytes(&due_row.value, row));
                bytes_largest = bytes_largest.max(bytes);
                if bytes > bytes_left && !found.is_empty() {
                    bytes_left = 0;
                    break;
                }
                bytes_left = bytes_left.saturating_sub(bytes);
                found.push((due_row.clone(), row));
            }
            reads_max = (bytes_left / bytes_largest).clamp(1, REAPER_READS_AT_ONCE);
        }
        let has_more = found.len() < due.len() || due.len() >= limit;
        Ok((found, has_more))
    }

    /// Puts due tasks back.
    async fn put_back_all(&self, due: &[Due]) -> Result<PutBack, StoreError> {
        let mut put = PutBack::default();
        if due.is_empty() {
            return Ok(put);
        }
        let options = self.options().await?;
        let mut back = Vec::with_capacity(due.len());
        let (mut moved, mut has_lapsed) = (0, false);
        for (due_row, row) in due {
            let Some(mut row) = row.clone() else {
                self.context.transaction.clear(&due_row.key);
                continue;
            };
            if moved > 0 && is_full_or_old(self.context) {
                put.is_left = true;
                break;
            }
            self.leave(&row);
            let was_leased = row.state == TaskState::Leased;
            has_lapsed |= was_leased;
            row.state = state_after(&row);
            if was_leased {
                let is_dead = row.state == TaskState::Dead;
                self.count_failed_lease(is_dead);
                self.fail_run(&due_row.value, &mut row, LAPSED, None, is_dead);
            }
            row.token = 0;
            row.at_ms = self.context.now_ms;
            match row.state {
                TaskState::Dead if options.dead_letter.is_some() => {
                    self.bury(&due_row.value, &row, &options).await?;
                    moved += 1;
                }
                _ => back.push((due_row.value.clone(), row)),
            }
        }
        self.enter_all(&back).await?;
        if !back.is_empty() {
            self.context.mark_changed(self.key);
        }
        if has_lapsed {
            self.wake_for_lease(&options);
        }
        // After all have changed their state, so that each is where its row says.
        for (id, row) in back {
            if is_too_old(&row, self.context.now_ms) {
                self.expire(&id, row, &options).await?;
                put.has_expired = true;
            }
        }
        Ok(put)
    }

    /// Counts a lease that ended without success.
    pub(super) fn count_failed_lease(&self, is_dead: bool) {
        self.context.signals.task_end(is_dead);
        let counts = FlowCounts {
            retries: u64::from(!is_dead),
            deaths: u64::from(is_dead),
            ..FlowCounts::default()
        };
        self.context.count_flow(self.key, counts);
    }

    /// Reads the work of a queue: up to `tasks_max` due tasks with about `bytes_max` bytes, and requests for
    /// maintenance of the index.
    pub(super) async fn find_work(
        &self,
        (tasks_max, bytes_max): (usize, usize),
    ) -> Result<QueueWork, StoreError> {
        let (due, has_more_due) = self.due_rows(tasks_max, bytes_max).await?;
        let (ended, has_more_ended) = self.ended(tasks_max).await?;
        let requests = self.context.layout().task_maintenance(self.key.data());
        // Random sizes, so that sooner or later a pass is small enough to commit, however much
        // other servers add.
        let random = &self.context.environment.random;
        let requests_max = match random.below(2) {
            0 => REQUESTS_PER_PASS,
            _ => REQUESTS_PER_PASS >> random.below(REQUESTS_SIZES),
        };
        let requests =
            range_rows(self.context, &requests, requests_max, Isolation::Snapshot).await?;
        let registry = self.registry(Isolation::Snapshot).await?;
        let requests_read = requests
            .iter()
            .map(|request| {
                let (class, place) = self
                    .context
                    .layout()
                    .read_task_maintenance_key(self.key.data(), &request.key)?;
                Ok((class, place, Scope::from_value(&request.value)))
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        Ok(QueueWork {
            due,
            has_more_due,
            ended,
            has_more_ended,
            requests,
            requests_max,
            requests_read,
            registry,
        })
    }

    /// Does the work. Returns whether nothing is left to do now. If so, sets the next timer.
    pub(super) async fn do_work(&self, work: QueueWork) -> Result<bool, StoreError> {
        let QueueWork {
            due,
            has_more_due,
            ended,
            has_more_ended,
            requests,
            requests_max,
            requests_read,
            registry,
        } = work;
        let put = self.put_back_all(&due).await?;
        let has_more_due = put.is_left || has_more_due;
        if has_more_due && is_full_or_old(self.context) {
            return Ok(false);
        }
        let has_more_ended = self.remove_ended(&ended, put.has_expired).await? || has_more_ended;
        let slots = |class: u32| {
            let mask = usize::try_from(class).ok();
            let mask = mask.and_then(|class| registry.classes.get(class));
            mask.map_or(0, |class| class.mask.count_ones() as usize)
        };
        let classes: BTreeSet<u32> = requests_read.iter().map(|(class, ..)| *class).collect();
        for class in classes {
            let class = self.class(class, slots(class));
            if let Some((first, _)) = self.first_order_rows(&class, None, 1).await?.first() {
                self.clear_nodes_before(&class, first).await?;
            }
        }
        // Before new requests are written, which may be for the same places.
        for request in &requests {
            self.context
                .transaction
                .add_read_conflict_range(&request.key, &successor(&request.key));
            self.context.transaction.clear(&request.key);
        }
        // Concurrently. The minima that one of them writes stay valid whatever the others do,
        // because they are at most the needs of tasks that were read.
        let maintained = requests_read.iter().map(async |(class, place, scope)| {
            let class = self.class(*class, slots(*class));
            if class.slots == 0 {
                return Ok(false);
            }
            // Requests in one range make the same splits, so a range that is still too long needs new requests.
            let too_long = self.maintain(&class, place, *scope).await?;
            for place in &too_long {
                self.request_maintenance(&class, place, Scope::All);
            }
            Ok::<_, StoreError>(!too_long.is_empty())
        });
        let has_more_to_split = try_join_all(maintained).await?.contains(&true);
        let has_more = has_more_due || has_more_ended || has_more_to_split;
        if has_more || requests.len() >= requests_max {
            return Ok(false);
        }
        let next = [self.next_due_ms().await?, self.next_end_ms().await?];
        if let Some(at_ms) = next.into_iter().flatten().min() {
            self.context.set_timer(self.key, at_ms);
        }
        Ok(true)
    }
}
