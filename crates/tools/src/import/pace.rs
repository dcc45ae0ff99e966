//! How much to request at a time.
//!
//! A server keeps a reply in memory until it has been sent, and keeps all replies to commands that
//! were sent together. So the bytes requested together are bounded, as far as they are known: the
//! source reports the size of a value (MEMORY USAGE). If it does not, the last value is the
//! estimate for the next.

use quoin_base::limits::IMPORT_CHUNK_BYTES;

/// Small values in one request, of `IMPORT_CHUNK_BYTES` together.
const KEYS_AT_ONCE: usize = 100;
/// Maximum number of elements to copy with one command, if they have at most `IMPORT_CHUNK_BYTES`.
pub(super) const SMALL_ELEMENTS_MAX: i64 = 128;
/// Number of elements from which the source estimates the size of a value.
pub(super) const SIZE_SAMPLES: i64 = SMALL_ELEMENTS_MAX;
/// Elements in one command of an import.
pub(super) const CHUNK_ELEMENTS_MAX: i64 = 10_000;

/// Maximum growth from one request to the next.
const GROWTH: i64 = 4;

/// Number of elements of a large value to ask for first: at most `chunk_max`, and 1 if the size of the value
/// is unknown.
pub(super) fn first_size(count: i64, bytes: Option<u64>, chunk_max: i64) -> i64 {
    match (u64::try_from(count), bytes) {
        (Ok(count), Some(bytes)) => fitting_elements(count, bytes).min(chunk_max),
        _ => 1,
    }
}

/// Maximum number of elements to request later, after `first_size`. If the source has measured
/// every element, small elements at the head hide no large ones at the tail.
pub(super) fn size_max(count: i64, first_size: i64, bytes: Option<u64>, chunk_max: i64) -> i64 {
    if bytes.is_some() && count <= SIZE_SAMPLES {
        first_size
    } else {
        chunk_max
    }
}

/// Number of elements to ask for after a reply with `count` elements and `bytes` bytes to a request for
/// `size`.
pub(super) fn next_size(size: i64, count: u64, bytes: usize) -> i64 {
    fitting_elements(count, bytes as u64).min(size.saturating_mul(GROWTH))
}

fn fitting_elements(count: u64, bytes: u64) -> i64 {
    let fitting = (IMPORT_CHUNK_BYTES as u64)
        .saturating_mul(count)
        .checked_div(bytes)
        .unwrap_or(u64::MAX);
    i64::try_from(fitting).unwrap_or(i64::MAX).max(1)
}

/// How many small values to ask for together.
pub(super) struct Pace {
    /// Assumed size of a value whose size the source does not report.
    assumed_bytes: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            assumed_bytes: IMPORT_CHUNK_BYTES as u64,
        }
    }

    /// How many of the next values to request together, by their sizes as far as known. At least
    /// one.
    pub(super) fn values_at_once(&self, mut sizes: impl Iterator<Item = Option<u64>>) -> usize {
        let mut left_bytes = IMPORT_CHUNK_BYTES as u64;
        let mut fits = |bytes: Option<u64>| {
            let bytes = bytes.unwrap_or(self.assumed_bytes);
            left_bytes
                .checked_sub(bytes)
                .map(|left| left_bytes = left)
                .is_some()
        };
        let count = sizes
            .by_ref()
            .take(KEYS_AT_ONCE)
            .take_while(|bytes| fits(*bytes))
            .count();
        count.max(1)
    }

    /// Takes into account the size of the largest of the values that were requested together.
    pub(super) fn learn(&mut self, largest_bytes: usize) {
        let falling = self.assumed_bytes / GROWTH.unsigned_abs();
        self.assumed_bytes = falling.max(largest_bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = IMPORT_CHUNK_BYTES as u64;

    #[test]
    fn a_large_value_is_begun_with_as_many_elements_as_fit() {
        let first_size = |count, bytes| first_size(count, bytes, CHUNK_ELEMENTS_MAX);
        assert_eq!(first_size(128, Some(128 * CHUNK)), 1);
        assert_eq!(first_size(1_000, Some(10 * CHUNK)), 100);
        assert_eq!(first_size(1_000, Some(100 * CHUNK * CHUNK)), 1);
        assert_eq!(first_size(1_000_000, Some(0)), CHUNK_ELEMENTS_MAX);
        assert_eq!(first_size(1_000_000, None), 1);
    }

    #[test]
    fn a_value_of_which_each_element_is_known_is_not_asked_for_faster() {
        assert_eq!(size_max(SIZE_SAMPLES, 7, Some(1), 50), 7);
        assert_eq!(size_max(SIZE_SAMPLES + 1, 7, Some(1), 50), 50);
        assert_eq!(size_max(1, 1, None, 50), 50);
    }

    #[test]
    fn what_is_asked_for_grows_slowly_and_shrinks_at_once() {
        assert_eq!(next_size(1, 1, 10), 4);
        assert_eq!(next_size(400, 400, 40 * IMPORT_CHUNK_BYTES), 10);
        assert_eq!(next_size(8_000, 8_000, 1), 32_000);
    }

    #[test]
    fn values_of_known_sizes_are_asked_for_up_to_a_chunk() {
        let count = |sizes: &[u64]| {
            let sizes = sizes.iter().map(|bytes| Some(*bytes));
            Pace::new().values_at_once(sizes)
        };
        assert_eq!(count(&[CHUNK / 2, CHUNK / 2, 1]), 2);
        assert_eq!(count(&[CHUNK / 2, CHUNK, 1]), 1);
        assert_eq!(count(&[2 * CHUNK, 1]), 1);
        assert_eq!(count(&[1; 1_000]), KEYS_AT_ONCE);
    }

    #[test]
    fn values_of_unknown_sizes_are_asked_for_by_what_came_before() {
        let mut pace = Pace::new();
        let counts = [100, 100, 100, 100, 700_000, 100].map(|bytes| {
            let count = pace.values_at_once([None; 1_000].into_iter());
            pace.learn(bytes);
            count
        });
        assert_eq!(counts, [1, 4, 16, 64, 100, 1]);
    }
}
