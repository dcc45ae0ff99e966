//! Consumer groups: each entry of a stream goes to one consumer of a group, and is pending until it is
//! acknowledged.
//!
//! A group's row holds the last id that the group has delivered. Only commands that deliver new entries
//! write it, so readers of one group conflict with each other and with nothing else. They read entries
//! at a snapshot, because an XADD that commits meanwhile only adds entries after those.
//!
//! A pending entry has a row in its group, a row in its consumer, and counts in a counter of each.
//! Every change of a pending entry reads the group's row serializably. DESTROY and DELCONSUMER clear
//! that row, so no change of a pending entry survives them.
//!
//! This file has the groups themselves (XGROUP) and their lag.

use std::ops::Deref;

use bytes::Bytes;

use quoin_base::limits::STREAM_NAME_BYTES_MAX;
use quoin_layout::stream_group::long_name;
use quoin_layout::{StreamGroup, StreamHead, StreamId};
use quoin_store::{Isolation, StoreError};

use super::{IdRange, Stream, StreamMut};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};

pub(super) mod claim;
pub(super) mod consumers;
pub(super) mod deliver;
pub(super) mod pending;
pub(super) mod policy;

/// A group that was found in this transaction.
#[derive(Debug, Clone)]
pub struct OpenGroup {
    /// Its name.
    pub name: Bytes,
    /// Its row.
    pub row: StreamGroup,
}

/// A group of a stream, for reading.
pub(super) struct Group<'c, 't> {
    pub(super) context: &'c ReadContext<'t>,
    pub(super) key: &'c OpenKey,
    group: OpenGroup,
}

impl<'c, 't> Group<'c, 't> {
    /// A group that was found in the stream of this key.
    pub(super) fn open(context: &'c ReadContext<'t>, key: &'c OpenKey, group: OpenGroup) -> Self {
        Self {
            context,
            key,
            group,
        }
    }
}

impl Deref for Group<'_, '_> {
    type Target = OpenGroup;

    fn deref(&self) -> &OpenGroup {
        &self.group
    }
}

/// A group of a stream, for writing. It has all operations of [`Group`].
pub(super) struct GroupMut<'c, 't> {
    read: Group<'c, 't>,
    pub(super) context: &'c WriteContext<'t>,
}

impl<'c, 't> GroupMut<'c, 't> {
    /// A group that was found, or created, in the stream of this key.
    pub(super) fn open(context: &'c WriteContext<'t>, key: &'c OpenKey, group: OpenGroup) -> Self {
        Self {
            read: Group::open(context, key, group),
            context,
        }
    }

    /// Its stream.
    pub(super) fn stream(&self) -> StreamMut<'c, 't> {
        StreamMut::open(self.context, self.read.key)
    }

    /// The group's row, to change it; [`Self::save`] writes it.
    pub(super) fn change(&mut self) -> &mut StreamGroup {
        &mut self.read.group.row
    }

    /// Writes the group's row.
    pub(super) fn save(&self) {
        let row = self
            .context
            .layout()
            .stream_group_key(self.key.data(), &self.name);
        self.context.transaction.set(&row, &self.row.encode());
    }

    /// Removes the group with its consumers and pending entries, and wakes the clients that wait for it.
    pub(super) fn destroy(&self) {
        let (context, data) = (self.context, self.key.data());
        let row = context.layout().stream_group_key(data, &self.name);
        context.transaction.clear(&row);
        for range in context.layout().stream_group_ranges(data, self.row.id) {
            context.transaction.clear_range(&range.begin, &range.end);
        }
        context.wake_waiting(self.key);
    }
}

impl<'c, 't> Deref for GroupMut<'c, 't> {
    type Target = Group<'c, 't>;

    fn deref(&self) -> &Group<'c, 't> {
        &self.read
    }
}

impl Stream<'_, '_> {
    /// A group of the stream. Read serializably it conflicts with all commands that deliver new entries
    /// to the group.
    pub async fn group(
        &self,
        name: &Bytes,
        isolation: Isolation,
    ) -> Result<Option<OpenGroup>, StoreError> {
        let row = self
            .context
            .layout()
            .stream_group_key(self.key.data(), name);
        let Some(value) = self.context.transaction.get(&row, isolation).await? else {
            return Ok(None);
        };
        Ok(Some(OpenGroup {
            name: name.clone(),
            row: StreamGroup::decode(&value)?,
        }))
    }

    /// The groups of the stream in the order of their names.
    pub async fn groups(&self) -> Result<Vec<OpenGroup>, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut pages = Pages::new(self.context, layout.stream_groups(data), false, 0);
        let mut groups = Vec::new();
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let in_key = layout.read_stream_group_key(data, &row.key)?;
                let row = StreamGroup::decode(&row.value)?;
                let name = full_name(in_key, &row.long_name)?;
                groups.push(OpenGroup { name, row });
            }
        }
        Ok(groups)
    }

    /// The stream's facts about its entries.
    pub async fn facts(&self) -> Result<StreamFacts, StoreError> {
        let first = self.range(IdRange::ALL, false, 1).await?;
        Ok(StreamFacts {
            head: self.head().await?,
            length: self
                .context
                .length(self.key, self.context.isolation)
                .await?,
            first: first.first().map_or(StreamId::MIN, |entry| entry.id),
            deleted: self.max_deleted_id().await?,
        })
    }
}

impl StreamMut<'_, '_> {
    /// Creates a group that counts all entries up to `last` as delivered. False if the name exists.
    ///
    /// # Errors
    /// `Text` if the name is too long.
    pub async fn create_group(
        &self,
        name: &Bytes,
        last: StreamId,
        entries_read: Option<u64>,
    ) -> Result<bool, CommandError> {
        check_name(name)?;
        if self.group(name, self.context.isolation).await?.is_some() {
            return Ok(false);
        }
        let row = StreamGroup {
            id: self.context.environment.ids.allocate(),
            last,
            entries_read,
            long_name: long_name(name),
            policy: None,
            is_by_delivery: false,
        };
        let name = name.clone();
        GroupMut::open(self.context, self.key, OpenGroup { name, row }).save();
        Ok(true)
    }
}

/// A name in a stream. It is in its row's key or, if it is long, in the row.
fn full_name(in_key: Option<Bytes>, in_row: &Option<Bytes>) -> Result<Bytes, StoreError> {
    in_key
        .or_else(|| in_row.clone())
        .ok_or(StoreError::Corrupt("a name in a stream is missing"))
}

fn check_name(name: &Bytes) -> Result<(), CommandError> {
    if name.len() > STREAM_NAME_BYTES_MAX {
        return Err(CommandError::Text(
            format!(
                "ERR name of a consumer group or consumer is longer than {STREAM_NAME_BYTES_MAX} \
                 bytes, the most that a stream keeps"
            )
            .into(),
        ));
    }
    Ok(())
}

/// The stream's facts about its entries, from which a group's lag is computed.
///
/// A stream knows how many entries were ever added, so it knows the numbers of its first and its
/// last entry in the order of additions. The number of any other entry is known only to a group
/// that has counted up to it, and only if no entry in between was deleted (Redis 7.2:
/// `streamEstimateDistanceFromFirstEverEntry`).
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts {
    /// The last id, and the number of entries that were ever added.
    pub head: StreamHead,
    /// The number of entries.
    pub length: i64,
    /// The id of the first entry, or the least id if no entry is left.
    pub first: StreamId,
    /// The greatest id that XDEL has deleted.
    pub deleted: StreamId,
}

impl StreamFacts {
    /// Whether an entry from this id on was deleted, as far as the stream knows.
    fn has_gaps_from(&self, id: StreamId) -> bool {
        self.length > 0
            && self.deleted != StreamId::MIN
            && self.first <= self.deleted
            && id <= self.deleted
    }

    /// How many entries were ever added up to this id. `None` if unknown.
    fn added_up_to(&self, id: StreamId) -> Option<u64> {
        let StreamHead { last, added } = self.head;
        if added == 0 {
            return Some(0);
        }
        if id == last || (self.length <= 0 && id < last) {
            return Some(added);
        }
        if id > last {
            return None;
        }
        let has_gaps = self.deleted != StreamId::MIN && self.deleted >= self.first;
        if has_gaps || id > self.first {
            return None;
        }
        let before_first = added.saturating_sub(u64::try_from(self.length).unwrap_or(0));
        Some(before_first + u64::from(id == self.first))
    }

    /// How many entries a group has read after this one was delivered. `read`: the number before.
    fn read_after(&self, read: Option<u64>, id: StreamId) -> Option<u64> {
        match read {
            Some(read) if !self.has_gaps_from(id) => Some(read.saturating_add(1)),
            read if self.head.added == 0 => read,
            _ => self.added_up_to(id),
        }
    }

    /// How many entries a group has yet to read. `None` if unknown. Negative if the group's counter
    /// was set to more than the stream's.
    pub fn lag(&self, group: &StreamGroup) -> Option<i64> {
        if self.head.added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !self.has_gaps_from(group.last) => Some(read),
            _ => self.added_up_to(group.last),
        };
        Some((self.head.added as i64).wrapping_sub(read? as i64))
    }
}
