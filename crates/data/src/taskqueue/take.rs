//! TASK.TAKE and TASK.PEEK.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::index::MAINTENANCE_EVERY;
use super::resources::Amounts;
use super::search::Search;
use super::{Task, TaskQueue, TaskQueueMut};
use quoin_base::limits::{DELIVERED_BYTES_MAX, REAPER_READS_AT_ONCE};
use quoin_layout::{TaskRegistry, TaskRow, TaskState};
use quoin_store::{Isolation, StoreError};

/// Tasks whose lease or delay is over that one TASK.TAKE puts back.
const DUE_PER_TAKE: usize = 128;
/// Bytes of their payloads, about. Putting a task back writes its payload again.
const DUE_BYTES_PER_TAKE: usize = 512 * 1024;

/// What a consumer asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct Taking {
    /// The most tasks to take.
    pub(super) count: usize,
    pub(super) having: Amounts,
    /// `None` removes the tasks.
    pub(super) lease_ms: Option<i64>,
    /// The consumer's name, to be kept with a leased task.
    pub(super) worker: Option<Bytes>,
}

impl TaskQueue<'_, '_> {
    /// The first tasks in order that fit, with up to [`DELIVERED_BYTES_MAX`] bytes of payloads.
    pub(super) async fn peek(
        &self,
        count: usize,
        having: &Amounts,
    ) -> Result<Vec<Task>, StoreError> {
        let registry = self.registry(self.context.relaxed()).await?;
        let mut search = Search::begin(self, &registry, having, None).await?;
        let mut tasks: Vec<Task> = Vec::new();
        let mut bytes = 0_usize;
        let mut is_over = false;
        while tasks.len() < count && !is_over && bytes < DELIVERED_BYTES_MAX {
            let room = count - tasks.len();
            let mut some = Vec::new();
            while some.len() < room.min(self.context.large_reads_at_once()) && !is_over {
                match search.next().await? {
                    Some(found) => some.push(found.id),
                    None => is_over = true,
                }
            }
            // Concurrently, because on a cluster each read is a round trip.
            let shown = some.into_iter().map(async |id| {
                let Some(row) = self.row(&id, self.context.isolation).await? else {
                    return Ok::<_, StoreError>(None);
                };
                Ok(Some(self.load_task(&registry, id, &row).await?))
            });
            let shown = try_join_all(shown).await?.into_iter().flatten();
            tasks.extend(shown.inspect(|task| bytes = bytes.saturating_add(task.payload.len())));
        }
        Ok(tasks)
    }
}

impl TaskQueueMut<'_, '_> {
    /// Takes the first tasks in order that fit. Returns them and the token of their leases. They are fewer than asked
    /// for if the transaction has no room for more. Tasks whose lease or delay is over are put back before. The
    /// caller calls [`remove_if_empty`] afterwards.
    ///
    /// Conflicts with transactions that take, cancel or change the same tasks.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn take(&self, taking: &Taking) -> Result<(Vec<Task>, u64), StoreError> {
        self.put_back_due(DUE_PER_TAKE, DUE_BYTES_PER_TAKE).await?;
        let registry = self.registry(self.context.relaxed()).await?;
        if registry.options.is_paused {
            return Ok((Vec::new(), 0));
        }
        // 0 means no lease.
        let token = self.context.environment.random.next_u64().max(1);
        let mut search = Search::begin(self, &registry, &taking.having, None).await?;
        let mut found = Vec::new();
        while found.len() < taking.count
            && let Some(next) = search.next().await?
        {
            found.push(next);
        }
        let (stale, heads) = (search.stale, search.heads);
        self.repair(&stale).await?;
        let mut tasks = Vec::with_capacity(found.len());
        let mut bytes = 0_usize;
        let mut passes_milestone = false;
        'all: for some in found.chunks(REAPER_READS_AT_ONCE) {
            // Concurrently, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|one| self.row(&one.id, Isolation::Serializable));
            for (one, row) in some.iter().zip(try_join_all(reads).await?) {
                // A lease writes the task again, so a transaction has room for a limited number of
                // them. A consumer gets the first one even if the transaction is full already.
                if !tasks.is_empty() && (self.context.is_full() || bytes >= DELIVERED_BYTES_MAX) {
                    break 'all;
                }
                let row = row.ok_or(StoreError::Corrupt("task without a row"))?;
                passes_milestone |= row.place.index.rem_euclid(MAINTENANCE_EVERY) == 0;
                let id = one.id.clone();
                let task = self.hand_out(&registry, id, row, taking, token).await?;
                bytes = bytes.saturating_add(task.payload.len());
                tasks.push(task);
            }
        }
        if passes_milestone && !self.context.environment.capabilities.has_other_writers {
            for (class, first) in heads.iter().filter(|(class, _)| class.slots > 0) {
                self.clear_nodes_before(class, first).await?;
            }
        }
        let taken = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
        match (taken, taking.lease_ms) {
            (0, _) => {}
            (_, Some(_)) => self.context.mark_changed(self.key),
            (taken, None) => self.context.count_change(self.key, -taken),
        }
        Ok((tasks, token))
    }

    async fn hand_out(
        &self,
        registry: &TaskRegistry,
        id: Bytes,
        mut row: TaskRow,
        taking: &Taking,
        token: u64,
    ) -> Result<Task, StoreError> {
        row.tries = row.tries.saturating_add(1);
        let shown = self.load_task(registry, id.clone(), &row).await?;
        match taking.lease_ms {
            None => self.remove(&id, &row)?,
            Some(lease_ms) => {
                self.leave(&row);
                row.state = TaskState::Leased;
                row.token = token;
                row.notes.worker.clone_from(&taking.worker);
                row.at_ms = self.lease_end_ms(lease_ms);
                self.enter(&id, &row).await?;
            }
        }
        Ok(shown)
    }
}
