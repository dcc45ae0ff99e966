//! Idempotent producers (XADD with IDMP and IDMPAUTO, XCFGSET; Redis 8.6). If a producer adds an
//! entry again because it has not seen the reply, the entry is added once.
//!
//! The transaction that adds an entry also remembers the producer's id of it. The stream has
//! settings for how long, and for how many entries of a producer, this is remembered. The oldest id
//! is forgotten first, and an id that is too old counts as forgotten immediately. Its rows are
//! removed when the producer adds another entry. When all ids of a producer are too old, background
//! work removes them, for which a timer is set.

use bytes::Bytes;
use futures_util::future::try_join3;

use quoin_base::limits::{PRODUCED_FORGOTTEN_AT_ONCE, PRODUCERS_PER_PASS};
use quoin_layout::stream_producer::{decode_produced_order, encode_produced_order};
use quoin_layout::{
    KeyRange, ProducedEntry, ProducerName, ProducerSettings, StreamId, StreamProducer,
    decode_counter, successor,
};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::append::NewId;
use super::{Stream, StreamMut};
use crate::error::CommandError;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

/// Milliseconds until background work continues with a stream that has more producers than a pass
/// examines.
const NEXT_PASS_MS: i64 = 1_000;
/// Bits of the hash in the key of a producer.
const HASH_BITS: u32 = quoin_layout::name::HASH_BITS;

/// The outcome of adding a producer's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Produced {
    /// It was added.
    Added(StreamId),
    /// It was added before.
    Duplicate(StreamId),
}

/// What XINFO STREAM shows about producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerFacts {
    /// The stream's settings.
    pub settings: ProducerSettings,
    /// Number of producers with remembered entries.
    pub producers: u64,
    /// Entries that are remembered.
    pub entries: u64,
    /// Entries that producers have ever added.
    pub added: i64,
    /// How often a producer added an entry again.
    pub duplicates: i64,
}

/// When background work should check a stream's producers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProducerWork {
    /// Some can be removed now.
    pub is_due: bool,
    /// When to check again.
    pub next_ms: Option<i64>,
}

/// The latest milliseconds in an id that are forgotten by now.
fn forgotten_ms(context: &ReadContext<'_>, settings: ProducerSettings) -> u64 {
    let duration_ms = duration_ms(settings);
    u64::try_from(context.now_ms.saturating_sub(duration_ms)).unwrap_or(0)
}

fn duration_ms(settings: ProducerSettings) -> i64 {
    i64::try_from(settings.duration_s.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// When an entry of this time can be removed.
fn due_ms(settings: ProducerSettings, ms: u64) -> i64 {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    ms.saturating_add(duration_ms(settings))
}

impl Stream<'_, '_> {
    /// How long the stream remembers producers' entries, and how many.
    async fn producer_settings(&self) -> Result<ProducerSettings, StoreError> {
        let row = self.context.layout().producer_settings_key(self.key.data());
        let row = self.context.transaction.get(&row, self.context.isolation);
        self.settings_of(row.await?)
    }

    /// The settings in a row. A stream without the row has the server's settings.
    fn settings_of(&self, row: Option<Bytes>) -> Result<ProducerSettings, StoreError> {
        Ok(match row {
            Some(row) => ProducerSettings::decode(&row)?,
            None => self.context.environment.producer_settings(),
        })
    }

    /// Facts about the stream's producers. `None` if it never had producers or settings for them.
    pub async fn producer_facts(&self) -> Result<Option<ProducerFacts>, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let layout = context.layout();
        let read =
            |row: Vec<u8>| async move { context.transaction.get(&row, context.isolation).await };
        let rows = try_join3(
            read(layout.producer_settings_key(data)),
            read(layout.produced_key(data)),
            read(layout.duplicates_key(data)),
        );
        let (settings, added, duplicates) = rows.await?;
        if settings.is_none() && added.is_none() {
            return Ok(None);
        }
        let settings = self.settings_of(settings)?;
        let forgotten_ms = forgotten_ms(context, settings);
        let (mut producers, mut entries) = (0, 0);
        let mut pages = Pages::new(context, layout.producers_from(data, 0), false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let producer = StreamProducer::decode(&row.value)?;
                if producer.last_ms <= forgotten_ms {
                    continue;
                }
                producers += 1;
                entries += match producer.first_ms > forgotten_ms {
                    true => producer.count(),
                    false => {
                        let name = layout.read_producer_key(data, &row.key)?;
                        self.count_remembered(&name, forgotten_ms).await?
                    }
                };
            }
        }
        Ok(Some(ProducerFacts {
            settings,
            producers,
            entries,
            added: decode_counter(added.as_ref())?,
            duplicates: decode_counter(duplicates.as_ref())?,
        }))
    }

    async fn count_remembered(
        &self,
        producer: &ProducerName,
        forgotten_ms: u64,
    ) -> Result<u64, StoreError> {
        let [_, rows] = (self.context.layout()).producer_ranges(self.key.data(), producer);
        let mut pages = Pages::new(self.context, rows, false, 0);
        let mut count = 0;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (ms, _) = decode_produced_order(&row.value)?;
                count += u64::from(ms > forgotten_ms);
            }
        }
        Ok(count)
    }

    /// When background work should check the stream's producers, estimated from some of them.
    /// Causes no conflicts.
    pub async fn producer_work(&self) -> Result<ProducerWork, StoreError> {
        let view = self.context.relaxed_view();
        let stream = Stream::open(&view, self.key);
        let (forgotten, next_ms) = stream.check_producers().await?;
        Ok(ProducerWork {
            is_due: !forgotten.is_empty(),
            next_ms,
        })
    }

    /// Some producers whose entries are all forgotten, and when to check again once these are
    /// removed. Examines up to [`PRODUCERS_PER_PASS`] producers, starting at a random one.
    async fn check_producers(&self) -> Result<(Vec<KeyValue>, Option<i64>), StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let hash = self.context.environment.random.next_u64() >> (u64::BITS - HASH_BITS);
        let from_hash = layout.producers_from(data, hash);
        let before_hash = KeyRange {
            begin: layout.producers_from(data, 0).begin,
            end: from_hash.begin.clone(),
        };
        let mut rows = self.first_rows(&from_hash, PRODUCERS_PER_PASS).await?;
        let left = PRODUCERS_PER_PASS - rows.len().min(PRODUCERS_PER_PASS);
        if left > 0 {
            rows.extend(self.first_rows(&before_hash, left).await?);
        }
        if rows.is_empty() {
            return Ok((rows, None));
        }
        let settings = self.producer_settings().await?;
        let forgotten_ms = forgotten_ms(self.context, settings);
        let mut next_ms = match rows.len() < PRODUCERS_PER_PASS {
            true => None,
            false => Some(self.context.now_ms.saturating_add(NEXT_PASS_MS)),
        };
        let mut forgotten = Vec::new();
        for row in rows {
            let last_ms = StreamProducer::decode(&row.value)?.last_ms;
            if last_ms <= forgotten_ms {
                forgotten.push(row);
                continue;
            }
            let due_ms = due_ms(settings, last_ms);
            next_ms = Some(next_ms.map_or(due_ms, |next| next.min(due_ms)));
        }
        Ok((forgotten, next_ms))
    }

    async fn first_rows(
        &self,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let rows = self.context.transaction.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit,
            reverse: false,
            isolation: self.context.isolation,
        });
        rows.await
    }
}

impl StreamMut<'_, '_> {
    /// Adds an entry, given as alternating names and values, unless the producer already added one
    /// with this producer id.
    ///
    /// # Errors
    /// `Text` if no entry can have the id in the stream.
    pub async fn produce(
        &self,
        producer: &[u8],
        entry: &[u8],
        id: NewId,
        fields: &[Bytes],
    ) -> Result<Produced, CommandError> {
        let (context, data) = (self.context, self.key.data());
        let (layout, transaction) = (context.layout(), context.transaction);
        let producer = ProducerName::of_producer(producer);
        let entry = ProducerName::of_entry(entry);
        let producer_key = layout.producer_key(data, &producer);
        let entry_key = layout.produced_entry_key(data, &producer, &entry);
        // If a producer adds the same entry concurrently, both change the record, so one of the two
        // transactions runs again.
        let (settings, found, before) = try_join3(
            self.producer_settings(),
            transaction.get(&producer_key, context.relaxed()),
            transaction.get(&entry_key, Isolation::Serializable),
        )
        .await?;
        let forgotten_ms = forgotten_ms(context, settings);
        if let Some(before) = before {
            let before = ProducedEntry::decode(&before)?;
            if before.id.ms > forgotten_ms {
                transaction.atomic_add(&layout.duplicates_key(data), 1);
                return Ok(Produced::Duplicate(before.id));
            }
            transaction.clear(&layout.produced_order_key(data, &producer, before.number));
        }
        // Only an addition depends on it.
        transaction.add_read_conflict_range(&producer_key, &successor(&producer_key));
        let found = found.map(|row| StreamProducer::decode(&row)).transpose()?;
        let id = self.append(id, fields).await?;
        let number = found.map_or(0, |producer| producer.next);
        let mut row = StreamProducer {
            first: found.map_or(number, |producer| producer.first),
            next: number.saturating_add(1),
            first_ms: found.map_or(id.ms, |producer| producer.first_ms),
            last_ms: id.ms,
        };
        if row.count() > 1 && (row.first_ms <= forgotten_ms || row.count() > settings.entries_max) {
            self.forget_oldest(&producer, &mut row, settings).await?;
        }
        let produced = ProducedEntry { number, id };
        transaction.set(&entry_key, &produced.encode());
        let order_key = layout.produced_order_key(data, &producer, number);
        transaction.set(&order_key, &encode_produced_order(id.ms, &entry));
        transaction.set(&producer_key, &row.encode());
        transaction.atomic_add(&layout.produced_key(data), 1);
        if found.is_none_or(|producer| producer.last_ms <= forgotten_ms) {
            context.set_timer(self.key, due_ms(settings, id.ms));
        }
        Ok(Produced::Added(id))
    }

    /// Removes the oldest entries of a producer that are too old or too many, before its newest
    /// entry, which has no rows yet. Removes up to [`PRODUCED_FORGOTTEN_AT_ONCE`]. The producer's
    /// next entry removes more.
    async fn forget_oldest(
        &self,
        producer: &ProducerName,
        row: &mut StreamProducer,
        settings: ProducerSettings,
    ) -> Result<(), StoreError> {
        let (context, data) = (self.context, self.key.data());
        let (layout, transaction) = (context.layout(), context.transaction);
        let newest = row.next.saturating_sub(1);
        let range = KeyRange {
            begin: layout.produced_order_key(data, producer, row.first),
            end: layout.produced_order_key(data, producer, newest),
        };
        let forgotten_ms = forgotten_ms(context, settings);
        let oldest = self.first_rows(&range, PRODUCED_FORGOTTEN_AT_ONCE).await?;
        let is_all = oldest.len() < PRODUCED_FORGOTTEN_AT_ONCE;
        for old in oldest {
            let (_, number) = layout.read_produced_order_key(data, &old.key)?;
            let (ms, entry) = decode_produced_order(&old.value)?;
            (row.first, row.first_ms) = (number, ms);
            if ms > forgotten_ms && row.count() <= settings.entries_max {
                return Ok(());
            }
            transaction.clear(&old.key);
            transaction.clear(&layout.produced_entry_key(data, producer, &entry));
            row.first = number.saturating_add(1);
        }
        if is_all {
            (row.first, row.first_ms) = (newest, row.last_ms);
        }
        Ok(())
    }

    /// Sets how long the stream remembers producers' entries, and how many of each. As in Redis, a
    /// change forgets all of them.
    pub async fn set_producers(
        &self,
        duration_s: Option<u64>,
        entries_max: Option<u64>,
    ) -> Result<(), StoreError> {
        let (context, data) = (self.context, self.key.data());
        let before = self.producer_settings().await?;
        let settings = ProducerSettings {
            duration_s: duration_s.unwrap_or(before.duration_s),
            entries_max: entries_max.unwrap_or(before.entries_max),
        };
        if settings == before {
            return Ok(());
        }
        let row = context.layout().producer_settings_key(data);
        context.transaction.set(&row, &settings.encode());
        for range in context.layout().all_producers(data) {
            context.transaction.clear_range(&range.begin, &range.end);
        }
        context.mark_changed(self.key);
        Ok(())
    }

    /// Background work: removes some producers whose entries are all forgotten. Returns when to
    /// check again.
    pub async fn remove_forgotten_producers(&self) -> Result<Option<i64>, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let (layout, transaction) = (context.layout(), context.transaction);
        let view = context.relaxed_view();
        let (forgotten, next_ms) = Stream::open(&view, self.key).check_producers().await?;
        for row in forgotten {
            let now = transaction.get(&row.key, Isolation::Serializable).await?;
            if now.is_none_or(|now| now != row.value) {
                continue;
            }
            let name = layout.read_producer_key(data, &row.key)?;
            transaction.clear(&row.key);
            for range in layout.producer_ranges(data, &name) {
                transaction.clear_range(&range.begin, &range.end);
            }
        }
        Ok(next_ms)
    }
}

/// The id of an entry, derived from its content in any order (IDMPAUTO). Redis combines the digests
/// of the pairs by XOR, so two equal pairs cancel out, and it does not separate a name from its
/// value. Here, different contents have different ids.
pub(super) fn content_id(fields: &[Bytes]) -> [u8; 16] {
    let pairs = fields.chunks(2).map(|pair| {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for part in pair {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.digest128()
    });
    pairs.fold(0_u128, u128::wrapping_add).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(words: &str) -> [u8; 16] {
        let words = words.split(' ').map(|word| Bytes::from(word.to_owned()));
        content_id(&words.collect::<Vec<_>>())
    }

    #[test]
    fn the_order_of_fields_does_not_matter_to_the_id_of_a_content() {
        assert_eq!(id_of("a 1 b 2 c 3"), id_of("c 3 a 1 b 2"));
    }

    #[test]
    fn different_contents_have_different_ids() {
        let contents = [
            "a 1", "a 2", "b 1", "1 a", "a1 x", "a 1x", "a 1 a 1", "b 2 b 2", "a 1 b 2",
        ];
        let ids: std::collections::HashSet<_> = contents.map(id_of).into();
        assert_eq!(ids.len(), contents.len());
    }
}
