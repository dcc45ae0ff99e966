//! Streams in Redis's serialization, with their consumer groups.

use std::collections::HashMap;

use bytes::Bytes;

use quoin_base::limits::STREAM_NAME_BYTES_MAX;
use quoin_layout::stream_group::long_name;
use quoin_layout::{
    Id, StreamConsumer, StreamGroup, StreamHead, StreamId, StreamPending, ValueType, encode_counter,
};
use quoin_rdb::{
    DumpError, DumpedConsumer, DumpedGroup, DumpedPending, DumpedStream, EntryId, Payload,
    StreamReader, StreamWriter,
};
use quoin_store::StoreError;

use super::group::Group;
use super::group::consumers::OpenConsumer;
use super::{IdRange, Stream, StreamMut};
use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::kind::Restorable;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

fn dumped(id: StreamId) -> EntryId {
    (id.ms, id.seq)
}

fn stored((ms, seq): EntryId) -> StreamId {
    StreamId { ms, seq }
}

impl Stream<'_, '_> {
    /// The stream in Redis's serialization.
    ///
    /// # Errors
    /// `Text` if it is too large.
    pub(super) async fn dump(&self) -> Result<Bytes, CommandError> {
        let mut writer = StreamWriter::new();
        let mut pages = self.pages(IdRange::ALL, false, 0);
        while let Some(entries) = pages.next().await? {
            for entry in entries {
                writer.push(dumped(entry.id), entry.fields);
                check_size(writer.size_bytes())?;
            }
        }
        let head = self.head().await?;
        let stream = DumpedStream {
            last: dumped(head.last),
            deleted: dumped(self.max_deleted_id().await?),
            added: head.added,
            groups: self.dumped_groups().await?,
        };
        let payload = writer.finish(&stream);
        check_size(payload.len())?;
        Ok(payload)
    }

    async fn dumped_groups(&self) -> Result<Vec<DumpedGroup>, StoreError> {
        let mut groups = Vec::new();
        for group in self.groups().await? {
            let group = Group::open(self.context, self.key, group);
            let consumers = group.consumers().await?.into_iter();
            let consumers = consumers.map(|OpenConsumer { name, row }| {
                let consumer = DumpedConsumer {
                    name,
                    seen_at_ms: row.seen_at_ms,
                    active_at_ms: row.active_at_ms,
                    pending: Vec::new(),
                };
                (row.id, consumer)
            });
            let mut consumers = consumers.collect();
            let pending = self.dumped_pending(group.row.id, &mut consumers).await?;
            let consumers = consumers.into_iter();
            groups.push(DumpedGroup {
                name: group.name.clone(),
                last: dumped(group.row.last),
                entries_read: group.row.entries_read,
                pending,
                consumers: consumers.map(|(_, consumer)| consumer).collect(),
            });
        }
        Ok(groups)
    }

    /// The pending entries of a group. Adds each to its consumer, too.
    async fn dumped_pending(
        &self,
        group: Id,
        consumers: &mut Vec<(Id, DumpedConsumer)>,
    ) -> Result<Vec<DumpedPending>, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut by_id: HashMap<Id, &mut DumpedConsumer> = consumers
            .iter_mut()
            .map(|(id, consumer)| (*id, consumer))
            .collect();
        let rows = layout.stream_pending(data, group, StreamId::MIN, StreamId::MAX);
        let mut released = Vec::new();
        let mut pending = Vec::new();
        let mut pages = Pages::new(self.context, rows, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (_, id) = layout.read_stream_pending_key(data, &row.key)?;
                let one = StreamPending::decode(&row.value)?;
                match one.consumer.map(|consumer| by_id.get_mut(&consumer)) {
                    Some(Some(consumer)) => consumer.pending.push(dumped(id)),
                    Some(None) => {
                        return Err(StoreError::Corrupt("a pending entry without its consumer"));
                    }
                    None => released.push(dumped(id)),
                }
                pending.push(DumpedPending {
                    id: dumped(id),
                    delivered_at_ms: one.delivered_at_ms,
                    deliveries: one.deliveries,
                });
            }
        }
        add_nameless_consumer(consumers, released);
        Ok(pending)
    }
}

/// In Redis's serialization each pending entry has a consumer. So entries that XNACK has released go to a
/// consumer with an empty name.
fn add_nameless_consumer(consumers: &mut Vec<(Id, DumpedConsumer)>, released: Vec<EntryId>) {
    if released.is_empty() {
        return;
    }
    // Consumers are in the order of their names.
    if let Some((_, first)) = consumers.first_mut()
        && first.name.is_empty()
    {
        first.pending.extend(released);
        first.pending.sort_unstable();
        return;
    }
    let nameless = DumpedConsumer {
        name: Bytes::new(),
        seen_at_ms: 0,
        active_at_ms: None,
        pending: released,
    };
    let no_id = Id {
        instance: 0,
        sequence: 0,
    };
    consumers.insert(0, (no_id, nameless));
}

/// Reads a stream from a payload.
pub(super) fn restorable(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<Restorable, CommandError> {
    let mut reader = StreamReader::new(payload)?;
    let mut budget = context.size_budget();
    let mut entries = Vec::new();
    while let Some((id, fields)) = reader.next_entry()? {
        let bytes = fields.iter().map(Bytes::len).sum();
        budget.take_element(bytes)?;
        entries.push((stored(id), fields));
    }
    let stream = reader.finish()?;
    let consumers = stream.groups.iter().flat_map(|group| &group.consumers);
    let names = consumers.map(|consumer| &consumer.name);
    let mut names = names.chain(stream.groups.iter().map(|group| &group.name));
    if names.any(|name| name.len() > STREAM_NAME_BYTES_MAX) {
        return Err(DumpError::Format.into());
    }
    for group in &stream.groups {
        for _ in &group.pending {
            budget.take_element(0)?;
        }
    }
    Ok(Box::new(move |context, name, expire_at_ms| {
        Box::pin(async move {
            let key = context
                .create(name, ValueType::Stream, expire_at_ms)
                .await?;
            let restored = StreamMut::open(context, &key);
            for (id, fields) in &entries {
                restored.put_entry(*id, fields);
            }
            restored.set_head(StreamHead {
                last: stored(stream.last),
                added: stream.added,
            });
            if stream.deleted != dumped(StreamId::MIN) {
                restored.set_max_deleted_id(stored(stream.deleted));
            }
            for group in &stream.groups {
                restored.put_dumped_group(group);
            }
            context.add_length(&key, i64::try_from(entries.len()).unwrap_or(i64::MAX));
            Ok(())
        })
    }))
}

impl StreamMut<'_, '_> {
    /// Writes a group with its consumers and pending entries.
    fn put_dumped_group(&self, group: &DumpedGroup) {
        let (layout, data) = (self.context.layout(), self.key.data());
        let transaction = self.context.transaction;
        let ids = &self.context.environment.ids;
        let group_id = ids.allocate();
        let row = StreamGroup {
            id: group_id,
            last: stored(group.last),
            entries_read: group.entries_read,
            long_name: long_name(&group.name),
            policy: None,
            is_by_delivery: false,
        };
        let group_key = layout.stream_group_key(data, &group.name);
        transaction.set(&group_key, &row.encode());
        let by_id: HashMap<EntryId, &DumpedPending> =
            group.pending.iter().map(|one| (one.id, one)).collect();
        for consumer in &group.consumers {
            // Entries that XNACK has released, see `add_nameless_consumer`.
            let is_released = |id: &EntryId| {
                let one = by_id.get(id);
                consumer.name.is_empty() && one.is_some_and(|one| one.delivered_at_ms == 0)
            };
            let released = consumer.pending.iter().filter(|id| is_released(id)).count();
            let is_nameless = consumer.seen_at_ms == 0 && released == consumer.pending.len();
            let consumer_id = ids.allocate();
            let row = StreamConsumer {
                id: consumer_id,
                seen_at_ms: consumer.seen_at_ms,
                active_at_ms: consumer.active_at_ms,
                long_name: long_name(&consumer.name),
            };
            let consumer_key = layout.stream_consumer_key(data, group_id, &consumer.name);
            if released == 0 || !is_nameless {
                transaction.set(&consumer_key, &row.encode());
            }
            for id in &consumer.pending {
                let Some(one) = by_id.get(id) else {
                    continue;
                };
                let is_released = is_released(id);
                let row = StreamPending {
                    consumer: (!is_released).then_some(consumer_id),
                    delivered_at_ms: one.delivered_at_ms,
                    deliveries: one.deliveries,
                };
                let id = stored(*id);
                let pending_key = layout.stream_pending_key(data, group_id, id);
                transaction.set(&pending_key, &row.encode());
                let by_consumer =
                    layout.stream_consumer_pending_key(data, group_id, consumer_id, id);
                if !is_released {
                    transaction.set(&by_consumer, b"");
                }
            }
            let count = consumer.pending.len() - released;
            self.put_dumped_count(group_id, Some(consumer_id), count);
        }
        self.put_dumped_count(group_id, None, group.pending.len());
    }

    fn put_dumped_count(&self, group: Id, consumer: Option<Id>, count: usize) {
        if count > 0 {
            let (layout, data) = (self.context.layout(), self.key.data());
            let row = layout.stream_pending_count_key(data, group, consumer);
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let count = encode_counter(count);
            self.context.transaction.set(&row, &count);
        }
    }
}
