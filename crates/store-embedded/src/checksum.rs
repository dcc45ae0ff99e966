//! The two checksums of each row in the data file: one of the key, and one of key and value. They
//! precede the value.
//!
//! LMDB has no checksums. Without them, a client would get a value in which a bit has flipped on
//! the disk or in memory. The key has its own checksum because a search depends on keys only, and
//! values may be long or damaged.

use std::path::Path;
use std::sync::Arc;

use quoin_base::log_throttle::LogThrottle;

/// Bytes that the two checksums add to a value.
pub(super) const CHECKSUM_BYTES: usize = 8;
/// Maximum bytes of a damaged row's key that are shown.
const SHOWN_KEY_BYTES: usize = 200;

/// How rows are stored in the data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// The value only. This is the format before checksums.
    Plain,
    /// The checksums, then the value.
    Checked,
}

/// A row's bytes differ from what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the row {key} in {file} is damaged: its bytes are not those that were written")]
pub struct DamagedRow {
    /// The row's key, escaped, and cut if it is long.
    pub key: String,
    /// The data file.
    pub file: String,
}

impl DamagedRow {
    fn new(key: &[u8], file: &Path) -> Self {
        Self {
            key: shown_key(key),
            file: file.display().to_string(),
        }
    }
}

/// A key as text.
pub(super) fn shown_key(key: &[u8]) -> String {
    match key.get(..SHOWN_KEY_BYTES) {
        Some(begin) => format!("{}…", begin.escape_ascii()),
        None => key.escape_ascii().to_string(),
    }
}

/// The checksums of a row. They also cover the key's length, so that a shifted boundary between key
/// and value is detected.
pub(super) fn checksums(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = hasher_of(key);
    let of_key = hasher.clone().finalize();
    hasher.update(value);
    (u64::from(hasher.finalize()) << 32 | u64::from(of_key)).to_le_bytes()
}

fn hasher_of(key: &[u8]) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher
}

/// The value of a stored row. `None` if the row is damaged.
pub(super) fn verified<'r>(key: &[u8], stored: &'r [u8]) -> Option<&'r [u8]> {
    let (found, value) = stored.split_first_chunk::<CHECKSUM_BYTES>()?;
    (*found == checksums(key, value)).then_some(value)
}

/// Whether a row's key is as it was written. The value is not checked.
pub(super) fn has_its_key(key: &[u8], stored: &[u8]) -> bool {
    let found = stored.first_chunk().copied().map(u32::from_le_bytes);
    found == Some(hasher_of(key).finalize())
}

/// Logs damaged rows, at most once a minute.
#[derive(Debug, Clone)]
pub(super) struct DamageLog {
    file: Arc<Path>,
    /// A file may have many damaged rows, and clients may read them repeatedly.
    throttle: Arc<LogThrottle>,
}

impl DamageLog {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.into(),
            throttle: Arc::default(),
        }
    }

    /// Logs a damaged row, and returns the error for it.
    pub(super) fn damaged(&self, key: &[u8]) -> heed::Error {
        let damaged = DamagedRow::new(key, &self.file);
        if let Some(more) = self.throttle.pass() {
            tracing::error!(
                "{damaged}; run `quoin doctor --deep` on the stopped server, and restore a backup{more}"
            );
        }
        heed::Error::Decoding(Box::new(damaged))
    }
}

/// The damaged row that an error reports, if any.
pub(super) fn damage_in(error: &heed::Error) -> Option<&DamagedRow> {
    match error {
        heed::Error::Decoding(cause) => cause.downcast_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(key: &[u8], value: &[u8]) -> Vec<u8> {
        [checksums(key, value).as_slice(), value].concat()
    }

    #[test]
    fn a_row_with_its_checksums_is_right() {
        for (key, value) in [(b"key".as_slice(), b"value".as_slice()), (b"k", b"")] {
            assert_eq!(verified(key, &stored(key, value)), Some(value));
            assert!(has_its_key(key, &stored(key, value)));
        }
    }

    #[test]
    fn each_flipped_bit_of_key_value_and_checksums_is_found() {
        let key = b"key".as_slice();
        let row = [key, &stored(key, b"value")].concat();
        for bit in 0..row.len() * 8 {
            let mut damaged = row.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (key, stored) = damaged.split_at(key.len());
            assert_eq!(verified(key, stored), None, "bit {bit}");
        }
    }

    #[test]
    fn a_flipped_bit_of_the_key_is_found_without_the_value() {
        let stored = stored(b"key", b"value");
        for bit in 0..24 {
            let mut key = *b"key";
            key[bit / 8] ^= 1 << (bit % 8);
            assert!(!has_its_key(&key, &stored), "bit {bit}");
        }
        let mut other_value = stored;
        other_value[CHECKSUM_BYTES] ^= 1;
        assert!(has_its_key(b"key", &other_value));
    }

    #[test]
    fn a_border_that_has_moved_and_bytes_that_are_missing_are_found() {
        let stored = stored(b"key", b"value");
        assert_eq!(verified(b"keyv", &stored[1..]), None);
        for length in 0..stored.len() {
            assert_eq!(verified(b"key", &stored[..length]), None);
        }
        assert!(!has_its_key(b"key", &stored[..3]));
        assert_eq!(verified(b"", &[0; CHECKSUM_BYTES]), None);
    }

    #[test]
    fn a_long_key_is_cut_where_it_is_shown() {
        let damaged = DamagedRow::new(&[0; 1900], Path::new("data.mdb"));
        assert_eq!(damaged.key.len(), SHOWN_KEY_BYTES * 4 + '…'.len_utf8());
    }
}
