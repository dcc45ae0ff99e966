//! What FoundationDB counts the parts of a commit for, in bytes.

/// What FoundationDB counts for a mutation or a conflict range besides its keys and value.
const OVERHEAD_BYTES: usize = 32;

/// What setting a key counts for in a commit, or an atomic operation with this operand: the key
/// counts once in the mutation and twice in the write conflict range.
pub(in crate::store) fn set_bytes(key: &[u8], value_bytes: usize) -> usize {
    3 * key.len() + value_bytes + OVERHEAD_BYTES
}

/// What clearing a key counts for in a commit.
pub(in crate::store) fn clear_bytes(key: &[u8]) -> usize {
    4 * key.len() + OVERHEAD_BYTES
}

/// What a conflict range counts for in a commit; clearing a range counts for two.
pub(in crate::store) fn conflict_bytes(begin: &[u8], end: &[u8]) -> usize {
    begin.len() + end.len() + OVERHEAD_BYTES
}
