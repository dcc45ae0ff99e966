//! Limits of the representations that Redis 7.2 has by default. OBJECT ENCODING answers by them, and HSCAN, SSCAN and
//! ZSCAN answer a compact value whole.
//!
//! Redis keeps a large representation when the value shrinks again. Here only the value counts.

use bytes::Bytes;

/// Members of a listpack (`set-max-listpack-entries`, `zset-max-listpack-entries`).
pub(crate) const LISTPACK_MEMBERS_MAX: usize = 128;
/// Bytes of its longest element (`set-max-listpack-value` and its kin).
const LISTPACK_VALUE_BYTES_MAX: usize = 64;

/// Whether a listpack takes an element.
pub(crate) fn is_short(value: &Bytes) -> bool {
    value.len() <= LISTPACK_VALUE_BYTES_MAX
}
