//! Consumers of a group.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::STREAM_PENDING_CHANGED_MAX;
use quoin_layout::stream_group::long_name;
use quoin_layout::{Id, StreamConsumer, StreamId};
use quoin_store::{Isolation, StoreError};

use super::pending::PendingChanges;
use super::{OpenGroup, check_name, full_name};

/// How much older the time may be at which a consumer was seen. A consumer that polls in vain writes
/// no more often than that.
const SEEN_AT_GRAIN_MS: i64 = 50;

/// A consumer that was found in this transaction.
#[derive(Debug, Clone)]
pub struct OpenConsumer {
    /// Its name.
    pub name: Bytes,
    /// Its row.
    pub row: StreamConsumer,
}

impl ReadContext<'_> {
    /// A consumer of a group.
    pub async fn stream_consumer(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        name: &Bytes,
    ) -> Result<Option<OpenConsumer>, StoreError> {
        let row = self
            .layout()
            .stream_consumer_key(key.data(), group.row.id, name);
        let Some(value) = self.transaction.get(&row, self.isolation).await? else {
            return Ok(None);
        };
        Ok(Some(OpenConsumer {
            name: name.clone(),
            row: StreamConsumer::decode(&value)?,
        }))
    }

    /// The consumers of a group in the order of their names.
    pub async fn stream_consumers(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
    ) -> Result<Vec<OpenConsumer>, StoreError> {
        let (layout, data) = (self.layout(), key.data());
        let range = layout.stream_consumers(data, group.row.id);
        let mut pages = Pages::new(self, range, false, 0);
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

    /// The names of a group's consumers by their ids.
    pub async fn stream_consumer_names(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
    ) -> Result<HashMap<Id, Bytes>, StoreError> {
        let consumers = self.stream_consumers(key, group).await?.into_iter();
        Ok(consumers
            .map(|consumer| (consumer.row.id, consumer.name))
            .collect())
    }
}

impl WriteContext<'_> {
    /// The consumer of this name, which is made where there is none, and whether it was. `key_name` is
    /// what keyspace events call the stream.
    ///
    /// # Errors
    /// `Text` for a name that is too long.
    pub async fn stream_find_or_create_consumer(
        &self,
        key: &OpenKey,
        key_name: &Bytes,
        group: &OpenGroup,
        name: &Bytes,
    ) -> Result<(OpenConsumer, bool), CommandError> {
        if let Some(consumer) = self.stream_consumer(key, group, name).await? {
            return Ok((consumer, false));
        }
        check_name(name)?;
        let consumer = OpenConsumer {
            name: name.clone(),
            row: StreamConsumer {
                id: self.environment.ids.allocate(),
                seen_at_ms: self.now_ms,
                active_at_ms: None,
                long_name: long_name(name),
            },
        };
        self.set_stream_consumer(key, group, &consumer);
        self.notify(EventClasses::STREAM, "xgroup-createconsumer", key_name);
        Ok((consumer, true))
    }

    /// Notes that a consumer has tried to read or claim, and with `is_active` that it was given
    /// something.
    pub(super) fn stream_consumer_seen(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: &mut OpenConsumer,
        is_active: bool,
    ) {
        let age_ms = self.now_ms.saturating_sub(consumer.row.seen_at_ms);
        if !is_active && (0..SEEN_AT_GRAIN_MS).contains(&age_ms) {
            return;
        }
        consumer.row.seen_at_ms = self.now_ms;
        if is_active {
            consumer.row.active_at_ms = Some(self.now_ms);
        }
        self.set_stream_consumer(key, group, consumer);
    }

    /// Refuses to change more pending entries than one transaction can hold.
    ///
    /// # Errors
    /// `Text` where these are more.
    pub(super) fn check_pending_changed(&self, count: i64) -> Result<(), CommandError> {
        let max = STREAM_PENDING_CHANGED_MAX;
        if self.environment.capabilities.single_writer || count <= max {
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

    fn set_stream_consumer(&self, key: &OpenKey, group: &OpenGroup, consumer: &OpenConsumer) {
        let row = self
            .layout()
            .stream_consumer_key(key.data(), group.row.id, &consumer.name);
        self.transaction.set(&row, &consumer.row.encode());
    }

    /// Removes a consumer with its pending entries, which nobody gets any more, and answers how many
    /// these were.
    ///
    /// # Errors
    /// `Text` where these are more than a transaction can change.
    pub async fn stream_delete_consumer(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: &OpenConsumer,
    ) -> Result<i64, CommandError> {
        let (layout, data) = (self.layout(), key.data());
        let (group_id, consumer_id) = (group.row.id, consumer.row.id);
        let view = self.relaxed_view();
        let count = view.stream_pending_count(key, group, Some(consumer_id));
        self.check_pending_changed(count.await?)?;
        let pending = layout.stream_consumer_pending(
            data,
            group_id,
            consumer_id,
            StreamId::MIN,
            StreamId::MAX,
        );
        let mut pages = Pages::new(self, pending.clone(), false, 0);
        let mut changes = PendingChanges::default();
        while let Some(rows) = pages.next().await? {
            let mut ids = Vec::with_capacity(rows.len());
            for row in rows {
                let (.., id) = layout.read_stream_consumer_pending_key(data, &row.key)?;
                ids.push(id);
            }
            if group.row.policy.is_none() {
                for id in ids {
                    let pending_key = layout.stream_pending_key(data, group_id, id);
                    self.transaction.clear(&pending_key);
                    changes.removed(Some(consumer_id));
                }
                continue;
            }
            // Only the entries themselves say where they stand by time.
            let found = self.stream_pending_each(key, group, &ids, self.isolation);
            for entry in found.await?.iter().flatten() {
                self.remove_pending(key, group, entry, &mut changes);
            }
        }
        let count = -changes.of_group();
        self.transaction.clear_range(&pending.begin, &pending.end);
        self.count_pending(key, group, changes);
        let counter = layout.stream_pending_count_key(data, group_id, Some(consumer_id));
        self.transaction.clear(&counter);
        let row = layout.stream_consumer_key(data, group_id, &consumer.name);
        // A change of the consumer that commits meanwhile must not be half undone.
        self.transaction.get(&row, Isolation::Serializable).await?;
        self.transaction.clear(&row);
        Ok(count)
    }
}
