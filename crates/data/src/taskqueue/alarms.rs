//! Alarms lead background work to queues in which something falls due, or of whose index somebody
//! has left a note, and to streams whose groups hand entries out again.
//!
//! An alarm is a row by time and key. It says only that somebody should look, so there may be too
//! many of them, and one that is out of date does no harm. A queue in which something is to be done
//! one day has one at that time at the latest: whoever writes a row of what falls due, or a note,
//! sets one in the same transaction, and a pass that clears a queue's alarms sets the next.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{
    REAPER_READS_AT_ONCE, TASK_BUSY_QUEUES_PER_PASS, TASK_DUE_PER_PASS, TASK_QUEUES_PER_PASS,
    TASK_UNREADABLE_STEP_MS,
};
use quoin_layout::{Id, KeyName, Meta, ValueType, successor};
use quoin_store::{Isolation, StoreError};

#[cfg(test)]
mod tests;

/// On a store with many writers the index of a queue is looked after at multiples of this.
pub(super) const TEND_STEP_MS: i64 = 500;
/// On a store with many writers the number is halved at random every other time, down to 1: so
/// many sizes there are.
const BUSY_QUEUES_SIZES: u64 = 8;
/// Queues that a pass looks after side by side where a read is a round trip.
const BUSY_QUEUES_AT_ONCE: usize = 16;
/// Times [`TASK_QUEUES_PER_PASS`] queues among which a pass of one of several servers chooses.
const ALARM_WINDOWS: usize = 4;
/// Alarms that it fetches at a time until it knows so many queues.
const ALARMS_PER_PAGE: usize = 512;
/// Alarms that it fetches at most: a queue has one for many a moment.
const ALARMS_PER_PASS: usize = 4096;
/// Time for which an addition of a task may be under way that asks for the index to be looked after.
const ALARM_FRESH_MS: i64 = 200;
/// Background work looks at task queues at multiples of this.
pub const ALARM_STEP_MS: i64 = 100;
/// A queue in which something falls due later than this is looked at before, at multiples of this.
const ALARM_NEAR_MS: i64 = 60_000;
/// The same, at multiples of this, where it falls due later than this.
const ALARM_FAR_MS: i64 = 3_600_000;

/// A queue with alarms that have gone off.
struct Alarmed {
    namespace: Id,
    name: KeyName,
    /// Their rows.
    alarms: Vec<Bytes>,
}

/// What a look at a queue finds.
enum Outlook {
    /// There is no such queue, or not any more.
    Gone,
    /// There is nothing to do before a time, if ever.
    Quiet(OpenKey, Option<i64>),
    /// There is something to do.
    Busy(OpenKey),
    /// Clients that wait for entries of a stream may get some, and when some more.
    Idle(OpenKey, Option<i64>),
    /// Something of it cannot be read.
    Unreadable(&'static str),
}

/// When the alarm goes off for what is due at `due_ms`.
///
/// An alarm outlives the lease that it was set for. So there are few moments for them, the fewer
/// the farther away: of whatever leases and delays, a queue has some hundred alarms at a time. Those
/// of different queues are spread out, by the hash of their names.
fn alarm_ms(now_ms: i64, due_ms: i64, hash: u64) -> i64 {
    let last_multiple = |at_ms: i64, step: i64| {
        let spread = i64::try_from(hash % step.unsigned_abs()).unwrap_or(0);
        at_ms - (at_ms - spread).rem_euclid(step)
    };
    let (step, near, far) = (ALARM_STEP_MS, ALARM_NEAR_MS, ALARM_FAR_MS);
    match due_ms.saturating_sub(now_ms) {
        ahead if ahead <= near => due_ms.saturating_add(step - 1) / step * step,
        ahead if ahead <= far => last_multiple(due_ms, near),
        _ => last_multiple(now_ms.saturating_add(far), far),
    }
}

impl ReadContext<'_> {
    /// The queues in which [`WriteContext::alarm_pass`] would do something, as far as their names
    /// are known: their databases and keys.
    pub async fn alarmed_queues(&self, turn: u64) -> Result<Vec<(u32, Bytes)>, StoreError> {
        let looked_at = self.look_at_alarmed(turn).await?;
        let busy = looked_at.iter().filter_map(|(_, outlook)| match outlook {
            Outlook::Busy(key) => Some(key.database.zip(key.name.inline().cloned())),
            _ => None,
        });
        // Those whose names are not known count as well, or others would be claimed in vain.
        Ok(busy.take(TASK_BUSY_QUEUES_PER_PASS).flatten().collect())
    }

    /// The queues that a pass is to look at, the one whose alarm went off first before others.
    ///
    /// Servers that make passes at the same time get into each other's way where they look at the
    /// same alarms. Where there are more than one pass takes, `turn` chooses among some parts of
    /// them.
    async fn alarmed(&self, turn: u64) -> Result<Vec<Alarmed>, StoreError> {
        let windows = match self.environment.capabilities.single_writer {
            true => 1,
            false => ALARM_WINDOWS,
        };
        let queues_max = TASK_QUEUES_PER_PASS * windows;
        let mut range = self.layout().alarms_by(self.now_ms);
        let mut queues: Vec<Alarmed> = Vec::new();
        let mut known: HashMap<(Id, KeyName), usize> = HashMap::new();
        let mut fetched = 0;
        // Past the many alarms that one queue may have, so that the others have their turn.
        while queues.len() < queues_max && fetched < ALARMS_PER_PASS {
            let page = self
                .task_rows(&range, ALARMS_PER_PAGE, Isolation::Snapshot)
                .await?;
            fetched += page.len();
            let is_last = page.len() < ALARMS_PER_PAGE;
            for alarm in page {
                range.begin = successor(&alarm.key);
                let (namespace, name) = self.layout().read_alarm_key(&alarm.key)?;
                let at = *known.entry((namespace, name.clone())).or_insert_with(|| {
                    queues.push(Alarmed {
                        namespace,
                        name,
                        alarms: Vec::new(),
                    });
                    queues.len() - 1
                });
                if let Some(queue) = queues.get_mut(at) {
                    queue.alarms.push(alarm.key);
                }
            }
            if is_last {
                break;
            }
        }
        let windows = queues
            .len()
            .div_ceil(TASK_QUEUES_PER_PASS)
            .clamp(1, windows);
        let window = usize::try_from(turn % windows as u64).unwrap_or(0);
        let queues = queues.into_iter().skip(window * TASK_QUEUES_PER_PASS);
        Ok(queues.take(TASK_QUEUES_PER_PASS).collect())
    }

    /// Those queues, and what there is to do in each.
    async fn look_at_alarmed(&self, turn: u64) -> Result<Vec<(Alarmed, Outlook)>, StoreError> {
        let mut alarmed = self.alarmed(turn).await?.into_iter().peekable();
        if alarmed.peek().is_none() {
            return Ok(Vec::new());
        }
        let shown = self.all_shown().await?;
        let mut looked_at = Vec::with_capacity(alarmed.len());
        while alarmed.peek().is_some() {
            // Side by side, because on a cluster each read is a round trip.
            let looks = alarmed.by_ref().take(REAPER_READS_AT_ONCE);
            let looks = looks.map(async |queue| {
                let outlook = match self.look_at(&queue, &shown).await {
                    Ok(outlook) => outlook,
                    Err(StoreError::Corrupt(what)) => Outlook::Unreadable(what),
                    Err(error) => return Err(error),
                };
                Ok((queue, outlook))
            });
            looked_at.extend(try_join_all(looks).await?);
        }
        Ok(looked_at)
    }

    /// At snapshot, so that looking conflicts with nobody: whoever gives a queue something to do
    /// sets an alarm as well.
    async fn look_at(&self, queue: &Alarmed, shown: &[(Id, u32)]) -> Result<Outlook, StoreError> {
        let meta_key = self.layout().meta_key(queue.namespace, &queue.name);
        let meta = self.transaction.get(&meta_key, Isolation::Snapshot).await?;
        let meta = meta.map(|value| Meta::decode(&value)).transpose()?;
        let meta = meta.filter(|meta| {
            matches!(meta.value_type, ValueType::TaskQueue | ValueType::Stream)
                && !self.is_expired(meta)
        });
        let Some(meta) = meta else {
            return Ok(Outlook::Gone);
        };
        let database = shown
            .iter()
            .find(|(known, _)| *known == queue.namespace)
            .map(|(_, database)| *database);
        let key = OpenKey {
            database,
            namespace: queue.namespace,
            name: queue.name.clone(),
            meta_key,
            meta,
        };
        if key.meta.value_type == ValueType::Stream {
            let outlook = self.stream_idle_outlook(&key).await?;
            return Ok(match outlook.is_due {
                true => Outlook::Idle(key, outlook.next_ms),
                false => Outlook::Quiet(key, outlook.next_ms),
            });
        }
        let (due, notes) = (
            self.layout().task_due(key.data()),
            self.layout().task_untended(key.data()),
        );
        let (due, notes) = try_join(
            self.task_rows(&due, 1, Isolation::Snapshot),
            self.task_rows(&notes, 1, Isolation::Snapshot),
        )
        .await?;
        let next_due = due.first();
        let next_due = next_due.map(|row| self.layout().read_task_due_key(key.data(), &row.key));
        let next_due = next_due.transpose()?;
        let is_due = next_due.is_some_and(|at_ms| at_ms <= self.now_ms);
        Ok(match is_due || !notes.is_empty() {
            true => Outlook::Busy(key),
            false => Outlook::Quiet(key, next_due),
        })
    }

    /// The namespace that each database shows.
    async fn all_shown(&self) -> Result<Vec<(Id, u32)>, StoreError> {
        // Side by side, because on a cluster each read is a round trip.
        let namespaces = (0..self.environment.databases).map(async |database| {
            let namespace = self.namespace_of(database).await?;
            Ok::<_, StoreError>((namespace, database))
        });
        try_join_all(namespaces).await
    }
}

impl WriteContext<'_> {
    /// Has background work look at a queue at a time, or a moment later; or long before a time that
    /// is far away, to set the next alarm then.
    pub(crate) fn set_alarm(&self, key: &OpenKey, at_ms: i64) {
        let at_ms = alarm_ms(self.now_ms, at_ms, key.name.hash());
        let row = self.layout().alarm_key(at_ms, key.namespace, &key.name);
        self.transaction.set(&row, b"");
    }

    /// Looks at queues whose alarms have gone off: puts back what is due, and tends the index
    /// where somebody has left a note. Answers how many alarms it has looked at.
    ///
    /// Of many queues `turn` chooses which, see [`ReadContext::alarmed_queues`]. Where `claimed` names
    /// the queues that clients of this server leave alone meanwhile, something is done in those
    /// only; others in which there is something to do by now are left to the next pass.
    pub async fn alarm_pass(
        &self,
        turn: u64,
        claimed: Option<&HashSet<(u32, Bytes)>>,
    ) -> Result<i64, StoreError> {
        let is_claimed = |key: &OpenKey| match (claimed, key.database, key.name.inline()) {
            (Some(claimed), Some(database), Some(name)) => {
                claimed.contains(&(database, name.clone()))
            }
            // Clients do not use it, or it cannot be claimed.
            _ => true,
        };
        let mut count = 0;
        let mut busy = Vec::new();
        for (mut queue, outlook) in self.look_at_alarmed(turn).await? {
            match outlook {
                Outlook::Busy(key) => {
                    if is_claimed(&key) {
                        busy.push((queue, key));
                    }
                    continue;
                }
                Outlook::Gone => self.clear_alarms(&queue),
                Outlook::Quiet(key, next_due) => {
                    self.spare_fresh_alarm(&mut queue);
                    self.clear_alarms(&queue);
                    if let Some(at_ms) = next_due {
                        self.set_alarm(&key, at_ms);
                    }
                }
                Outlook::Idle(key, next) => {
                    // Waking adds to its length: it must still be there.
                    self.transaction
                        .add_read_conflict_range(&key.meta_key, &successor(&key.meta_key));
                    self.clear_alarms(&queue);
                    self.wake_waiting(&key);
                    if let Some(at_ms) = next {
                        self.set_alarm(&key, at_ms);
                    }
                }
                Outlook::Unreadable(what) => {
                    self.clear_alarms(&queue);
                    self.put_off(&queue, what);
                }
            }
            count += queue.alarms.len();
        }
        busy.truncate(self.busy_queues_max());
        let at_once = match self.environment.capabilities.single_writer {
            true => 1,
            false => BUSY_QUEUES_AT_ONCE,
        };
        for (number, some) in busy.chunks(at_once).enumerate() {
            if number > 0 && self.is_full_or_old() {
                break;
            }
            // Together no more than one queue by itself.
            let bytes_max = self.environment.capabilities.batch_bytes_soft_max / some.len();
            let share = ((TASK_DUE_PER_PASS / some.len()).max(1), bytes_max);
            // Side by side, because on a cluster each read is a round trip.
            let heeded = some
                .iter()
                .map(|(queue, key)| self.heed_alarms(queue, key, share));
            try_join_all(heeded).await?;
            count += some
                .iter()
                .map(|(queue, _)| queue.alarms.len())
                .sum::<usize>();
        }
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// In how many queues a pass does something.
    fn busy_queues_max(&self) -> usize {
        if self.environment.capabilities.single_writer {
            return TASK_BUSY_QUEUES_PER_PASS;
        }
        // However much other servers do, sooner or later a pass is small enough to get through.
        let random = &self.environment.random;
        match random.below(2) {
            0 => TASK_BUSY_QUEUES_PER_PASS,
            _ => (TASK_BUSY_QUEUES_PER_PASS >> random.below(BUSY_QUEUES_SIZES)).max(1),
        }
    }

    /// Leaves an alarm for later that additions which are under way may be setting once more, with
    /// their notes: they would conflict with the pass.
    fn spare_fresh_alarm(&self, queue: &mut Alarmed) {
        let at_ms = self.now_ms / TEND_STEP_MS * TEND_STEP_MS;
        let is_alone = self.environment.capabilities.single_writer;
        if !is_alone && self.now_ms - at_ms < ALARM_FRESH_MS {
            let layout = self.layout();
            let fresh = layout.alarm_key(at_ms, queue.namespace, &queue.name);
            queue.alarms.retain(|alarm| *alarm != fresh);
        }
    }

    /// To be called before others are set, which may be for the same moment.
    fn clear_alarms(&self, queue: &Alarmed) {
        for alarm in &queue.alarms {
            // An alarm that is set anew meanwhile must stay.
            self.transaction
                .add_read_conflict_range(alarm, &successor(alarm));
            self.transaction.clear(alarm);
        }
    }

    /// Has a queue that cannot be read looked at later, so that it does not hold up the others.
    fn put_off(&self, queue: &Alarmed, what: &str) {
        tracing::error!(
            key = ?queue.name,
            "tasks of a queue are not put back, because something of it cannot be read: {what}"
        );
        let step = TASK_UNREADABLE_STEP_MS;
        let at_ms = (self.now_ms / step).saturating_add(1).saturating_mul(step);
        let next = self.layout().alarm_key(at_ms, queue.namespace, &queue.name);
        self.transaction.set(&next, b"");
    }

    /// Looks after a queue.
    async fn heed_alarms(
        &self,
        queue: &Alarmed,
        key: &OpenKey,
        share: (usize, usize),
    ) -> Result<(), StoreError> {
        // Whoever renames or removes it.
        self.transaction
            .add_read_conflict_range(&key.meta_key, &successor(&key.meta_key));
        let upkeep = self.task_upkeep_due(key, share).await;
        self.clear_alarms(queue);
        let upkeep = match upkeep {
            Ok(upkeep) => upkeep,
            // Nothing was written for it.
            Err(StoreError::Corrupt(what)) => {
                self.put_off(queue, what);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if !self.task_upkeep(key, upkeep).await? {
            // There is more to do, behind those who have waited for longer.
            let next = self
                .layout()
                .alarm_key(self.now_ms, queue.namespace, &queue.name);
            self.transaction.set(&next, b"");
        }
        Ok(())
    }
}
