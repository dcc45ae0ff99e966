//! How many bytes FoundationDB counts for the parts of a commit.

/// Bytes that FoundationDB adds for a mutation or a conflict range.
const OVERHEAD_BYTES: usize = 32;

/// Bytes of a set, or of an atomic operation. The key counts once in the mutation and twice in the
/// write conflict range.
pub fn set_bytes(key: &[u8], value_bytes: usize) -> usize {
    3 * key.len() + value_bytes + OVERHEAD_BYTES
}

/// Bytes of a clear of one key.
pub fn clear_bytes(key: &[u8]) -> usize {
    4 * key.len() + OVERHEAD_BYTES
}

/// Bytes of a conflict range. A clear of a range counts twice as much.
pub fn conflict_bytes(begin: &[u8], end: &[u8]) -> usize {
    begin.len() + end.len() + OVERHEAD_BYTES
}
