//! What clients set for a whole queue: TASK.SETOPTIONS, TASK.PAUSE, TASK.RESUME.
//!
//! Options are in the registry, which additions and takes read anyway. A queue with options exists
//! without tasks, so that the options apply to later tasks. A key that would not exist without
//! tasks has no options.

use super::{TaskQueue, TaskQueueMut, limits};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::{TASK_GROUP_LEASES_MAX, TASK_TIME_MS_MAX};
use quoin_layout::{TaskNumber, TaskOptions};
use quoin_store::{Isolation, StoreError};

/// An option that is a number.
pub(super) struct NumberOption {
    /// The word in commands and replies.
    pub(super) name: &'static str,
    pub(super) number: TaskNumber,
    /// The greatest value. The least is 0, the default.
    pub(super) max: i64,
}

const fn number(name: &'static str, number: TaskNumber, max: i64) -> NumberOption {
    NumberOption { name, number, max }
}

/// The options that are numbers for clients too.
pub(super) const NUMBERS: &[NumberOption] = &[
    number("maxtries", TaskNumber::TriesMax, i64::MAX),
    number("backoff", TaskNumber::BackoffMs, TASK_TIME_MS_MAX),
    number("backoffmax", TaskNumber::BackoffMaxMs, TASK_TIME_MS_MAX),
    number("jitter", TaskNumber::JitterPercent, 100),
    number("lease", TaskNumber::LeaseMs, TASK_TIME_MS_MAX),
    number("ttl", TaskNumber::TtlMs, TASK_TIME_MS_MAX),
    number("maxlen", TaskNumber::LengthMax, i64::MAX),
    number("leases", TaskNumber::LeasesMax, i64::MAX),
    number(
        "groupleases",
        TaskNumber::GroupLeasesMax,
        TASK_GROUP_LEASES_MAX,
    ),
];

/// The option that limits how many tasks consumers get within a time. It has two numbers. Either
/// both are 0 or neither is.
pub(super) const RATE: &str = "rate";
/// Its first number.
pub(super) const RATE_MAX: NumberOption = number("rate", TaskNumber::RateMax, i64::MAX);
/// Its second number.
pub(super) const RATE_PERIOD: NumberOption =
    number("period of RATE", TaskNumber::RatePeriodMs, TASK_TIME_MS_MAX);

/// The option that says what happens when the queue is full.
pub(super) const OVERFLOW: &str = "overflow";
/// Its values, by the number of [`TaskNumber::DropsOldest`].
pub(super) const OVERFLOWS: [&str; 2] = ["refuse", "drop"];
/// The option that names the queue for dead tasks.
pub(super) const DEAD_LETTER: &str = "deadletter";

/// Whether these options can be set by clients.
pub(super) fn are_sound(options: &TaskOptions) -> bool {
    let has_rate = [TaskNumber::RateMax, TaskNumber::RatePeriodMs].map(|of| options.number(of) > 0);
    has_rate[0] == has_rate[1]
        && options.numbers().iter().all(|(number, value)| {
            let known = { NUMBERS.iter() }.chain([&RATE_MAX, &RATE_PERIOD]);
            let known = { known }.find(|option| option.number == *number);
            (1..=known.map_or(1, |option| option.max)).contains(value)
        })
}

/// Changes the options of a queue. Returns the previous ones. If it has no options afterwards, the
/// caller calls [`remove_if_empty`](WriteContext::remove_if_empty).
///
/// Conflicts with everything that is done to the queue at the same time.
pub(super) async fn change(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    change: impl FnOnce(&mut TaskOptions),
) -> Result<TaskOptions, StoreError> {
    let queue = TaskQueueMut::open(context, key);
    let mut registry = queue.registry(Isolation::Serializable).await?;
    let former = registry.options.clone();
    change(&mut registry.options);
    if former == registry.options {
        return Ok(former);
    }
    let row = context.layout().task_registry_key(key.data());
    context.transaction.set(&row, &registry.encode());
    let is_kept = !registry.options.is_empty() || queue.remembers().await?;
    context.set_kept(key, is_kept);
    let limits = [
        TaskNumber::RateMax,
        TaskNumber::RatePeriodMs,
        TaskNumber::LeasesMax,
        TaskNumber::GroupLeasesMax,
    ];
    if limits
        .iter()
        .any(|limit| former.number(*limit) != registry.options.number(*limit))
    {
        limits::forget_takes(context, key).await?;
        context.wake_waiting(key);
    } else if former.is_paused && !registry.options.is_paused {
        context.wake_waiting(key);
    }
    Ok(former)
}

impl TaskQueue<'_, '_> {
    /// The options of the queue. Reads nothing if it has none.
    pub(super) async fn options(&self) -> Result<TaskOptions, StoreError> {
        match self.key.meta.is_kept {
            true => Ok(self.registry(self.context.relaxed()).await?.options),
            false => Ok(TaskOptions::default()),
        }
    }
}

impl TaskQueueMut<'_, '_> {
    /// How long a task waits after it was given back, if it has been tried `tries` times.
    pub(super) fn backoff_ms(&self, options: &TaskOptions, tries: i64) -> i64 {
        let first_ms = options.number(TaskNumber::BackoffMs);
        let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(0).min(62);
        let doubled_ms = first_ms.saturating_mul(1 << doublings);
        let whole_ms = doubled_ms
            .min(options.number(TaskNumber::BackoffMaxMs))
            .max(first_ms);
        let percent = options.number(TaskNumber::JitterPercent);
        let jitter_ms = u64::try_from(whole_ms.saturating_mul(percent) / 100).unwrap_or(0);
        match jitter_ms {
            0 => whole_ms,
            jitter_ms => {
                let random = self
                    .context
                    .environment
                    .random
                    .below(jitter_ms.saturating_add(1));
                whole_ms - i64::try_from(random).unwrap_or(0)
            }
        }
    }
}
