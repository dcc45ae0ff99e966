//! What a transaction was asked to read.

/// A read of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NotedRead {
    /// Of one key.
    Key(Vec<u8>),
    /// Of a range, see [`super::RangeQuery`].
    Range {
        /// Its first key.
        begin: Vec<u8>,
        /// The key after its last.
        end: Vec<u8>,
        /// Rows at most.
        limit: usize,
        /// From its end.
        reverse: bool,
    },
}
