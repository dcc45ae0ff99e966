//! Where a look at a key's waiters goes on.

/// Where a look at a key's waiters goes on. A batch runs the commands of so many waiters and no more,
/// and the next batch goes on after them.
///
/// A look always goes on to the end, however often something comes into the key meanwhile: otherwise
/// the youngest waiters might never have their turn. What has come is for all of them, so the look
/// then restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The place of the first waiter to look at.
    pub(in crate::executor) from: u64,
    /// After the end it restarts.
    pub(in crate::executor) restarts: bool,
}

impl Cursor {
    /// At the oldest waiter.
    pub(in crate::executor) const START: Cursor = Cursor {
        from: 0,
        restarts: false,
    };

    /// The same look, at the place `from`.
    pub(in crate::executor) fn at(self, from: u64) -> Self {
        Self { from, ..self }
    }

    /// One look that does for both.
    pub(in crate::executor) fn joined(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            restarts: self.restarts || other.restarts || self.from != other.from,
        }
    }
}
