//! Schedules of a task queue, which add tasks repeatedly.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::member::normal_score;
use super::{DecodeError, Id, KeyRange, Layout, Section, corrupt, numbered, take};

/// Format byte of a schedule.
const FORMAT: u8 = 1;

/// Format byte of a schedule whose task has a group.
const FORMAT_WITH_GROUP: u8 = 2;

const EVERY: u64 = 0;
const CRON: u64 = 1;

numbered! {
    /// What happens to moments of a schedule that passed without a task.
    pub enum TaskMissed {
        /// One task is added for all of them.
        Once = 0,
        /// A task is added for each, up to a bound.
        All = 1,
        /// None is added.
        Skip = 2,
    }
}

/// When a schedule adds a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskTiming {
    /// Repeatedly, at a fixed interval.
    Every {
        /// That time.
        every_ms: i64,
        /// One of the moments, in Unix milliseconds.
        from_ms: i64,
    },
    /// At the times of day of a cron expression.
    Cron {
        /// The expression.
        expression: Bytes,
        /// The name of the time zone of the times of day.
        zone: Bytes,
    },
}

/// A task as TASK.ADD describes it, but without its id. Schedules keep it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskSpec {
    /// The lower the sooner; not NaN.
    pub priority: f64,
    /// Amounts of resources by name: finite, zero or more, each name once.
    pub needs: Vec<(Bytes, f64)>,
    /// How long until it is ready.
    pub delay_ms: i64,
    /// How often it may be taken with a lease. 0 means without limit, `None` follows the queue's
    /// options.
    pub tries_max: Option<i64>,
    /// How long until it is too old. 0 means never, `None` follows the queue's options.
    pub ttl_ms: Option<i64>,
    /// Shows that the task was added before.
    pub unique: Option<TaskUnique>,
    /// The group that it is of.
    pub group: Option<Bytes>,
    /// Its payload.
    pub payload: Bytes,
}

/// Within a time, no other task is added with the same token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUnique {
    /// The token.
    pub token: Bytes,
    /// That time.
    pub window_ms: i64,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSchedule {
    /// Its next moment, in Unix milliseconds; 0 if it is paused.
    pub next_ms: i64,
    /// The last moment for which it has added a task. 0 if there was none.
    pub last_ms: i64,
    /// Why the task of its last moment could not be added; empty if it was.
    pub error: Bytes,
    /// When it adds a task.
    pub timing: TaskTiming,
    /// What happens to moments that have passed.
    pub missed: TaskMissed,
    /// The task.
    pub task: TaskSpec,
}

impl TaskSchedule {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(128 + self.task.payload.len());
        value.push(match self.task.group {
            None => FORMAT,
            Some(_) => FORMAT_WITH_GROUP,
        });
        pack_into(
            &(
                self.next_ms,
                self.last_ms,
                self.error.as_ref(),
                self.missed as u64,
            ),
            &mut value,
        );
        match &self.timing {
            TaskTiming::Every { every_ms, from_ms } => {
                pack_into(&(EVERY, *every_ms, *from_ms), &mut value);
            }
            TaskTiming::Cron { expression, zone } => {
                pack_into(&(CRON, expression.as_ref(), zone.as_ref()), &mut value);
            }
        }
        let TaskSpec {
            priority,
            needs,
            delay_ms,
            tries_max,
            ttl_ms,
            unique,
            group,
            payload,
        } = &self.task;
        let unique = unique.as_ref();
        pack_into(
            &(
                normal_score(*priority),
                *delay_ms,
                *tries_max,
                *ttl_ms,
                unique.map(|unique| unique.token.as_ref()),
                unique.map(|unique| unique.window_ms),
                needs.len() as u64,
            ),
            &mut value,
        );
        for (name, amount) in needs {
            pack_into(&(name.as_ref(), *amount), &mut value);
        }
        if let Some(group) = group {
            pack_into(&(group.as_ref(),), &mut value);
        }
        value.extend_from_slice(payload);
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let Some((&format @ (FORMAT | FORMAT_WITH_GROUP), mut rest)) = value.split_first() else {
            return corrupt("format of a schedule");
        };
        let next_ms = take(&mut rest, "next moment of a schedule")?;
        let last_ms = take(&mut rest, "last moment of a schedule")?;
        let error = take_bytes(&mut rest, "error of a schedule")?;
        let missed = take(&mut rest, "missed moments of a schedule")?;
        let Some(missed) = TaskMissed::from_number(missed) else {
            return corrupt("missed moments of a schedule");
        };
        let timing: u64 = take(&mut rest, "timing of a schedule")?;
        let timing = match timing {
            EVERY => TaskTiming::Every {
                every_ms: take(&mut rest, "timing of a schedule")?,
                from_ms: take(&mut rest, "timing of a schedule")?,
            },
            CRON => TaskTiming::Cron {
                expression: take_bytes(&mut rest, "timing of a schedule")?,
                zone: take_bytes(&mut rest, "timing of a schedule")?,
            },
            _ => return corrupt("timing of a schedule"),
        };
        let priority = take(&mut rest, "priority")?;
        let delay_ms = take(&mut rest, "delay of a scheduled task")?;
        let tries_max = take(&mut rest, "tries")?;
        let ttl_ms = take(&mut rest, "time to live of a scheduled task")?;
        let token: Option<TupleBytes<'_>> = take(&mut rest, "token of a scheduled task")?;
        let window_ms: Option<i64> = take(&mut rest, "token of a scheduled task")?;
        let count: u64 = take(&mut rest, "needs of a scheduled task")?;
        let mut needs = Vec::new();
        for _ in 0..count {
            let name = take_bytes(&mut rest, "needs of a scheduled task")?;
            needs.push((name, take(&mut rest, "amount")?));
        }
        let group = match format {
            FORMAT_WITH_GROUP => Some(take_bytes(&mut rest, "group of a scheduled task")?),
            _ => None,
        };
        let unique = token.zip(window_ms).map(|(token, window_ms)| TaskUnique {
            token: Bytes::from(token.into_owned()),
            window_ms,
        });
        Ok(Self {
            next_ms,
            last_ms,
            error,
            timing,
            missed,
            task: TaskSpec {
                priority,
                needs,
                delay_ms,
                tries_max,
                ttl_ms,
                unique,
                group,
                payload: value.slice(value.len() - rest.len()..),
            },
        })
    }
}

fn take_bytes(rest: &mut &[u8], what: &'static str) -> Result<Bytes, DecodeError> {
    let bytes: TupleBytes<'_> = take(rest, what)?;
    Ok(Bytes::from(bytes.into_owned()))
}

impl Layout {
    /// Key of a schedule.
    pub fn task_schedule_key(&self, data: Id, name: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::TaskSchedules);
        pack_into(&(name,), &mut key);
        key
    }

    /// All schedules, by name.
    pub fn task_schedules(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::TaskSchedules))
    }

    /// The name of a schedule, from the key of its row.
    ///
    /// # Errors
    /// If the key is not one.
    pub fn read_task_schedule_key(&self, data: Id, key: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let prefix = self.section_prefix(data, Section::TaskSchedules);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => {
                let name: TupleBytes<'_> = take(&mut rest, "name of a schedule")?;
                Ok(name.into_owned())
            }
            None => corrupt("key of a schedule"),
        }
    }
}
