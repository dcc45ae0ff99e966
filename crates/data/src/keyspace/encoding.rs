//! Limits of Redis 7.2's default representations. OBJECT ENCODING uses them, and HSCAN, SSCAN and ZSCAN return a
//! compact value whole.
//!
//! Redis keeps a large representation when the value shrinks again. Here only the current value counts.

use bytes::Bytes;

/// Most members of a listpack (`set-max-listpack-entries`, `zset-max-listpack-entries`).
pub(crate) const LISTPACK_MEMBERS_MAX: usize = 128;
/// Most bytes of its longest element (`set-max-listpack-value` and similar options).
const LISTPACK_VALUE_BYTES_MAX: usize = 64;

/// Whether an element fits into a listpack.
pub(crate) fn is_short(value: &Bytes) -> bool {
    value.len() <= LISTPACK_VALUE_BYTES_MAX
}
