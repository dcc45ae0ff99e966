//! Rules of FoundationDB that every store follows.

pub use quoin_base::key_after::key_after;

/// The result of [`Transaction::atomic_add`](super::Transaction::atomic_add). A missing value
/// counts as 0, and so do the missing high bytes of a short one. Bytes after the eighth are
/// dropped. The sum wraps around.
pub fn added(value: Option<&[u8]>, delta: i64) -> [u8; 8] {
    let mut number = [0; 8];
    for (to, from) in number.iter_mut().zip(value.unwrap_or_default()) {
        *to = *from;
    }
    i64::from_le_bytes(number).wrapping_add(delta).to_le_bytes()
}

/// The result of [`Transaction::atomic_min`](super::Transaction::atomic_min). A missing value
/// becomes the operand. The missing high bytes of a short one count as 0. Bytes after the eighth
/// are dropped.
pub fn lowered(value: Option<&[u8]>, operand: u64) -> [u8; 8] {
    let Some(value) = value else {
        return operand.to_le_bytes();
    };
    let mut number = [0; 8];
    for (to, from) in number.iter_mut().zip(value) {
        *to = *from;
    }
    u64::from_le_bytes(number).min(operand).to_le_bytes()
}

/// Bytes of the stamp that a commit puts into the keys of a log.
pub const STAMP_BYTES: usize = 10;

/// The key of a row of a log, see [`Transaction::append`](super::Transaction::append).
pub fn stamped_key(prefix: &[u8], stamp: &[u8; STAMP_BYTES], number: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + STAMP_BYTES + 2);
    key.extend_from_slice(prefix);
    key.extend_from_slice(stamp);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The stamp after that of a log's last row.
pub fn stamp_after(prefix: &[u8], last: Option<&[u8]>) -> [u8; STAMP_BYTES] {
    let mut stamp = [0; STAMP_BYTES];
    let rest = last.and_then(|key| key.strip_prefix(prefix));
    if let Some((before, _)) = rest.and_then(|rest| rest.split_first_chunk::<STAMP_BYTES>()) {
        stamp = *before;
    }
    for byte in stamp.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    stamp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_stamp_counts_on_over_the_ends_of_bytes() {
        let next = |stamp| stamp_after(b"p", Some(&stamped_key(b"p", &stamp, 7)));
        assert_eq!(stamp_after(b"p", None), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(
            next([0, 0, 0, 0, 0, 0, 0, 0, 1, 255]),
            [0, 0, 0, 0, 0, 0, 0, 0, 2, 0]
        );
    }
}
