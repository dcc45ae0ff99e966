//! Rules of FoundationDB that every store follows alike.

/// What [`Transaction::atomic_add`](super::Transaction::atomic_add) makes of a value: a missing
/// one, or the missing high bytes of a short one, count as 0; what is behind the eighth byte is
/// dropped; the sum wraps around.
pub(crate) fn added(value: Option<&[u8]>, delta: i64) -> [u8; 8] {
    let mut number = [0; 8];
    for (to, from) in number.iter_mut().zip(value.unwrap_or_default()) {
        *to = *from;
    }
    i64::from_le_bytes(number).wrapping_add(delta).to_le_bytes()
}

/// The first key behind `key` in the order of keys.
pub fn key_after(key: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    after
}
