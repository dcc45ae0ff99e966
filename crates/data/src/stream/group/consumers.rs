//! Consumers of a group.

use std::collections::HashMap;

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_base::limits::STREAM_PENDING_CHANGED_MAX;
use quoin_layout::stream_group::long_name;
use quoin_layout::{Id, StreamConsumer, StreamId};
use quoin_store::{Isolation, StoreError};

use super::pending::PendingChanges;
use super::{Group, GroupMut, check_name, full_name};
use crate::error::CommandError;
use crate::rows::pages::Pages;

/// How outdated a consumer's recorded activity may be. With this, a consumer that polls in vain
/// does not write each time.
const SEEN_AT_GRAIN_MS: i64 = 50;

/// A consumer that was found in this transaction.
#[derive(Debug, Clone)]
pub(crate) struct OpenConsumer {
    /// Its name.
    pub name: Bytes,
    /// Its row.
    pub row: StreamConsumer,
}

impl Group<'_, '_> {
    /// A consumer of the group.
    pub(crate) async fn consumer(&self, name: &Bytes) -> Result<Option<OpenConsumer>, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let row = context
            .layout()
            .stream_consumer_key(data, self.row.id, name);
        let Some(value) = context.transaction.get(&row, context.isolation).await? else {
            return Ok(None);
        };
        Ok(Some(OpenConsumer {
            name: name.clone(),
            row: StreamConsumer::decode(&value)?,
        }))
    }

    /// The consumers of the group in the order of their names.
    pub(crate) async fn consumers(&self) -> Result<Vec<OpenConsumer>, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let range = layout.stream_consumers(data, self.row.id);
        let mut pages = Pages::new(self.context, range, false, 0);
        let mut consumers = Vec::new();
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (_, in_key) = layout.read_stream_consumer_key(data, &row.key)?;
                let row = StreamConsumer::decode(&row.value)?;
                let name = full_name(in_key, &row.long_name)?;
                consumers.push(OpenConsumer { name, row });
            }
        }
        Ok(consumers)
    }

    /// The names of the group's consumers by their ids.
    pub(crate) async fn consumer_names(&self) -> Result<HashMap<Id, Bytes>, StoreError> {
        let consumers = self.consumers().await?.into_iter();
        Ok(consumers
            .map(|consumer| (consumer.row.id, consumer.name))
            .collect())
    }
}

impl GroupMut<'_, '_> {
    /// The consumer of this name, and whether it was created now. `key_name` is the stream's name
    /// in keyspace events.
    ///
    /// # Errors
    /// `Text` if the name is too long.
    pub(crate) async fn find_or_create_consumer(
        &self,
        key_name: &Bytes,
        name: &Bytes,
    ) -> Result<(OpenConsumer, bool), CommandError> {
        if let Some(consumer) = self.consumer(name).await? {
            return Ok((consumer, false));
        }
        check_name(name)?;
        let context = self.context;
        let consumer = OpenConsumer {
            name: name.clone(),
            row: StreamConsumer {
                id: context.environment.ids.allocate(),
                seen_at_ms: context.now_ms,
                active_at_ms: None,
                long_name: long_name(name),
            },
        };
        self.save_consumer(&consumer);
        context.notify(EventClasses::STREAM, "xgroup-createconsumer", key_name);
        Ok((consumer, true))
    }

    /// Records that a consumer has tried to read or claim. `is_active`: whether it got something.
    pub(super) fn note_seen(&self, consumer: &mut OpenConsumer, is_active: bool) {
        let now_ms = self.context.now_ms;
        let age_ms = now_ms.saturating_sub(consumer.row.seen_at_ms);
        if !is_active && (0..SEEN_AT_GRAIN_MS).contains(&age_ms) {
            return;
        }
        consumer.row.seen_at_ms = now_ms;
        if is_active {
            consumer.row.active_at_ms = Some(now_ms);
        }
        self.save_consumer(consumer);
    }

    fn save_consumer(&self, consumer: &OpenConsumer) {
        let (layout, data) = (self.context.layout(), self.key.data());
        let row = layout.stream_consumer_key(data, self.row.id, &consumer.name);
        self.context.transaction.set(&row, &consumer.row.encode());
    }

    /// Refuses to change more pending entries than one transaction can hold.
    ///
    /// # Errors
    /// `Text` if there are more.
    pub(super) fn check_pending_changed(&self, count: i64) -> Result<(), CommandError> {
        let max = STREAM_PENDING_CHANGED_MAX;
        if !self
            .context
            .environment
            .capabilities
            .bounds_transaction_time
            || count <= max
        {
            return Ok(());
        }
        Err(CommandError::Text(
            format!(
                "ERR {count} entries are pending, and at most {max} are changed at once; nothing was \
                 changed. XACK or XCLAIM some of them before"
            )
            .into(),
        ))
    }

    /// Removes a consumer with its pending entries, which no consumer gets any more. Returns how
    /// many there were.
    ///
    /// # Errors
    /// `Text` if there are more than a transaction can change.
    pub(crate) async fn delete_consumer(
        &self,
        consumer: &OpenConsumer,
    ) -> Result<i64, CommandError> {
        let (context, data) = (self.context, self.key.data());
        let (layout, transaction) = (context.layout(), context.transaction);
        let (group_id, consumer_id) = (self.row.id, consumer.row.id);
        let count = self.pending_count(Some(consumer_id), context.relaxed());
        self.check_pending_changed(count.await?)?;
        let (first, last) = (StreamId::MIN, StreamId::MAX);
        let pending = layout.stream_consumer_pending(data, group_id, consumer_id, first, last);
        let mut pages = Pages::new(context, pending.clone(), false, 0);
        let mut changes = PendingChanges::default();
        while let Some(rows) = pages.next().await? {
            let mut ids = Vec::with_capacity(rows.len());
            for row in rows {
                let (.., id) = layout.read_stream_consumer_pending_key(data, &row.key)?;
                ids.push(id);
            }
            if !self.row.is_by_delivery {
                for id in ids {
                    transaction.clear(&layout.stream_pending_key(data, group_id, id));
                    changes.removed(Some(consumer_id));
                }
                continue;
            }
            // The keys of their rows by time follow from the entries' own rows only.
            let found = self.pending_each(&ids, context.isolation);
            for entry in found.await?.iter().flatten() {
                self.remove_pending(entry, &mut changes);
            }
        }
        let count = -changes.of_group();
        transaction.clear_range(&pending.begin, &pending.end);
        self.count_pending(changes);
        transaction.clear(&layout.stream_pending_count_key(data, group_id, Some(consumer_id)));
        let row = layout.stream_consumer_key(data, group_id, &consumer.name);
        // A concurrent change of the consumer must not be half undone.
        transaction.get(&row, Isolation::Serializable).await?;
        transaction.clear(&row);
        Ok(count)
    }
}
