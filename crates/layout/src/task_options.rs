//! What clients have set for a whole task queue, as stored in its registry.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{DecodeError, corrupt, numbered, take};

numbered! {
    /// A numeric option of a task queue. 0 is its default.
    pub enum TaskNumber {
        /// How often a task may be taken with a lease; 0 is without limit.
        TriesMax = 2,
        /// Milliseconds until a task that was given back is ready again.
        BackoffMs = 3,
        /// They double with each try, up to this; 0 if they do not.
        BackoffMaxMs = 4,
        /// Up to this percentage of them is skipped at random.
        JitterPercent = 5,
        /// Milliseconds of a lease; 0 takes a task for good.
        LeaseMs = 6,
        /// Milliseconds until a task that was not taken is too old. 0 means never.
        TtlMs = 7,
        /// The most tasks that are not dead; 0 is without limit.
        LengthMax = 8,
        /// If there are more, whether the oldest task is dropped. Otherwise the new one is refused.
        DropsOldest = 9,
        /// The most tasks that consumers get within a time; 0 is without limit.
        RateMax = 11,
        /// That time in milliseconds.
        RatePeriodMs = 12,
        /// The most tasks under lease; 0 is without limit.
        LeasesMax = 13,
        /// The most tasks of each group under lease; 0 is without limit.
        GroupLeasesMax = 14,
    }
}

/// What clients have set for a whole task queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskOptions {
    /// Whether consumers get nothing.
    pub is_paused: bool,
    /// The numbers that are not 0, in the order of their kinds.
    numbers: Vec<(TaskNumber, i64)>,
    /// The name of the queue for dead tasks.
    pub dead_letter: Option<Bytes>,
}

impl TaskOptions {
    const PAUSED: u64 = 1;
    const DEAD_LETTER: u64 = 10;

    /// Whether clients have set nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A number.
    pub fn number(&self, number: TaskNumber) -> i64 {
        let found = self.numbers.iter().find(|(known, _)| *known == number);
        found.map_or(0, |(_, value)| *value)
    }

    /// The numbers that are not 0.
    pub fn numbers(&self) -> &[(TaskNumber, i64)] {
        &self.numbers
    }

    /// Sets a number.
    pub fn set_number(&mut self, number: TaskNumber, value: i64) {
        self.numbers.retain(|(known, _)| *known != number);
        if value != 0 {
            self.numbers.push((number, value));
            self.numbers.sort_by_key(|(known, _)| *known as u64);
        }
    }

    /// Appends the number of options, then each with its kind.
    pub(super) fn pack_into(&self, value: &mut Vec<u8>) {
        let others = usize::from(self.is_paused) + usize::from(self.dead_letter.is_some());
        pack_into(&((self.numbers.len() + others) as u64,), value);
        if self.is_paused {
            pack_into(&(Self::PAUSED,), value);
        }
        for (number, set) in &self.numbers {
            pack_into(&(*number as u64, *set), value);
        }
        if let Some(name) = &self.dead_letter {
            pack_into(&(Self::DEAD_LETTER, name.as_ref()), value);
        }
    }

    pub(super) fn take(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut options = Self::default();
        let count: u64 = take(rest, "options of a task queue")?;
        for _ in 0..count {
            let kind: u64 = take(rest, "option of a task queue")?;
            match kind {
                Self::PAUSED => options.is_paused = true,
                Self::DEAD_LETTER => {
                    let name: TupleBytes<'_> = take(rest, "option of a task queue")?;
                    options.dead_letter = Some(Bytes::from(name.into_owned()));
                }
                kind => {
                    let Some(number) = TaskNumber::from_number(kind) else {
                        return corrupt("kind of a task queue's option");
                    };
                    options.set_number(number, take(rest, "option of a task queue")?);
                }
            }
        }
        Ok(options)
    }
}
