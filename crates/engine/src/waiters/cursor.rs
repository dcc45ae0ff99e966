//! Where a wake-up continues in a key's queue.

/// Where a wake-up continues in a key's queue. A batch runs the commands of a bounded number of
/// waiters, and the next batch continues after them.
///
/// A wake-up always continues to the end of the queue, even if more data arrives meanwhile.
/// Otherwise the youngest waiters might never get their turn. New data is for all waiters, so the
/// wake-up then restarts at the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The position of the first waiter to wake.
    pub(crate) from: u64,
    /// Whether the wake-up restarts at the oldest waiter when it has reached the end.
    pub(crate) restarts: bool,
}

impl Cursor {
    /// At the oldest waiter.
    pub(crate) const START: Cursor = Cursor {
        from: 0,
        restarts: false,
    };

    /// The same wake-up, continuing at the position `from`.
    pub(crate) fn at(self, from: u64) -> Self {
        Self { from, ..self }
    }

    /// Joins two wake-ups into one that replaces both. It continues at the later position, and restarts if the other
    /// was at a different position.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            restarts: self.restarts || other.restarts || self.from != other.from,
        }
    }
}
