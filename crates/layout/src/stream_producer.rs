//! Producers of streams: which entries they have added with their own ids (XADD with IDMP), so that
//! each is added once.
//!
//! A producer numbers its entries. Its row says which numbers it remembers. Each of these has a
//! record under the producer's id of the entry, and a row under its number that names the record.
//! So a producer forgets its oldest entries first.
//!
//! A name of up to [`INLINE_BYTES_MAX`] bytes is in the key. For a longer one, the key has nil and
//! its digest. These names are never listed, so no row has the full name.

use bytes::Bytes;
use foundationdb_tuple::pack_into;

use super::name::{digest, hash48};
use super::{DecodeError, Id, KeyRange, Layout, Section, StreamId, corrupt, take};

/// Format byte of the rows of producers.
const FORMAT: u8 = 1;
/// Maximum length of a name that is in keys, in bytes.
const INLINE_BYTES_MAX: usize = 64;

/// Numbers of the rows of [`Section::StreamHead`].
const SETTINGS: u64 = 2;
const ADDED: u64 = 3;
const DUPLICATES: u64 = 4;

/// How long a stream remembers producers' entries, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerSettings {
    /// Seconds for which an entry is remembered.
    pub duration_s: u64,
    /// The most entries of a producer that are remembered.
    pub entries_max: u64,
}

impl ProducerSettings {
    /// The stored form: the format byte, then the tuple (seconds, entries).
    pub fn encode(self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(&(self.duration_s, self.entries_max), &mut value);
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let mut rest = content(value)?;
        let settings = Self {
            duration_s: take(&mut rest, "duration of a stream's producers")?,
            entries_max: take(&mut rest, "entries of a stream's producers")?,
        };
        end(rest, settings)
    }
}

/// Which entries a producer remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamProducer {
    /// The number of the oldest.
    pub first: u64,
    /// The number after the newest.
    pub next: u64,
    /// Milliseconds in the id of the oldest.
    pub first_ms: u64,
    /// Milliseconds in the id of the newest.
    pub last_ms: u64,
}

impl StreamProducer {
    /// How many entries it remembers.
    pub fn count(&self) -> u64 {
        self.next.saturating_sub(self.first)
    }

    /// The stored form: the format byte, then the tuple (first number, next number, first ms, last ms).
    pub fn encode(self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(
            &(self.first, self.next, self.first_ms, self.last_ms),
            &mut value,
        );
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = content(value)?;
        let producer = Self {
            first: take(&mut rest, "first number of a producer")?,
            next: take(&mut rest, "next number of a producer")?,
            first_ms: take(&mut rest, "time of a producer")?,
            last_ms: take(&mut rest, "time of a producer")?,
        };
        end(rest, producer)
    }
}

/// An entry that a producer has added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducedEntry {
    /// Its number within its producer.
    pub number: u64,
    /// Its id in the stream.
    pub id: StreamId,
}

impl ProducedEntry {
    /// The stored form: the format byte, then the tuple (number, ms, seq).
    pub fn encode(self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(&(self.number, self.id.ms, self.id.seq), &mut value);
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = content(value)?;
        let entry = Self {
            number: take(&mut rest, "number of a producer's entry")?,
            id: StreamId::take(&mut rest)?,
        };
        end(rest, entry)
    }
}

/// The stored form of the row under a number: the format byte, the tuple (ms) of the entry's id,
/// then what follows the producer in the key of the record.
pub fn encode_produced_order(ms: u64, entry: &ProducerName) -> Vec<u8> {
    let mut value = vec![FORMAT];
    pack_into(&(ms,), &mut value);
    value.extend_from_slice(&entry.0);
    value
}

/// Reads [`encode_produced_order`].
///
/// # Errors
/// If it is not one.
pub fn decode_produced_order(value: &[u8]) -> Result<(u64, ProducerName), DecodeError> {
    let mut rest = content(value)?;
    let ms = take(&mut rest, "time of a producer's entry")?;
    Ok((ms, ProducerName::read(rest)?))
}

fn content(value: &[u8]) -> Result<&[u8], DecodeError> {
    match value.split_first() {
        Some((&FORMAT, rest)) => Ok(rest),
        _ => corrupt("format of a stream's producer"),
    }
}

fn end<T>(rest: &[u8], row: T) -> Result<T, DecodeError> {
    match rest {
        [] => Ok(row),
        _ => corrupt("row of a stream's producer"),
    }
}

/// The id of a producer, or of one of its entries, in the form of keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProducerName(Vec<u8>);

impl ProducerName {
    /// The form of a producer's id that follows its hash. Background work uses the hash to choose
    /// where to begin.
    pub fn of_producer(id: &[u8]) -> Self {
        let mut key = Vec::new();
        pack_into(&(hash48(id),), &mut key);
        pack_name(id, &mut key);
        Self(key)
    }

    /// The form of the id of a producer's entry.
    pub fn of_entry(id: &[u8]) -> Self {
        let mut key = Vec::new();
        pack_name(id, &mut key);
        Self(key)
    }

    /// Takes the name of a producer off the front of the rest of a key.
    fn take_producer(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let whole = *rest;
        take::<u64>(rest, "hash of a producer")?;
        skip_name(rest)?;
        let bytes = whole.len() - rest.len();
        Ok(Self(whole.get(..bytes).unwrap_or_default().to_vec()))
    }

    /// Reads the name of an entry.
    fn read(name: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = name;
        skip_name(&mut rest)?;
        end(rest, Self(name.to_vec()))
    }
}

fn pack_name(name: &[u8], key: &mut Vec<u8>) {
    match name.len() <= INLINE_BYTES_MAX {
        true => pack_into(&(name,), key),
        false => pack_into(&(None::<&[u8]>, digest(name).as_slice()), key),
    };
}

fn skip_name(rest: &mut &[u8]) -> Result<(), DecodeError> {
    let name: Option<foundationdb_tuple::Bytes<'_>> = take(rest, "id of a producer")?;
    if name.is_none() {
        take::<foundationdb_tuple::Bytes<'_>>(rest, "digest of a producer's id")?;
    }
    Ok(())
}

impl Layout {
    /// Key of a stream's settings of producers.
    pub fn producer_settings_key(&self, data: Id) -> Vec<u8> {
        self.stream_state_key(data, SETTINGS)
    }

    /// Key of the counter of entries that producers have added.
    pub fn produced_key(&self, data: Id) -> Vec<u8> {
        self.stream_state_key(data, ADDED)
    }

    /// Key of the counter of entries that producers tried to add again.
    pub fn duplicates_key(&self, data: Id) -> Vec<u8> {
        self.stream_state_key(data, DUPLICATES)
    }

    /// Key of a producer.
    pub fn producer_key(&self, data: Id, producer: &ProducerName) -> Vec<u8> {
        self.of_producer(data, Section::StreamProducers, producer)
    }

    /// The producers of a stream with at least this hash.
    pub fn producers_from(&self, data: Id, hash: u64) -> KeyRange {
        let section = self.section_prefix(data, Section::StreamProducers);
        let mut begin = section.clone();
        pack_into(&(hash,), &mut begin);
        KeyRange {
            begin,
            end: KeyRange::children(&section).end,
        }
    }

    /// Reads the name of a producer from its key.
    ///
    /// # Errors
    /// If the key is not the key of a producer of `data`.
    pub fn read_producer_key(&self, data: Id, key: &[u8]) -> Result<ProducerName, DecodeError> {
        let mut rest = self.in_section(data, Section::StreamProducers, key)?;
        let name = ProducerName::take_producer(&mut rest)?;
        end(rest, name)
    }

    /// Key of the record of an entry that a producer has added.
    pub fn produced_entry_key(
        &self,
        data: Id,
        producer: &ProducerName,
        entry: &ProducerName,
    ) -> Vec<u8> {
        let mut key = self.of_producer(data, Section::StreamProduced, producer);
        key.extend_from_slice(&entry.0);
        key
    }

    /// Reads the producer and the entry from the key of a record.
    ///
    /// # Errors
    /// If the key is not the key of a record of `data`.
    pub fn read_produced_entry_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(ProducerName, ProducerName), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamProduced, key)?;
        let producer = ProducerName::take_producer(&mut rest)?;
        Ok((producer, ProducerName::read(rest)?))
    }

    /// Key of the row of a producer's entry under its number.
    pub fn produced_order_key(&self, data: Id, producer: &ProducerName, number: u64) -> Vec<u8> {
        let mut key = self.of_producer(data, Section::StreamProducedOrder, producer);
        pack_into(&(number,), &mut key);
        key
    }

    /// Reads the producer and the number from the key of such a row.
    ///
    /// # Errors
    /// If the key is not the key of such a row of `data`.
    pub fn read_produced_order_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(ProducerName, u64), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamProducedOrder, key)?;
        let producer = ProducerName::take_producer(&mut rest)?;
        let number = take(&mut rest, "number of a producer's entry")?;
        end(rest, (producer, number))
    }

    /// All records of a producer, and all its rows by number.
    pub fn producer_ranges(&self, data: Id, producer: &ProducerName) -> [KeyRange; 2] {
        let sections = [Section::StreamProduced, Section::StreamProducedOrder];
        sections.map(|section| KeyRange::children(&self.of_producer(data, section, producer)))
    }

    /// All rows of all producers of a stream, without its settings and counters.
    pub fn all_producers(&self, data: Id) -> [KeyRange; 3] {
        let sections = [
            Section::StreamProducers,
            Section::StreamProduced,
            Section::StreamProducedOrder,
        ];
        sections.map(|section| KeyRange::children(&self.section_prefix(data, section)))
    }

    fn of_producer(&self, data: Id, section: Section, producer: &ProducerName) -> Vec<u8> {
        let mut key = self.section_prefix(data, section);
        key.extend_from_slice(&producer.0);
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

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let short = proptest::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..5);
        let long = (50_usize..300).prop_map(|length| vec![b'x'; length]);
        prop_oneof![short, long]
    }

    proptest! {
        #[test]
        fn keys_are_read_as_they_were_written(one in name(), other in name(), number: u64) {
            let layout = Layout::new("test");
            let (producer, entry) =
                (ProducerName::of_producer(&one), ProducerName::of_entry(&other));
            let key = layout.producer_key(DATA, &producer);
            prop_assert_eq!(layout.read_producer_key(DATA, &key), Ok(producer.clone()));
            let all = layout.producers_from(DATA, 0);
            prop_assert!(all.begin <= key && key < all.end);
            let key = layout.produced_entry_key(DATA, &producer, &entry);
            let read = layout.read_produced_entry_key(DATA, &key);
            prop_assert_eq!(read, Ok((producer.clone(), entry)));
            let [records, orders] = layout.producer_ranges(DATA, &producer);
            prop_assert!(records.begin <= key && key < records.end);
            let key = layout.produced_order_key(DATA, &producer, number);
            prop_assert!(orders.begin <= key && key < orders.end);
            let read = layout.read_produced_order_key(DATA, &key);
            prop_assert_eq!(read, Ok((producer, number)));
        }

        #[test]
        fn names_that_differ_have_keys_that_differ(one in name(), other in name()) {
            let same = ProducerName::of_producer(&one) == ProducerName::of_producer(&other);
            prop_assert_eq!(same, one == other);
            let same = ProducerName::of_entry(&one) == ProducerName::of_entry(&other);
            prop_assert_eq!(same, one == other);
        }

        #[test]
        fn rows_are_read_as_they_were_written(a: u64, b: u64, c: u64, d: u64, entry in name()) {
            let settings = ProducerSettings { duration_s: a, entries_max: b };
            let stored = Bytes::from(settings.encode());
            prop_assert_eq!(ProducerSettings::decode(&stored), Ok(settings));
            let producer = StreamProducer { first: a, next: b, first_ms: c, last_ms: d };
            prop_assert_eq!(StreamProducer::decode(&producer.encode()), Ok(producer));
            let produced = ProducedEntry { number: a, id: StreamId { ms: b, seq: c } };
            prop_assert_eq!(ProducedEntry::decode(&produced.encode()), Ok(produced));
            let name = ProducerName::of_entry(&entry);
            let stored = encode_produced_order(d, &name);
            prop_assert_eq!(decode_produced_order(&stored), Ok((d, name)));
        }

        #[test]
        fn whatever_the_bytes_reading_does_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let layout = Layout::new("test");
            let _ = ProducerSettings::decode(&Bytes::from(bytes.clone()));
            let _ = StreamProducer::decode(&bytes);
            let _ = ProducedEntry::decode(&bytes);
            let _ = decode_produced_order(&bytes);
            let mut key = layout.section_prefix(DATA, Section::StreamProduced);
            key.extend_from_slice(&bytes);
            let _ = layout.read_produced_entry_key(DATA, &key);
        }
    }
}
