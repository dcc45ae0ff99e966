//! Consumer groups of streams: groups, consumers, and pending entries.
//!
//! Groups and consumers are listed in the order of their names, as in Redis. A name of up to
//! [`INLINE_NAME_BYTES_MAX`] bytes is in the key. For a longer one the key has its first bytes and
//! its digest, and the row has all of it. Rows refer to groups and consumers by [`Id`]s, which are
//! never reused.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::name::digest;
use super::{DecodeError, Id, KeyRange, Layout, Section, StreamId, corrupt, take, take_id};
use quoin_base::limits::INLINE_NAME_BYTES_MAX;

/// Format byte of the rows of groups, consumers and pending entries.
const FORMAT: u8 = 1;
/// Format byte of the row of a group with a policy.
const FORMAT_WITH_POLICY: u8 = 2;
/// Format byte of the row of a group without a policy that keeps rows by delivery.
const FORMAT_BY_DELIVERY: u8 = 3;

/// The row of a consumer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamGroup {
    /// Names the group in other rows.
    pub id: Id,
    /// The entry that was delivered last.
    pub last: StreamId,
    /// How many entries the group has read; `None` if unknown.
    pub entries_read: Option<u64>,
    /// The full name, if the key has only part of it.
    pub long_name: Option<Bytes>,
    /// What happens to entries that are pending for a long time.
    pub policy: Option<StreamPolicy>,
    /// Whether each pending entry has a row by its last delivery, even without a policy. Entries
    /// that are not handed out again may lack it.
    pub is_by_delivery: bool,
}

/// What happens to a group's entries that are pending for a long time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPolicy {
    /// Milliseconds without a delivery after which an entry is delivered again.
    pub min_idle_ms: i64,
    /// An entry with this many deliveries is not handed out again automatically.
    pub max_tries: Option<u64>,
    /// The stream that receives such entries.
    pub dead_letter: Option<Bytes>,
}

impl StreamGroup {
    /// The stored form: the format byte, then the tuple (id…, last ms, last seq, entries read or nil, name or
    /// nil). With a policy the format byte is another, and the tuple continues (least idle time, most
    /// deliveries or nil, key of the dead letter stream or nil). With rows by delivery and no policy only the
    /// format byte is another.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![match self.policy {
            None if self.is_by_delivery => FORMAT_BY_DELIVERY,
            None => FORMAT,
            Some(_) => FORMAT_WITH_POLICY,
        }];
        let (id, last) = (self.id, self.last);
        pack_into(
            &(
                id.instance,
                id.sequence,
                last.ms,
                last.seq,
                self.entries_read,
                self.long_name.as_deref(),
            ),
            &mut value,
        );
        if let Some(policy) = &self.policy {
            let dead_letter = policy.dead_letter.as_deref();
            pack_into(
                &(policy.min_idle_ms, policy.max_tries, dead_letter),
                &mut value,
            );
        }
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (format, mut rest) = match value.split_first() {
            Some((&format, rest)) if (FORMAT..=FORMAT_BY_DELIVERY).contains(&format) => {
                (format, rest)
            }
            _ => return corrupt("format of a consumer group"),
        };
        let mut group = Self {
            id: take_id(&mut rest, "id of a consumer group")?,
            last: StreamId::take(&mut rest)?,
            entries_read: take(&mut rest, "entries that a group has read")?,
            long_name: take_bytes(&mut rest, "long name")?,
            policy: None,
            is_by_delivery: format != FORMAT,
        };
        if format == FORMAT_WITH_POLICY {
            group.policy = Some(StreamPolicy {
                min_idle_ms: take(&mut rest, "least idle time of a group")?,
                max_tries: take(&mut rest, "most deliveries of a group")?,
                dead_letter: take_bytes(&mut rest, "dead letter stream")?,
            });
        }
        end(rest, group)
    }
}

/// The row of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamConsumer {
    /// Names the consumer in other rows.
    pub id: Id,
    /// When it last attempted something, in milliseconds since the Unix epoch.
    pub seen_at_ms: i64,
    /// When it last read or claimed an entry; `None` if it never did.
    pub active_at_ms: Option<i64>,
    /// The full name, if the key has only part of it.
    pub long_name: Option<Bytes>,
}

impl StreamConsumer {
    /// The stored form: the format byte, then the tuple (id…, seen at, active at or nil, name or
    /// nil).
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        pack_into(
            &(
                self.id.instance,
                self.id.sequence,
                self.seen_at_ms,
                self.active_at_ms,
                self.long_name.as_deref(),
            ),
            &mut value,
        );
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = content(value, "format of a consumer")?;
        let consumer = Self {
            id: take_id(&mut rest, "id of a consumer")?,
            seen_at_ms: take(&mut rest, "time of a consumer")?,
            active_at_ms: take(&mut rest, "time of a consumer")?,
            long_name: take_bytes(&mut rest, "long name")?,
        };
        end(rest, consumer)
    }
}

/// The row of an entry that was delivered to a consumer and is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPending {
    /// Its consumer. `None` if XNACK has released the entry.
    pub consumer: Option<Id>,
    /// When it was delivered last, in milliseconds since the Unix epoch.
    pub delivered_at_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
}

impl StreamPending {
    /// The stored form: the format byte, then the tuple (consumer…, delivered at, deliveries). Two nils mean
    /// no consumer.
    pub fn encode(self) -> Vec<u8> {
        let mut value = Vec::with_capacity(20);
        value.push(FORMAT);
        pack_into(
            &(
                self.consumer.map(|consumer| consumer.instance),
                self.consumer.map(|consumer| consumer.sequence),
                self.delivered_at_ms,
                self.deliveries,
            ),
            &mut value,
        );
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = content(value, "format of a pending entry")?;
        let consumer: (Option<u64>, Option<u64>) = (
            take(&mut rest, "id of a consumer")?,
            take(&mut rest, "id of a consumer")?,
        );
        let pending = Self {
            consumer: match consumer {
                (Some(instance), Some(sequence)) => Some(Id { instance, sequence }),
                (None, None) => None,
                _ => return corrupt("id of a consumer"),
            },
            delivered_at_ms: take(&mut rest, "time of a delivery")?,
            deliveries: take(&mut rest, "number of deliveries")?,
        };
        end(rest, pending)
    }
}

fn content<'v>(value: &'v [u8], what: &'static str) -> Result<&'v [u8], DecodeError> {
    match value.split_first() {
        Some((&FORMAT, rest)) => Ok(rest),
        _ => corrupt(what),
    }
}

fn take_bytes(rest: &mut &[u8], what: &'static str) -> Result<Option<Bytes>, DecodeError> {
    let name: Option<TupleBytes<'_>> = take(rest, what)?;
    Ok(name.map(|name| Bytes::from(name.into_owned())))
}

fn end<T>(rest: &[u8], row: T) -> Result<T, DecodeError> {
    match rest {
        [] => Ok(row),
        _ => corrupt("row of a consumer group"),
    }
}

/// The name in the form of a row. `None` if the key has all of it.
pub fn long_name(name: &Bytes) -> Option<Bytes> {
    (name.len() > INLINE_NAME_BYTES_MAX).then(|| name.clone())
}

/// Appends a name so that keys are in the order of names.
fn pack_name(name: &[u8], key: &mut Vec<u8>) {
    match name.get(..INLINE_NAME_BYTES_MAX) {
        Some(prefix) if prefix.len() < name.len() => {
            pack_into(&(prefix, digest(name).as_slice()), key);
        }
        _ => {
            pack_into(&(name,), key);
        }
    }
}

/// Reads the name at the end of a key. `None` if the row has it.
fn read_name(mut rest: &[u8]) -> Result<Option<Bytes>, DecodeError> {
    let name: TupleBytes<'_> = take(&mut rest, "name in a stream")?;
    Ok(rest.is_empty().then(|| Bytes::from(name.into_owned())))
}

impl Layout {
    /// Key of a consumer group.
    pub fn stream_group_key(&self, data: Id, name: &[u8]) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::StreamGroups);
        pack_name(name, &mut key);
        key
    }

    /// The consumer groups of a stream.
    pub fn stream_groups(&self, data: Id) -> KeyRange {
        KeyRange::children(&self.section_prefix(data, Section::StreamGroups))
    }

    /// Reads the name of a consumer group from its key; `None` if its row holds it.
    ///
    /// # Errors
    /// If the key is not the key of a group of `data`.
    pub fn read_stream_group_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<Option<Bytes>, DecodeError> {
        read_name(self.in_section(data, Section::StreamGroups, key)?)
    }

    /// Key of a pending entry.
    pub fn stream_pending_key(&self, data: Id, group: Id, id: StreamId) -> Vec<u8> {
        let mut key = self.of_group(data, Section::StreamPending, group);
        id.pack_into(&mut key);
        key
    }

    /// The pending entries of a group from `begin` to `end`, both included.
    pub fn stream_pending(&self, data: Id, group: Id, begin: StreamId, end: StreamId) -> KeyRange {
        KeyRange {
            begin: self.stream_pending_key(data, group, begin),
            end: super::successor(&self.stream_pending_key(data, group, end)),
        }
    }

    /// Reads the group and the id of a pending entry from its key.
    ///
    /// # Errors
    /// If the key is not the key of a pending entry of `data`.
    pub fn read_stream_pending_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(Id, StreamId), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamPending, key)?;
        let group = take_id(&mut rest, "id of a consumer group")?;
        Ok((group, StreamId::take(&mut rest)?))
    }

    /// Key of a pending entry within its consumer. Its row is empty.
    pub fn stream_consumer_pending_key(
        &self,
        data: Id,
        group: Id,
        consumer: Id,
        id: StreamId,
    ) -> Vec<u8> {
        let mut key = self.of_group(data, Section::StreamConsumerPending, group);
        pack_into(&(consumer.instance, consumer.sequence), &mut key);
        id.pack_into(&mut key);
        key
    }

    /// The pending entries of a consumer from `begin` to `end`, both included.
    pub fn stream_consumer_pending(
        &self,
        data: Id,
        group: Id,
        consumer: Id,
        begin: StreamId,
        end: StreamId,
    ) -> KeyRange {
        let end = self.stream_consumer_pending_key(data, group, consumer, end);
        KeyRange {
            begin: self.stream_consumer_pending_key(data, group, consumer, begin),
            end: super::successor(&end),
        }
    }

    /// Reads the group, the consumer and the id of a pending entry from its key within its
    /// consumer.
    ///
    /// # Errors
    /// If the key is not such a key of `data`.
    pub fn read_stream_consumer_pending_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(Id, Id, StreamId), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamConsumerPending, key)?;
        let group = take_id(&mut rest, "id of a consumer group")?;
        let consumer = take_id(&mut rest, "id of a consumer")?;
        Ok((group, consumer, StreamId::take(&mut rest)?))
    }

    /// Key of a consumer.
    pub fn stream_consumer_key(&self, data: Id, group: Id, name: &[u8]) -> Vec<u8> {
        let mut key = self.of_group(data, Section::StreamConsumers, group);
        pack_name(name, &mut key);
        key
    }

    /// The consumers of a group.
    pub fn stream_consumers(&self, data: Id, group: Id) -> KeyRange {
        KeyRange::children(&self.of_group(data, Section::StreamConsumers, group))
    }

    /// Reads the group and the name of a consumer from its key; `None` if its row holds the name.
    ///
    /// # Errors
    /// If the key is not the key of a consumer of `data`.
    pub fn read_stream_consumer_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(Id, Option<Bytes>), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamConsumers, key)?;
        let group = take_id(&mut rest, "id of a consumer group")?;
        Ok((group, read_name(rest)?))
    }

    /// Key of the counter of pending entries of a group, or of one consumer.
    pub fn stream_pending_count_key(&self, data: Id, group: Id, consumer: Option<Id>) -> Vec<u8> {
        let mut key = self.of_group(data, Section::StreamPendingCounts, group);
        if let Some(consumer) = consumer {
            pack_into(&(consumer.instance, consumer.sequence), &mut key);
        }
        key
    }

    /// Reads the group and the consumer of a counter of pending entries. No consumer if it counts
    /// the whole group.
    ///
    /// # Errors
    /// If the key is not such a key of `data`.
    pub fn read_stream_pending_count_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(Id, Option<Id>), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamPendingCounts, key)?;
        let group = take_id(&mut rest, "id of a consumer group")?;
        let consumer = match rest {
            [] => None,
            _ => Some(take_id(&mut rest, "id of a consumer")?),
        };
        Ok((group, consumer))
    }

    /// Key of a pending entry by when it was delivered. Its row is empty.
    pub fn stream_idle_key(
        &self,
        data: Id,
        group: Id,
        delivered_at_ms: i64,
        id: StreamId,
    ) -> Vec<u8> {
        let mut key = self.of_group(data, Section::StreamIdle, group);
        pack_into(&(delivered_at_ms,), &mut key);
        id.pack_into(&mut key);
        key
    }

    /// The pending entries of a group that were delivered at or after one time and before another,
    /// in that order.
    pub fn stream_idle(&self, data: Id, group: Id, from_ms: i64, before_ms: i64) -> KeyRange {
        let at = |at_ms: i64| {
            let mut key = self.of_group(data, Section::StreamIdle, group);
            pack_into(&(at_ms,), &mut key);
            key
        };
        KeyRange {
            begin: at(from_ms),
            end: at(before_ms),
        }
    }

    /// Reads the group, the time of delivery and the id of a pending entry from its key by delivery
    /// time.
    ///
    /// # Errors
    /// If the key is not such a key of `data`.
    pub fn read_stream_idle_key(
        &self,
        data: Id,
        key: &[u8],
    ) -> Result<(Id, i64, StreamId), DecodeError> {
        let mut rest = self.in_section(data, Section::StreamIdle, key)?;
        let group = take_id(&mut rest, "id of a consumer group")?;
        let delivered_at_ms = take(&mut rest, "time of a delivery")?;
        Ok((group, delivered_at_ms, StreamId::take(&mut rest)?))
    }

    /// The range of everything that belongs to a group except its own row, which is deleted with
    /// it.
    pub fn stream_group_ranges(&self, data: Id, group: Id) -> [KeyRange; 5] {
        [
            Section::StreamPending,
            Section::StreamConsumerPending,
            Section::StreamConsumers,
            Section::StreamPendingCounts,
            Section::StreamIdle,
        ]
        .map(|section| {
            let prefix = self.of_group(data, section, group);
            KeyRange {
                end: super::with_byte(&prefix, 0xff),
                begin: prefix,
            }
        })
    }

    fn of_group(&self, data: Id, section: Section, group: Id) -> Vec<u8> {
        let mut prefix = self.section_prefix(data, section);
        pack_into(&(group.instance, group.sequence), &mut prefix);
        prefix
    }

    pub(super) fn in_section<'k>(
        &self,
        data: Id,
        section: Section,
        key: &'k [u8],
    ) -> Result<&'k [u8], DecodeError> {
        let prefix = self.section_prefix(data, section);
        match key.strip_prefix(prefix.as_slice()) {
            Some(rest) => Ok(rest),
            None => corrupt("key of another section of a stream"),
        }
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

    prop_compose! {
        fn some_id()(instance: u64, sequence: u64) -> Id {
            Id { instance, sequence }
        }
    }

    prop_compose! {
        fn entry_id()(ms: u64, seq: u64) -> StreamId {
            StreamId { ms, seq }
        }
    }

    fn name() -> impl Strategy<Value = Bytes> {
        let around_the_limit = (880_usize..920, 0_u8..2);
        let long = around_the_limit.prop_map(|(length, byte)| Bytes::from(vec![byte; length]));
        let short = proptest::collection::vec(any::<u8>(), 0..4).prop_map(Bytes::from);
        prop_oneof![short, long]
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(
            id in some_id(), last in entry_id(), entries_read: Option<u64>, name in name(),
            at_ms: i64, active_at_ms: Option<i64>, deliveries: u64, max_tries: Option<u64>,
            has_policy: bool, has_consumer: bool, is_claimed: bool,
        ) {
            let long_name = long_name(&name);
            let dead_letter = max_tries.map(|_| name.clone());
            let policy = StreamPolicy { min_idle_ms: at_ms, max_tries, dead_letter };
            let policy = has_policy.then_some(policy);
            let is_by_delivery = has_policy || is_claimed;
            let group = StreamGroup {
                id, last, entries_read, long_name: long_name.clone(), policy, is_by_delivery,
            };
            prop_assert_eq!(StreamGroup::decode(&group.encode()).unwrap(), group);
            let consumer = StreamConsumer { id, seen_at_ms: at_ms, active_at_ms, long_name };
            prop_assert_eq!(StreamConsumer::decode(&consumer.encode()).unwrap(), consumer);
            let consumer = has_consumer.then_some(id);
            let pending = StreamPending { consumer, delivered_at_ms: at_ms, deliveries };
            prop_assert_eq!(StreamPending::decode(&pending.encode()).unwrap(), pending);
        }

        #[test]
        fn keys_are_read_as_they_were_written(
            group in some_id(), consumer in some_id(), id in entry_id(), name in name(),
            at_ms: i64,
        ) {
            let layout = Layout::new("test");
            let in_key = long_name(&name).is_none().then(|| name.clone());
            let keys = [
                layout.stream_pending_key(DATA, group, id),
                layout.stream_consumer_pending_key(DATA, group, consumer, id),
                layout.stream_consumer_key(DATA, group, &name),
                layout.stream_pending_count_key(DATA, group, Some(consumer)),
                layout.stream_idle_key(DATA, group, at_ms, id),
            ];
            let read = layout.read_stream_idle_key(DATA, &keys[4]);
            prop_assert_eq!(read, Ok((group, at_ms, id)));
            let idle = layout.stream_idle(DATA, group, i64::MIN, at_ms);
            prop_assert!(idle.begin <= idle.end && idle.end <= keys[4]);
            let idle = layout.stream_idle(DATA, group, at_ms, i64::MAX);
            prop_assert!(idle.begin <= keys[4] && (keys[4] < idle.end || at_ms == i64::MAX));
            prop_assert_eq!(layout.read_stream_pending_key(DATA, &keys[0]), Ok((group, id)));
            prop_assert_eq!(
                layout.read_stream_consumer_pending_key(DATA, &keys[1]),
                Ok((group, consumer, id))
            );
            prop_assert_eq!(
                layout.read_stream_consumer_key(DATA, &keys[2]),
                Ok((group, in_key.clone()))
            );
            let key = layout.stream_group_key(DATA, &name);
            prop_assert_eq!(layout.read_stream_group_key(DATA, &key), Ok(in_key));
            for consumer in [None, Some(consumer)] {
                let key = layout.stream_pending_count_key(DATA, group, consumer);
                let read = layout.read_stream_pending_count_key(DATA, &key);
                prop_assert_eq!(read, Ok((group, consumer)));
            }
            for (key, range) in keys.iter().zip(layout.stream_group_ranges(DATA, group)) {
                prop_assert!(range.begin <= *key && *key < range.end);
            }
            let count = layout.stream_pending_count_key(DATA, group, None);
            let [.., counts, _] = layout.stream_group_ranges(DATA, group);
            prop_assert!(counts.begin <= count && count < counts.end);
        }

        #[test]
        fn names_lie_in_their_order(one in name(), other in name()) {
            let layout = Layout::new("test");
            let keys =
                (layout.stream_group_key(DATA, &one), layout.stream_group_key(DATA, &other));
            let are_both_long = long_name(&one).is_some() && long_name(&other).is_some();
            if !are_both_long {
                prop_assert_eq!(one.cmp(&other), keys.0.cmp(&keys.1));
            }
            prop_assert_eq!(one == other, keys.0 == keys.1);
        }

        #[test]
        fn whatever_the_bytes_reading_does_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = StreamGroup::decode(&bytes);
            let _ = StreamConsumer::decode(&bytes);
            let _ = StreamPending::decode(&bytes);
        }
    }

    #[test]
    fn a_group_is_not_taken_for_one_whose_id_begins_alike() {
        let layout = Layout::new("test");
        let group = |sequence| Id {
            instance: 1,
            sequence,
        };
        for (one, other) in [(1, 256), (255, 256), (0, 1)] {
            let key = layout.stream_pending_key(DATA, group(other), StreamId::MIN);
            let [pending, ..] = layout.stream_group_ranges(DATA, group(one));
            assert!(!(pending.begin <= key && key < pending.end));
        }
    }
}
