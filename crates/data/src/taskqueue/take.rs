//! TASK.TAKE and TASK.PEEK.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::index::{Class, MAINTENANCE_EVERY};
use super::limits::Room;
use super::resources::Amounts;
use super::search::Found;
use super::turns::{Group, Searched, Turns};
use super::{Task, TaskQueue, TaskQueueMut, is_full_or_old, is_too_old};
use quoin_base::limits::{DELIVERED_BYTES_MAX, REAPER_READS_AT_ONCE};
use quoin_layout::{TaskNumber, TaskRegistry, TaskRow, TaskState};
use quoin_store::{Isolation, StoreError};

/// Maximum number of tasks that one TASK.TAKE puts back because their lease or delay has ended.
const DUE_PER_TAKE: usize = 128;
/// Approximate maximum of their payloads, in bytes. Putting a task back writes its payload again.
const DUE_BYTES_PER_TAKE: usize = 512 * 1024;

/// What a consumer asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct Taking {
    /// The most tasks to take.
    pub(super) count: usize,
    pub(super) having: Amounts,
    /// `None` uses the lease of the queue's options. If that has none, the tasks are removed.
    pub(super) lease_ms: Option<i64>,
    /// The consumer's name, which is stored with a leased task.
    pub(super) worker: Option<Bytes>,
}

/// What a consumer gets.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) tasks: Vec<Task>,
    /// The token of their leases, if they have one.
    pub(super) token: Option<u64>,
    /// Whether tasks were removed, taken or too old.
    pub(super) has_removed: bool,
}

impl TaskQueue<'_, '_> {
    /// The tasks that fit, as consumers would get them, with up to [`DELIVERED_BYTES_MAX`] bytes of payloads.
    pub(super) async fn peek(
        &self,
        count: usize,
        having: &Amounts,
    ) -> Result<Vec<Task>, StoreError> {
        let registry = self.registry(self.context.relaxed()).await?;
        let mut search = Turns::begin(self, &registry, having, false).await?;
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
                let row = self.row(&id, self.context.isolation).await?;
                let Some(row) = row.filter(|row| !is_too_old(row, self.context.now_ms)) else {
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
    /// Takes the first tasks that fit, in order, with groups taking turns. Takes fewer than asked
    /// for if the transaction has no room for more. First puts back tasks whose lease or delay has
    /// ended, and removes tasks that are too old, up to a limit. If tasks were removed, the caller
    /// calls [`remove_if_empty`] afterwards.
    ///
    /// Conflicts with transactions that take, cancel or change the same tasks.
    ///
    /// [`remove_if_empty`]: crate::unit::context::WriteContext::remove_if_empty
    pub(super) async fn take(&self, taking: &Taking) -> Result<Taken, StoreError> {
        let back = self.put_back_due(DUE_PER_TAKE, DUE_BYTES_PER_TAKE);
        let has_expired = back.await?;
        let registry = self.registry(self.context.relaxed()).await?;
        let default_ms = registry.options.number(TaskNumber::LeaseMs);
        let lease_ms = taking.lease_ms.or((default_ms > 0).then_some(default_ms));
        let room = match registry.options.is_paused {
            true => Room::none(),
            false => self.room(&registry.options, lease_ms.is_some()).await?,
        };
        let count = room
            .tasks
            .map_or(taking.count, |tasks| taking.count.min(tasks));
        if count == 0 {
            return Ok(Taken {
                has_removed: has_expired,
                ..Taken::default()
            });
        }
        let handing = Handing {
            lease_ms,
            worker: taking.worker.as_ref(),
            // 0 means no lease.
            token: self.context.environment.random.next_u64().max(1),
        };
        let mut handed = Handed::default();
        loop {
            let before = handed.expired;
            // Tasks that are too old are often followed by more of them.
            let wanted = if before > 0 { DUE_PER_TAKE } else { count };
            let found = self.found(&registry, taking, (wanted, lease_ms.is_some()));
            let found = found.await?;
            self.hand_out_all(&registry, count, &handing, found, &mut handed)
                .await?;
            let gives_up = handed.expired >= DUE_PER_TAKE || is_full_or_old(self.context);
            if !handed.tasks.is_empty() || handed.expired == before || gives_up {
                break;
            }
        }
        let Handed {
            tasks,
            expired,
            turn,
        } = handed;
        if let Some(group) = turn {
            self.set_turn(&registry, &group);
        }
        let taken = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
        self.count_taken(&registry.options, &room, taken).await?;
        match (taken, lease_ms) {
            (0, _) => {}
            (_, Some(_)) => self.context.mark_changed(self.key),
            (taken, None) => self.context.count_change(self.key, -taken),
        }
        Ok(Taken {
            tasks,
            token: lease_ms.map(|_| handing.token),
            has_removed: has_expired || expired > 0 || (taken > 0 && lease_ms.is_none()),
        })
    }

    /// The first tasks that fit. Repairs the index where the search found it stale. `leases`:
    /// whether they will be leased.
    async fn found(
        &self,
        registry: &TaskRegistry,
        taking: &Taking,
        (count, leases): (usize, bool),
    ) -> Result<FoundTasks, StoreError> {
        let mut search = Turns::begin(self, registry, &taking.having, leases).await?;
        let mut found = Vec::new();
        while found.len() < count
            && let Some(next) = search.next().await?
        {
            found.push(next);
        }
        let Searched {
            stale,
            heads,
            gave_up_at,
        } = search.finish();
        self.repair(&stale).await?;
        Ok(FoundTasks {
            found,
            heads,
            gave_up_at,
        })
    }

    /// Hands out the tasks that were found, and removes those that are too old.
    async fn hand_out_all(
        &self,
        registry: &TaskRegistry,
        count: usize,
        handing: &Handing<'_>,
        FoundTasks {
            found,
            heads,
            gave_up_at,
        }: FoundTasks,
        handed: &mut Handed,
    ) -> Result<(), StoreError> {
        if found.is_empty() && gave_up_at.is_some() {
            handed.turn = gave_up_at;
        }
        let mut bytes = 0_usize;
        let mut passes_milestone = false;
        'all: for some in found.chunks(REAPER_READS_AT_ONCE) {
            // Concurrently, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|one| self.row(&one.id, Isolation::Serializable));
            for (one, row) in some.iter().zip(try_join_all(reads).await?) {
                // A lease writes the task again, so a transaction has room for a limited number of
                // them. A consumer gets the first one even if the transaction is already full.
                let is_full = self.context.is_full() || bytes >= DELIVERED_BYTES_MAX;
                if handed.tasks.len() >= count || (!handed.tasks.is_empty() && is_full) {
                    break 'all;
                }
                let row = row.ok_or(StoreError::Corrupt("task without a row"))?;
                passes_milestone |= row.place.index.rem_euclid(MAINTENANCE_EVERY) == 0;
                if is_too_old(&row, self.context.now_ms) {
                    self.expire(&one.id, row, &registry.options).await?;
                    handed.expired += 1;
                    continue;
                }
                let id = one.id.clone();
                handed.turn = Some(row.notes.group.clone());
                let task = self.hand_out(registry, id, row, handing).await?;
                bytes = bytes.saturating_add(task.payload.len());
                handed.tasks.push(task);
            }
        }
        if passes_milestone && !self.context.environment.capabilities.has_other_writers {
            for (class, first) in heads.iter().filter(|(class, _)| class.slots > 0) {
                self.clear_nodes_before(class, first).await?;
            }
        }
        Ok(())
    }

    async fn hand_out(
        &self,
        registry: &TaskRegistry,
        id: Bytes,
        mut row: TaskRow,
        handing: &Handing<'_>,
    ) -> Result<Task, StoreError> {
        row.tries = row.tries.saturating_add(1);
        let shown = self.load_task(registry, id.clone(), &row).await?;
        row.notes.worker = handing.worker.cloned();
        self.show_wait(&id, &row, None);
        match handing.lease_ms {
            None => {
                self.remove(&id, &row).await?;
                self.acknowledged(&id, &row).await?;
            }
            Some(lease_ms) => {
                self.leave(&row);
                row.state = TaskState::Leased;
                row.token = handing.token;
                self.begin_run(&mut row.notes);
                row.at_ms = self.lease_end_ms(lease_ms);
                self.enter(&id, &row).await?;
            }
        }
        Ok(shown)
    }
}

/// How tasks are handed out.
struct Handing<'t> {
    /// `None` removes them.
    lease_ms: Option<i64>,
    worker: Option<&'t Bytes>,
    token: u64,
}

/// What was handed out.
#[derive(Default)]
struct Handed {
    tasks: Vec<Task>,
    /// How many tasks were too old, and removed.
    expired: usize,
    /// The group that had the last turn.
    turn: Option<Group>,
}

/// Ready tasks that fit, in order.
struct FoundTasks {
    found: Vec<Found>,
    /// The first ready task of each class that was searched, if it was read.
    heads: Vec<(Class, Bytes)>,
    /// The last of too many groups at their limit.
    gave_up_at: Option<Group>,
}
