//! Taking tasks, and looking at those that would be taken.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::index::TEND_EVERY;
use super::search::Search;
use super::{Amounts, Task};
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{DELIVERED_BYTES_MAX, REAPER_READS_AT_ONCE};
use quoin_layout::TaskState;
use quoin_store::{Isolation, StoreError};

/// Tasks whose lease or delay is over that one TASK.TAKE puts back.
const DUE_PER_TAKE: usize = 128;
/// Bytes of payloads of those, about: they are written anew.
const DUE_BYTES_PER_TAKE: usize = 512 * 1024;

/// What a consumer wants.
#[derive(Debug, Clone, Default)]
pub struct Taking {
    /// Most tasks to take; fewer may be answered.
    pub count: usize,
    /// What it has.
    pub having: Amounts,
    /// How long it may keep each; `None` for ever: they are removed.
    pub lease_ms: Option<i64>,
}

impl ReadContext<'_> {
    /// The tasks that fit, the first in order first, of up to [`DELIVERED_BYTES_MAX`].
    pub async fn task_peek(
        &self,
        key: &OpenKey,
        count: usize,
        having: &Amounts,
    ) -> Result<Vec<Task>, StoreError> {
        let registry = self.task_registry(key, self.relaxed()).await?;
        let mut search = Search::begin(self, key, &registry, having).await?;
        let mut tasks: Vec<Task> = Vec::new();
        let mut bytes = 0_usize;
        let mut is_over = false;
        while tasks.len() < count && !is_over && bytes < DELIVERED_BYTES_MAX {
            let room = count - tasks.len();
            let mut some = Vec::new();
            while some.len() < room.min(self.large_reads_at_once()) && !is_over {
                match search.next().await? {
                    Some(found) => some.push(found.id),
                    None => is_over = true,
                }
            }
            // Side by side, because on a cluster each read is a round trip.
            let shown = some.into_iter().map(async |id| {
                let Some(row) = self.task_row(key, &id, self.isolation).await? else {
                    return Ok::<_, StoreError>(None);
                };
                Ok(Some(self.task_shown(key, &registry, id, &row).await?))
            });
            let shown = try_join_all(shown).await?.into_iter().flatten();
            tasks.extend(shown.inspect(|task| bytes = bytes.saturating_add(task.payload.len())));
        }
        Ok(tasks)
    }
}

impl WriteContext<'_> {
    /// Takes the tasks that fit, the first in order first, and answers them with the token of
    /// their leases; fewer than asked for where a transaction has no room for more. What has fallen
    /// due is put back before. The caller tells of it and ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// Conflicts with whoever takes, cancels or changes the same tasks.
    pub async fn task_take(
        &self,
        key: &OpenKey,
        taking: &Taking,
    ) -> Result<(Vec<Task>, u64), StoreError> {
        self.task_put_back(key, DUE_PER_TAKE, DUE_BYTES_PER_TAKE)
            .await?;
        let registry = self.task_registry(key, self.relaxed()).await?;
        // 0 stands for no lease.
        let token = self.environment.random.next_u64().max(1);
        let mut search = Search::begin(self, key, &registry, &taking.having).await?;
        let mut found = Vec::new();
        while found.len() < taking.count
            && let Some(next) = search.next().await?
        {
            found.push(next);
        }
        let (stale, heads) = (search.stale, search.heads);
        self.repair(key, &stale).await?;
        let mut tasks = Vec::with_capacity(found.len());
        let mut bytes = 0_usize;
        let mut passes_milestone = false;
        'all: for some in found.chunks(REAPER_READS_AT_ONCE) {
            // Side by side, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|one| self.task_row(key, &one.id, Isolation::Serializable));
            for (one, row) in some.iter().zip(try_join_all(reads).await?) {
                // A lease writes the task anew, and a transaction has room for so many. Whatever
                // else is in it must not keep a consumer from the first one.
                if !tasks.is_empty() && (self.is_full() || bytes >= DELIVERED_BYTES_MAX) {
                    break 'all;
                }
                let row = row.ok_or(StoreError::Corrupt("task without a row"))?;
                passes_milestone |= row.place.index.rem_euclid(TEND_EVERY) == 0;
                let id = one.id.clone();
                let task = self
                    .task_hand_out(key, &registry, id, row, taking, token)
                    .await?;
                bytes = bytes.saturating_add(task.payload.len());
                tasks.push(task);
            }
        }
        if passes_milestone && self.environment.capabilities.single_writer {
            for (class, first) in heads.iter().filter(|(class, _)| class.slots > 0) {
                self.drop_head(class, first).await?;
            }
        }
        let taken = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
        match (taken, taking.lease_ms) {
            (0, _) => {}
            (_, Some(_)) => self.mark_changed(key),
            (taken, None) => self.count_change(key, -taken),
        }
        Ok((tasks, token))
    }

    async fn task_hand_out(
        &self,
        key: &OpenKey,
        registry: &quoin_layout::TaskRegistry,
        id: Bytes,
        mut row: quoin_layout::TaskRow,
        taking: &Taking,
        token: u64,
    ) -> Result<Task, StoreError> {
        row.tries = row.tries.saturating_add(1);
        let shown = self.task_shown(key, registry, id.clone(), &row).await?;
        match taking.lease_ms {
            None => self.task_remove(key, &id, &row)?,
            Some(lease_ms) => {
                self.task_leave(key, &row);
                row.state = TaskState::Leased;
                row.token = token;
                row.at_ms = self.lease_end_ms(lease_ms);
                self.task_enter(key, &id, &row).await?;
            }
        }
        Ok(shown)
    }

    /// When a lease that is granted now is over for all servers.
    pub(super) fn lease_end_ms(&self, lease_ms: i64) -> i64 {
        self.now_ms
            .saturating_add(lease_ms)
            .saturating_add(self.clock_tolerance_ms())
    }
}
