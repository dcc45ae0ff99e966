//! Timers: rows that say when background work should check a task queue, a stream or a hash. A task
//! queue may have due tasks, something that has ended, or requests for maintenance of its index. A
//! stream may have groups whose idle entries are due for redelivery, or producers whose entries are
//! all forgotten. A hash may have fields that have expired.
//!
//! A timer is a row ordered by time and key. It says only that there may be work, so excess or
//! outdated timers do no harm. A key with work at some time has a timer at that time or before: a
//! transaction that writes a row by due time, or a request, also sets a timer, and a pass that
//! clears a key's timers sets the next one.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all, try_join3};

use super::index::MAINTENANCE_STEP_MS;
use super::{TaskQueue, TaskQueueMut, is_full_or_old, range_rows};
use crate::hash::expiry;
use crate::keyspace::key::OpenKey;
use crate::stream::{Stream, StreamMut};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{
    REAPER_READS_AT_ONCE, TASK_BUSY_QUEUES_PER_PASS, TASK_DUE_PER_PASS, TASK_QUEUES_PER_PASS,
    TASK_UNREADABLE_STEP_MS,
};
use quoin_layout::{Id, KeyName, Meta, Timers, ValueType, successor};
use quoin_store::{Isolation, StoreError};

/// On a store with many writers, every other pass works on fewer queues: it halves the number at random, down to 1.
/// The number of sizes.
const BUSY_QUEUES_SIZES: u64 = 8;
/// Queues that a pass works on concurrently if a read is a round trip.
const BUSY_QUEUES_AT_ONCE: usize = 16;
/// On a store with many writers, a pass chooses one of this many windows of [`TASK_QUEUES_PER_PASS`] queues.
const TIMER_WINDOWS: usize = 4;
/// Timers that a pass reads at a time, until they are of enough queues.
const TIMERS_PER_PAGE: usize = 512;
/// Maximum number of timers that a pass reads. One queue may have many.
const TIMERS_PER_PASS: usize = 4096;
/// How long a transaction that adds a task and requests maintenance may take.
const TIMER_FRESH_MS: i64 = 200;
/// Timers within [`TIMER_NEAR_MS`] are at multiples of this.
pub const TIMER_STEP_MS: i64 = 100;
/// Timers for later times, within [`TIMER_FAR_MS`], are at earlier times, at multiples of this.
const TIMER_NEAR_MS: i64 = 60_000;
/// Timers for still later times are about this far ahead, at multiples of this.
const TIMER_FAR_MS: i64 = 3_600_000;
/// Background work sets the next timer of a hash up to this far ahead.
const TIMER_DAY_MS: i64 = 24 * TIMER_FAR_MS;

/// A key with due timers.
struct QueueTimers {
    of: Timers,
    namespace: Id,
    name: KeyName,
    /// Their rows.
    timers: Vec<Bytes>,
}

/// The work of a key.
enum KeyWork {
    /// The key does not exist any more.
    Gone,
    /// The key with this metadata key has expired, but has not been removed yet.
    Expired(Vec<u8>),
    /// There is no work before this time. `None` if there will be none.
    Quiet(OpenKey, Option<i64>),
    /// A task queue or a hash has work, or a stream more than waking clients.
    Busy(OpenKey),
    /// A stream has idle entries for waiting clients now, and more at a time.
    Idle(OpenKey, Option<i64>),
    /// Some of its data cannot be read.
    Unreadable(&'static str),
}

/// The time of the timer for work that is due at `due_ms`.
///
/// A timer stays even if its lease ends early. So only certain times have timers, fewer of them the
/// later they are: with any leases and delays, a queue has about a hundred timers. The hash of the
/// queue's name spreads the timers of different queues.
fn timer_ms(now_ms: i64, due_ms: i64, hash: u64, far_ms: i64) -> i64 {
    let last_multiple = |at_ms: i64, step: i64| {
        let spread = i64::try_from(hash % step.unsigned_abs()).unwrap_or(0);
        at_ms - (at_ms - spread).rem_euclid(step)
    };
    let (step, near) = (TIMER_STEP_MS, TIMER_NEAR_MS);
    match due_ms.saturating_sub(now_ms) {
        ahead if ahead <= near => due_ms.saturating_add(step - 1) / step * step,
        ahead if ahead <= far_ms => last_multiple(due_ms, near),
        _ => last_multiple(now_ms.saturating_add(far_ms), TIMER_FAR_MS),
    }
}

impl WriteContext<'_> {
    /// Sets a timer for a time, or up to [`TIMER_STEP_MS`] later. If the time is far away, the timer is earlier, and
    /// is then set again.
    pub(crate) fn set_timer(&self, key: &OpenKey, at_ms: i64) {
        self.set_timer_within(key, at_ms, TIMER_FAR_MS);
    }

    /// [`Self::set_timer`] for a hash that already had fields with an expiry. A store may have many
    /// such hashes with fields that expire much later, so they are checked rarely. Other timers are
    /// not set as far ahead, because a timer remains when its key is removed.
    pub(crate) fn set_timer_within_day(&self, key: &OpenKey, at_ms: i64) {
        self.set_timer_within(key, at_ms, TIMER_DAY_MS);
    }

    fn set_timer_within(&self, key: &OpenKey, at_ms: i64, far_ms: i64) {
        let at_ms = timer_ms(self.now_ms, at_ms, key.name.hash(), far_ms);
        let timers = Timers::of(key.meta.value_type);
        let row = self
            .layout()
            .timer_key(timers, at_ms, key.namespace, &key.name);
        self.transaction.set(&row, b"");
    }
}

/// The task queues that have work for [`run_due`]: databases and keys. Some long names are not known, and left out.
pub async fn due_queues(
    context: &ReadContext<'_>,
    of: Timers,
    turn: u64,
) -> Result<Vec<(u32, Bytes)>, StoreError> {
    let checked = check_all(context, of, turn).await?;
    let busy = checked.iter().filter_map(|(_, work)| match work {
        KeyWork::Busy(key) => Some(key.database.zip(key.name.inline().cloned())),
        _ => None,
    });
    // Queues with unknown names count too, because otherwise other queues would be locked in vain.
    Ok(busy.take(TASK_BUSY_QUEUES_PER_PASS).flatten().collect())
}

/// The keys with due timers that a pass checks, by the time of their first timer.
///
/// Passes of several servers conflict if they handle the same timers. If there are more keys than
/// one pass takes, `turn` chooses a window of them.
async fn queues_with_due_timers(
    context: &ReadContext<'_>,
    of: Timers,
    turn: u64,
) -> Result<Vec<QueueTimers>, StoreError> {
    let windows = match context.environment.capabilities.has_other_writers {
        false => 1,
        true => TIMER_WINDOWS,
    };
    let queues_max = TASK_QUEUES_PER_PASS * windows;
    let mut range = context.layout().timers_by(of, context.now_ms);
    let mut queues: Vec<QueueTimers> = Vec::new();
    let mut known: HashMap<(Id, KeyName), usize> = HashMap::new();
    let mut fetched = 0;
    // One queue may have many timers. They must not hold up other queues.
    while queues.len() < queues_max && fetched < TIMERS_PER_PASS {
        let page = range_rows(context, &range, TIMERS_PER_PAGE, Isolation::Snapshot).await?;
        fetched += page.len();
        let is_last = page.len() < TIMERS_PER_PAGE;
        for timer in page {
            range.begin = successor(&timer.key);
            let (namespace, name) = context.layout().read_timer_key(of, &timer.key)?;
            let at = *known.entry((namespace, name.clone())).or_insert_with(|| {
                queues.push(QueueTimers {
                    of,
                    namespace,
                    name,
                    timers: Vec::new(),
                });
                queues.len() - 1
            });
            if let Some(queue) = queues.get_mut(at) {
                queue.timers.push(timer.key);
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

/// These keys, and the work of each.
async fn check_all(
    context: &ReadContext<'_>,
    of: Timers,
    turn: u64,
) -> Result<Vec<(QueueTimers, KeyWork)>, StoreError> {
    let mut queues = queues_with_due_timers(context, of, turn)
        .await?
        .into_iter()
        .peekable();
    if queues.peek().is_none() {
        return Ok(Vec::new());
    }
    let shown = shown_namespaces(context).await?;
    let mut checked = Vec::with_capacity(queues.len());
    while queues.peek().is_some() {
        // Concurrently, because on a cluster each read is a round trip.
        let checks = queues.by_ref().take(REAPER_READS_AT_ONCE);
        let checks = checks.map(async |queue| {
            let work = match check(context, &queue, &shown).await {
                Ok(work) => work,
                Err(StoreError::Corrupt(what)) => KeyWork::Unreadable(what),
                Err(error) => return Err(error),
            };
            Ok((queue, work))
        });
        checked.extend(try_join_all(checks).await?);
    }
    Ok(checked)
}

/// The work of a key. Uses snapshot reads and conflicts with nothing, because transactions that add
/// work also set a timer.
async fn check(
    context: &ReadContext<'_>,
    queue: &QueueTimers,
    shown: &[(Id, u32)],
) -> Result<KeyWork, StoreError> {
    let meta_key = context.layout().meta_key(queue.namespace, &queue.name);
    let meta = context
        .transaction
        .get(&meta_key, Isolation::Snapshot)
        .await?;
    let meta = meta.map(|value| Meta::decode(&value)).transpose()?;
    let has_expired = meta.as_ref().is_some_and(|meta| context.is_expired(meta));
    let meta = meta.filter(|meta| {
        let has_timers = match meta.value_type {
            ValueType::Hash => meta.fields_expire,
            other => matches!(other, ValueType::TaskQueue | ValueType::Stream),
        };
        has_timers && !has_expired
    });
    let Some(meta) = meta else {
        return Ok(match has_expired {
            true => KeyWork::Expired(meta_key),
            false => KeyWork::Gone,
        });
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
        let stream = Stream::open(context, &key);
        let (idle, producers) = try_join(stream.idle_work(), stream.producer_work()).await?;
        let next_ms = earlier(idle.next_ms, producers.next_ms);
        return Ok(match (producers.is_due, idle.is_due) {
            (true, _) => KeyWork::Busy(key),
            (false, true) => KeyWork::Idle(key, next_ms),
            (false, false) => KeyWork::Quiet(key, next_ms),
        });
    }
    if key.meta.value_type == ValueType::Hash {
        let next = expiry::next_expiry(context, &key).await?;
        return Ok(match next {
            Some(at_ms) if at_ms > context.now_ms => KeyWork::Quiet(key, next),
            Some(_) => KeyWork::Busy(key),
            None => KeyWork::Quiet(key, None),
        });
    }
    let (due, requests) = (
        context.layout().task_due(key.data()),
        context.layout().task_maintenance(key.data()),
    );
    let (due, requests, next_end) = try_join3(
        range_rows(context, &due, 1, Isolation::Snapshot),
        range_rows(context, &requests, 1, Isolation::Snapshot),
        TaskQueue::open(context, &key).next_end_ms(),
    )
    .await?;
    let next_due = due.first();
    let next_due = next_due.map(|row| context.layout().read_task_due_key(key.data(), &row.key));
    let next_due = earlier(next_due.transpose()?, next_end);
    let is_due = next_due.is_some_and(|at_ms| at_ms <= context.now_ms);
    Ok(match is_due || !requests.is_empty() {
        true => KeyWork::Busy(key),
        false => KeyWork::Quiet(key, next_due),
    })
}

/// The earlier of two times. Either may be missing.
fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// The namespace that each database shows.
async fn shown_namespaces(context: &ReadContext<'_>) -> Result<Vec<(Id, u32)>, StoreError> {
    // Concurrently, because on a cluster each read is a round trip.
    let namespaces = (0..context.environment.databases).map(async |database| {
        let namespace = context.namespace_of(database).await?;
        Ok::<_, StoreError>((namespace, database))
    });
    try_join_all(namespaces).await
}

/// Runs due timers: puts back due tasks, maintains indexes on request, wakes clients that wait for
/// idle entries of streams, and removes expired fields of hashes. Returns the number of timers.
///
/// `turn` chooses among many keys. `locked`: the queues of [`due_queues`] that are locked against
/// clients of this server. A pass works only on these. Other queues that have work by now are left
/// to the next pass.
pub async fn run_due(
    context: &WriteContext<'_>,
    of: Timers,
    turn: u64,
    locked: Option<&HashSet<(u32, Bytes)>>,
) -> Result<i64, StoreError> {
    let is_locked = |key: &OpenKey| match (locked, key.database, key.name.inline()) {
        (Some(locked), Some(database), Some(name)) => locked.contains(&(database, name.clone())),
        // No client uses it, or it cannot be locked.
        _ => true,
    };
    let mut count = 0;
    let mut busy = Vec::new();
    for (mut queue, work) in check_all(context, of, turn).await? {
        match work {
            KeyWork::Busy(key) => {
                if is_locked(&key) {
                    busy.push((queue, key));
                }
                continue;
            }
            KeyWork::Gone => clear_timers(context, &queue),
            KeyWork::Expired(meta_key) => {
                // A client whose clock is behind may give the key a later expiry, and rely on its timers.
                context
                    .transaction
                    .add_read_conflict_range(&meta_key, &successor(&meta_key));
                clear_timers(context, &queue);
            }
            KeyWork::Quiet(key, next_due) => {
                keep_fresh_timer(context, &mut queue);
                clear_timers(context, &queue);
                match next_due {
                    Some(at_ms) if key.meta.value_type == ValueType::Hash => {
                        context.set_timer_within_day(&key, at_ms);
                    }
                    Some(at_ms) => context.set_timer(&key, at_ms),
                    None => {}
                }
            }
            KeyWork::Idle(key, next) => {
                // The key must still exist, because its clients are woken for it.
                context
                    .transaction
                    .add_read_conflict_range(&key.meta_key, &successor(&key.meta_key));
                clear_timers(context, &queue);
                context.wake_waiting(&key);
                if let Some(at_ms) = next {
                    context.set_timer(&key, at_ms);
                }
            }
            KeyWork::Unreadable(what) => {
                clear_timers(context, &queue);
                put_off(context, &queue, what);
            }
        }
        count += queue.timers.len();
    }
    busy.truncate(busy_queues_max(context));
    let at_once = match context.environment.capabilities.reads_wait {
        false => 1,
        true => BUSY_QUEUES_AT_ONCE,
    };
    // Two queues with options may move dead tasks to the same queue, which only one of them may
    // create.
    let together = busy.chunk_by(|(_, one), (_, next)| !one.meta.is_kept && !next.meta.is_kept);
    let together = together.flat_map(|some| some.chunks(at_once));
    for (number, some) in together.enumerate() {
        if number > 0 && is_full_or_old(context) {
            break;
        }
        // Several queues together do as much work as a single one.
        let bytes_max = context.environment.capabilities.batch_bytes_soft_max / some.len();
        let share = ((TASK_DUE_PER_PASS / some.len()).max(1), bytes_max);
        // Concurrently, because on a cluster each read is a round trip.
        let done = some
            .iter()
            .map(|(queue, key)| run_timers(context, queue, key, share));
        try_join_all(done).await?;
        count += some
            .iter()
            .map(|(queue, _)| queue.timers.len())
            .sum::<usize>();
    }
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The most queues that a pass works on.
fn busy_queues_max(context: &WriteContext<'_>) -> usize {
    if !context.environment.capabilities.has_other_writers {
        return TASK_BUSY_QUEUES_PER_PASS;
    }
    // Random sizes, so that sooner or later a pass is small enough to commit, however much other
    // servers do.
    let random = &context.environment.random;
    match random.below(2) {
        0 => TASK_BUSY_QUEUES_PER_PASS,
        _ => (TASK_BUSY_QUEUES_PER_PASS >> random.below(BUSY_QUEUES_SIZES)).max(1),
    }
}

/// Keeps a timer that concurrent additions may set again with their requests. They would conflict
/// with the pass.
fn keep_fresh_timer(context: &WriteContext<'_>, queue: &mut QueueTimers) {
    let at_ms = context.now_ms / MAINTENANCE_STEP_MS * MAINTENANCE_STEP_MS;
    let is_alone = !context.environment.capabilities.has_other_writers;
    if !is_alone && context.now_ms - at_ms < TIMER_FRESH_MS {
        let layout = context.layout();
        let fresh = layout.timer_key(queue.of, at_ms, queue.namespace, &queue.name);
        queue.timers.retain(|timer| *timer != fresh);
    }
}

/// Clears the timers. Call it before setting others, which may have the same time.
fn clear_timers(context: &WriteContext<'_>, queue: &QueueTimers) {
    for timer in &queue.timers {
        // A timer that another transaction sets again must stay.
        context
            .transaction
            .add_read_conflict_range(timer, &successor(timer));
        context.transaction.clear(timer);
    }
}

/// Sets a later timer for a queue that cannot be read, so it does not hold up the others.
fn put_off(context: &WriteContext<'_>, queue: &QueueTimers, what: &str) {
    tracing::error!(
        key = ?queue.name,
        "tasks of a queue are not put back, or fields of a hash not removed, because something of it cannot be read: \
         {what}"
    );
    let step = TASK_UNREADABLE_STEP_MS;
    let at_ms = (context.now_ms / step)
        .saturating_add(1)
        .saturating_mul(step);
    let next = context
        .layout()
        .timer_key(queue.of, at_ms, queue.namespace, &queue.name);
    context.transaction.set(&next, b"");
}

/// Does the work of a task queue, a hash or a stream.
async fn run_timers(
    context: &WriteContext<'_>,
    timers: &QueueTimers,
    key: &OpenKey,
    share: (usize, usize),
) -> Result<(), StoreError> {
    // Conflicts with a rename or removal.
    context
        .transaction
        .add_read_conflict_range(&key.meta_key, &successor(&key.meta_key));
    let is_done = match key.meta.value_type {
        ValueType::Hash => {
            clear_timers(context, timers);
            match expiry::remove_expired(context, key, share).await {
                Err(StoreError::Corrupt(what)) => {
                    put_off(context, timers, what);
                    return Ok(());
                }
                removed => removed?,
            }
        }
        ValueType::Stream => {
            clear_timers(context, timers);
            match run_stream(context, key).await {
                Err(StoreError::Corrupt(what)) => {
                    put_off(context, timers, what);
                    return Ok(());
                }
                done => done?,
            }
            true
        }
        _ => {
            let queue = TaskQueueMut::open(context, key);
            let work = queue.find_work(share).await;
            clear_timers(context, timers);
            let work = match work {
                Ok(work) => work,
                // Nothing has been written for this queue yet.
                Err(StoreError::Corrupt(what)) => {
                    put_off(context, timers, what);
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            queue.do_work(work).await?
        }
    };
    if !is_done {
        // There is more work. Other queues that have waited longer come first.
        let next =
            context
                .layout()
                .timer_key(timers.of, context.now_ms, timers.namespace, &timers.name);
        context.transaction.set(&next, b"");
    }
    Ok(())
}

/// Removes producers whose entries are all forgotten, wakes clients that wait for idle entries, and
/// sets the next timer.
async fn run_stream(context: &WriteContext<'_>, key: &OpenKey) -> Result<(), StoreError> {
    let stream = StreamMut::open(context, key);
    let idle = stream.idle_work().await?;
    let next_ms = stream.remove_forgotten_producers().await?;
    if idle.is_due {
        context.wake_waiting(key);
    }
    if let Some(at_ms) = earlier(idle.next_ms, next_ms) {
        context.set_timer(key, at_ms);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use quoin_base::limits::TASK_TIME_MS_MAX;

    const NOW_MS: i64 = 1_700_000_000_000;

    proptest! {
        #[test]
        fn timers_are_never_late_and_always_ahead(
            now_ms in 0..NOW_MS * 2,
            ahead_ms in prop_oneof![1..200_000i64, 1..10_000_000i64, 1..TASK_TIME_MS_MAX],
            hash: u64,
        ) {
            for far_ms in [TIMER_FAR_MS, TIMER_DAY_MS] {
                let at_ms = timer_ms(now_ms, now_ms + ahead_ms, hash, far_ms);
                prop_assert!(at_ms > now_ms);
                prop_assert!(at_ms < now_ms + ahead_ms + TIMER_STEP_MS);
                prop_assert!(at_ms <= now_ms + far_ms);
            }
        }
    }

    #[test]
    fn what_is_due_already_has_a_timer_at_once() {
        assert_eq!(timer_ms(NOW_MS, NOW_MS, 7, TIMER_FAR_MS), NOW_MS);
        assert_eq!(
            timer_ms(NOW_MS, NOW_MS - 950, 7, TIMER_FAR_MS),
            NOW_MS - 900
        );
    }

    #[test]
    fn a_queue_has_few_timers_however_many_leases_of_whatever_time_it_grants() {
        for lease_ms in [86_400_000, 3_000_000, 100_000] {
            let timers: BTreeSet<i64> = (0..36_000)
                .map(|number| NOW_MS + number * 100)
                .map(|now_ms| timer_ms(now_ms, now_ms + lease_ms, 7, TIMER_FAR_MS))
                .collect();
            // In an hour.
            assert!(timers.len() <= 62, "{}", timers.len());
        }
    }

    #[test]
    fn timers_of_different_queues_are_spread_out() {
        let timers: BTreeSet<i64> = (0..100)
            .map(|number| number * 0x9e37_79b9)
            .map(|hash| timer_ms(NOW_MS, NOW_MS + 86_400_000, hash, TIMER_FAR_MS))
            .collect();
        assert!(timers.len() > 90, "{}", timers.len());
    }
}
