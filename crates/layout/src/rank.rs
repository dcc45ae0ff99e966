//! The counts of blocks of elements, which are used to find ranks.
//!
//! A *place* is what follows the section's prefix in the key of a row of elements, or the first
//! bytes of that: any bytes that sort like keys.

use bytes::Bytes;
use foundationdb_tuple::pack_into;

use super::{DecodeError, Id, KeyRange, Layout, Section, corrupt, take};

/// The end of a block whose last row is `before` and whose next row is `after`: the fewest bytes of
/// `after` that sort after `before`.
pub fn place_between(before: &[u8], after: &[u8]) -> Vec<u8> {
    let common = before
        .iter()
        .zip(after)
        .take_while(|(one, other)| one == other);
    let bytes = common.count() + 1;
    after.iter().take(bytes).copied().collect()
}

impl Layout {
    fn rank_key(&self, data: Id, section: Section, level: u8, place: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, section);
        pack_into(&(u64::from(level),), &mut key);
        key.extend_from_slice(place);
        key
    }

    /// Key of the count of the block of a level that ends at a place.
    pub fn rank_count_key(&self, data: Id, level: u8, place: &[u8]) -> Vec<u8> {
        self.rank_key(data, Section::RankCounts, level, place)
    }

    /// Key of the row that exists while a block of a level ends at a place.
    pub fn rank_mark_key(&self, data: Id, level: u8, place: &[u8]) -> Vec<u8> {
        self.rank_key(data, Section::RankMarks, level, place)
    }

    /// The counts of all blocks of a level, in the order of the blocks.
    pub fn rank_counts(&self, data: Id, level: u8) -> KeyRange {
        KeyRange::children(&self.rank_count_key(data, level, b""))
    }

    /// The marks of all blocks of a level.
    pub fn rank_marks(&self, data: Id, level: u8) -> KeyRange {
        KeyRange::children(&self.rank_mark_key(data, level, b""))
    }

    /// Beginning of the rows of a section from a place on. An empty place comes before all rows.
    pub fn rows_from(&self, data: Id, section: Section, place: &[u8]) -> Vec<u8> {
        let prefix = self.section_prefix(data, section);
        match place {
            [] => KeyRange::children(&prefix).begin,
            place => [&prefix, place].concat(),
        }
    }

    /// The level of the block whose count has this key, and the place where it ends.
    ///
    /// # Errors
    /// If the key is not the key of a count.
    pub fn read_rank_count_key(&self, data: Id, key: &Bytes) -> Result<(u8, Bytes), DecodeError> {
        self.read_rank_key(data, Section::RankCounts, key)
    }

    /// The same of the mark that has this key.
    ///
    /// # Errors
    /// If the key is not the key of a mark.
    pub fn read_rank_mark_key(&self, data: Id, key: &Bytes) -> Result<(u8, Bytes), DecodeError> {
        self.read_rank_key(data, Section::RankMarks, key)
    }

    fn read_rank_key(
        &self,
        data: Id,
        section: Section,
        key: &Bytes,
    ) -> Result<(u8, Bytes), DecodeError> {
        let prefix = self.section_prefix(data, section);
        let Some(mut rest) = key.strip_prefix(prefix.as_slice()) else {
            return corrupt("key of a block");
        };
        let level: u64 = take(&mut rest, "level of a block")?;
        match u8::try_from(level) {
            Ok(level) => Ok((level, key.slice_ref(rest))),
            Err(_) => corrupt("level of a block"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_base::random::{Random, SeededRandom};

    #[test]
    fn a_place_is_after_one_row_and_not_after_the_other() {
        let random = SeededRandom::new(7);
        for _ in 0..10_000 {
            let mut rows: Vec<Vec<u8>> = (0..2)
                .map(|_| {
                    (0..1 + random.below(6))
                        .map(|_| random.below(3) as u8)
                        .collect()
                })
                .collect();
            rows.sort();
            let [before, after] = rows.as_slice() else {
                unreachable!("two rows");
            };
            if before == after {
                continue;
            }
            let place = place_between(before, after);
            assert!(before < &place && &place <= after, "{before:?} {after:?}");
        }
    }

    #[test]
    fn keys_tell_their_level_and_place() {
        let layout = Layout::new("test");
        let data = Id {
            instance: 1,
            sequence: 300,
        };
        let key = Bytes::from(layout.rank_count_key(data, 2, b"\x21\x80a"));
        let read = layout.read_rank_count_key(data, &key).unwrap();
        assert_eq!(read, (2, Bytes::from_static(b"\x21\x80a")));
        let range = layout.rank_counts(data, 2);
        assert!(range.begin[..] < key[..] && key[..] < range.end[..]);
        let mark = Bytes::from(layout.rank_mark_key(data, 2, b"\x21"));
        assert!(layout.read_rank_count_key(data, &mark).is_err());
        let read = layout.read_rank_mark_key(data, &mark).unwrap();
        assert_eq!(read, (2, Bytes::from_static(b"\x21")));
    }
}
