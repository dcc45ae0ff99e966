//! Streams: entries by their ids, and what a stream stores about itself. Rows of consumer groups
//! are in [`stream_group`](super::stream_group).
//!
//! The row of an entry has the form of [`StoredValue`](super::StoredValue). Its content is pairs of
//! name and value, each after its length: one byte below 254, or the byte 254 and 2 bytes, or the
//! byte 255 and 4 bytes, big-endian. Other format bytes of the row are unused, for example for a
//! run of entries.

use std::fmt;

use bytes::{BufMut, Bytes};
use foundationdb_tuple::pack_into;

use super::{DecodeError, Id, KeyRange, Layout, Section, corrupt, successor, take};

/// Format byte of a head and of a greatest deleted id.
const FORMAT: u8 = 1;
/// The first byte of a length that has two more.
const LENGTH_OF_2_BYTES: u8 = 254;
/// The first byte of a length that has four more.
const LENGTH_OF_4_BYTES: u8 = 255;

/// Numbers of the rows of [`Section::StreamHead`].
const HEAD: u64 = 0;
const DELETED: u64 = 1;

/// The id of an entry: Redis's `<ms>-<seq>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamId {
    /// Milliseconds since the Unix epoch, if the server chose it.
    pub ms: u64,
    /// Distinguishes entries of one millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The least id, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The greatest id.
    pub const MAX: Self = Self {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The id after this one. `None` after the greatest.
    pub fn next(self) -> Option<Self> {
        match (self.ms, self.seq.checked_add(1)) {
            (ms, Some(seq)) => Some(Self { ms, seq }),
            (ms, None) => ms.checked_add(1).map(|ms| Self { ms, seq: 0 }),
        }
    }

    /// The id before this one. `None` before the least.
    pub fn previous(self) -> Option<Self> {
        match (self.ms, self.seq.checked_sub(1)) {
            (ms, Some(seq)) => Some(Self { ms, seq }),
            (ms, None) => ms.checked_sub(1).map(|ms| Self { ms, seq: u64::MAX }),
        }
    }

    fn put(self, to: &mut Vec<u8>) {
        to.put_u64(self.ms);
        to.put_u64(self.seq);
    }

    /// Takes an id that [`Self::put`] has written from the front.
    fn take_fixed(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            ms: take_u64(from)?,
            seq: take_u64(from)?,
        })
    }

    /// Appends the tuple elements of the id.
    pub(super) fn pack_into(self, key: &mut Vec<u8>) {
        pack_into(&(self.ms, self.seq), key);
    }

    /// Takes the tuple elements of an id off the front of the rest of a key.
    pub(super) fn take(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            ms: take(rest, "milliseconds of a stream's id")?,
            seq: take(rest, "sequence of a stream's id")?,
        })
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{}", self.ms, self.seq)
    }
}

fn take_u64(from: &mut &[u8]) -> Result<u64, DecodeError> {
    match from.split_first_chunk::<8>() {
        Some((number, rest)) => {
            *from = rest;
            Ok(u64::from_be_bytes(*number))
        }
        None => corrupt("number of a stream"),
    }
}

/// The part that every added entry changes. Each XADD reads and writes it, so that ids grow in the
/// order of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamHead {
    /// The id that was given last, or that XSETID has set.
    pub last: StreamId,
    /// How many entries were ever added, including removed ones.
    pub added: u64,
}

impl StreamHead {
    /// The stored form: the format byte, then three numbers of 8 bytes, big-endian.
    pub fn encode(self) -> Vec<u8> {
        let mut value = Vec::with_capacity(25);
        value.push(FORMAT);
        self.last.put(&mut value);
        value.put_u64(self.added);
        value
    }

    /// Reads the stored form. A stream without it has never had an entry.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: Option<&Bytes>) -> Result<Self, DecodeError> {
        let Some(value) = value else {
            return Ok(Self::default());
        };
        let Some((&FORMAT, mut rest)) = value.split_first() else {
            return corrupt("format of a stream's head");
        };
        let head = Self {
            last: StreamId::take_fixed(&mut rest)?,
            added: take_u64(&mut rest)?,
        };
        match rest {
            [] => Ok(head),
            _ => corrupt("head of a stream"),
        }
    }
}

/// The stored form of the greatest id that XDEL has deleted: the format byte, then two numbers of
/// 8 bytes, big-endian.
pub fn encode_stream_deleted(id: StreamId) -> Vec<u8> {
    let mut value = Vec::with_capacity(17);
    value.push(FORMAT);
    id.put(&mut value);
    value
}

/// Reads the greatest deleted id. A stream without it has had no deletions.
///
/// # Errors
/// If it is not one.
pub fn decode_stream_deleted(value: Option<&Bytes>) -> Result<StreamId, DecodeError> {
    let Some(value) = value else {
        return Ok(StreamId::MIN);
    };
    let Some((&FORMAT, mut rest)) = value.split_first() else {
        return corrupt("format of a stream's greatest deleted id");
    };
    let id = StreamId::take_fixed(&mut rest)?;
    match rest {
        [] => Ok(id),
        _ => corrupt("greatest deleted id of a stream"),
    }
}

/// The content of the row of an entry: pairs of name and value.
pub fn encode_stream_fields(fields: &[Bytes]) -> Vec<u8> {
    let bytes = fields.iter().map(|part| part.len() + 5).sum();
    let mut content = Vec::with_capacity(bytes);
    for part in fields {
        match (u8::try_from(part.len()), u16::try_from(part.len())) {
            (Ok(length), _) if length < LENGTH_OF_2_BYTES => content.push(length),
            (_, Ok(length)) => {
                content.push(LENGTH_OF_2_BYTES);
                content.put_u16(length);
            }
            _ => {
                content.push(LENGTH_OF_4_BYTES);
                // A bulk argument has at most 2^29 bytes.
                content.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
            }
        }
        content.extend_from_slice(part);
    }
    content
}

/// Reads [`encode_stream_fields`].
///
/// # Errors
/// If the content is invalid.
pub fn decode_stream_fields(content: &Bytes) -> Result<Vec<Bytes>, DecodeError> {
    let mut fields = Vec::new();
    let mut rest: &[u8] = content;
    while !rest.is_empty() {
        let (length, after) = match rest {
            [LENGTH_OF_4_BYTES, a, b, c, d, after @ ..] => {
                (u32::from_be_bytes([*a, *b, *c, *d]) as usize, after)
            }
            [LENGTH_OF_2_BYTES, a, b, after @ ..] => {
                (usize::from(u16::from_be_bytes([*a, *b])), after)
            }
            [LENGTH_OF_4_BYTES | LENGTH_OF_2_BYTES, ..] | [] => return corrupt("stream entry"),
            [length, after @ ..] => (usize::from(*length), after),
        };
        let Some((part, after)) = after.split_at_checked(length) else {
            return corrupt("stream entry");
        };
        fields.push(content.slice_ref(part));
        rest = after;
    }
    match fields.len() % 2 {
        0 => Ok(fields),
        _ => corrupt("stream entry with a name without a value"),
    }
}

/// Reads the id of an entry from its key, which begins with `prefix`.
///
/// # Errors
/// If the key is not the key of such an entry.
pub fn read_stream_entry_key(prefix: &[u8], key: &[u8]) -> Result<StreamId, DecodeError> {
    match key.strip_prefix(prefix) {
        Some(mut rest) => StreamId::take(&mut rest),
        None => corrupt("key of a stream's entry"),
    }
}

impl Layout {
    /// Key of an entry.
    pub fn stream_entry_key(&self, data: Id, id: StreamId) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::StreamEntries);
        id.pack_into(&mut key);
        key
    }

    /// The entries with ids from `begin` to `end`, both included.
    pub fn stream_entries(&self, data: Id, begin: StreamId, end: StreamId) -> KeyRange {
        KeyRange {
            begin: self.stream_entry_key(data, begin),
            end: successor(&self.stream_entry_key(data, end)),
        }
    }

    /// Reads the id of an entry.
    ///
    /// # Errors
    /// If the key is not the key of an entry of `data`.
    pub fn read_stream_entry_key(&self, data: Id, key: &[u8]) -> Result<StreamId, DecodeError> {
        read_stream_entry_key(&self.stream_entries_prefix(data), key)
    }

    /// Prefix of the keys of entries, for [`read_stream_entry_key`].
    pub fn stream_entries_prefix(&self, data: Id) -> Vec<u8> {
        self.section_prefix(data, Section::StreamEntries)
    }

    /// Key of a stream's head.
    pub fn stream_head_key(&self, data: Id) -> Vec<u8> {
        self.stream_state_key(data, HEAD)
    }

    /// Key of the greatest id that XDEL has deleted.
    pub fn stream_deleted_key(&self, data: Id) -> Vec<u8> {
        self.stream_state_key(data, DELETED)
    }

    pub(super) fn stream_state_key(&self, data: Id, number: u64) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::StreamHead);
        pack_into(&(number,), &mut key);
        key
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DATA: Id = Id {
        instance: 1,
        sequence: 300,
    };

    fn id() -> impl Strategy<Value = StreamId> {
        let number = prop_oneof![0..3_u64, Just(u64::MAX), any::<u64>()];
        (number.clone(), number).prop_map(|(ms, seq)| StreamId { ms, seq })
    }

    proptest! {
        #[test]
        fn fields_are_read_as_they_were_written(
            pairs in proptest::collection::vec((0_usize..700, any::<u8>()), 0..10),
        ) {
            let part = |(length, byte): &(usize, u8)| Bytes::from(vec![*byte; *length]);
            let fields: Vec<Bytes> = pairs.iter().chain(&pairs).map(part).collect();
            let content = Bytes::from(encode_stream_fields(&fields));
            prop_assert_eq!(decode_stream_fields(&content).unwrap(), fields);
        }

        #[test]
        fn entries_lie_in_the_order_of_their_ids(one in id(), other in id()) {
            let layout = Layout::new("test");
            let (key, other_key) =
                (layout.stream_entry_key(DATA, one), layout.stream_entry_key(DATA, other));
            prop_assert_eq!(one.cmp(&other), key.cmp(&other_key));
            prop_assert_eq!(layout.read_stream_entry_key(DATA, &key), Ok(one));
            let range = layout.stream_entries(DATA, StreamId::MIN, other);
            prop_assert_eq!(range.begin <= key && key < range.end, one <= other);
        }

        #[test]
        fn heads_are_read_as_they_were_written(last in id(), added: u64) {
            let head = StreamHead { last, added };
            prop_assert_eq!(StreamHead::decode(Some(&head.encode().into())), Ok(head));
            let deleted = Bytes::from(encode_stream_deleted(last));
            prop_assert_eq!(decode_stream_deleted(Some(&deleted)), Ok(last));
        }

        #[test]
        fn whatever_the_bytes_reading_does_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let bytes = Bytes::from(bytes);
            let _ = StreamHead::decode(Some(&bytes));
            let _ = decode_stream_deleted(Some(&bytes));
            if let Ok(fields) = decode_stream_fields(&bytes) {
                let again = Bytes::from(encode_stream_fields(&fields));
                prop_assert_eq!(decode_stream_fields(&again).unwrap(), fields);
            }
        }

        #[test]
        fn an_id_is_between_its_neighbours(one in id()) {
            match one.next() {
                Some(next) => prop_assert!(next > one && next.previous() == Some(one)),
                None => prop_assert_eq!(one, StreamId::MAX),
            }
            match one.previous() {
                Some(previous) => prop_assert!(previous < one && previous.next() == Some(one)),
                None => prop_assert_eq!(one, StreamId::MIN),
            }
        }
    }

    #[test]
    fn long_fields_have_long_lengths() {
        for length in [253, 254, 255, 256, 65_535, 65_536] {
            let fields = vec![Bytes::new(), Bytes::from(vec![b'x'; length])];
            let content = Bytes::from(encode_stream_fields(&fields));
            assert_eq!(decode_stream_fields(&content).unwrap(), fields);
        }
    }
}
