//! How many entries a group has read, and how many it has still to read.
//!
//! A stream knows how many entries it was ever given, and so the place of its first and of its last
//! entry among them. The place of any other is known only by a group that has counted up to it and as
//! long as no entry in between was deleted (Redis 7.2: `streamEstimateDistanceFromFirstEverEntry`).

use crate::keyspace::key::OpenKey;
use crate::stream::IdRange;
use crate::unit::context::ReadContext;
use quoin_layout::{StreamGroup, StreamHead, StreamId};
use quoin_store::StoreError;

/// What a stream knows of its entries.
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts {
    /// The last id, and how many entries there ever were.
    pub head: StreamHead,
    /// How many there are.
    pub length: i64,
    /// The id of the first; the least id where there is none.
    pub first: StreamId,
    /// The greatest id that XDEL has deleted.
    pub deleted: StreamId,
}

impl StreamFacts {
    /// Whether an entry from this id on was deleted, as far as is known.
    fn has_gaps_from(&self, id: StreamId) -> bool {
        self.length > 0
            && self.deleted != StreamId::MIN
            && self.first <= self.deleted
            && id <= self.deleted
    }

    /// How many entries were ever added up to this id, if that is known.
    fn place_of(&self, id: StreamId) -> Option<u64> {
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

    /// How many entries a group has read that counted `read` of them before it was given this one.
    pub(super) fn read_after(&self, read: Option<u64>, id: StreamId) -> Option<u64> {
        match read {
            Some(read) if !self.has_gaps_from(id) => Some(read.saturating_add(1)),
            read if self.head.added == 0 => read,
            _ => self.place_of(id),
        }
    }

    /// How many entries a group has still to read, if that is known. Negative where the counter was
    /// set to more than there are.
    pub fn lag(&self, group: &StreamGroup) -> Option<i64> {
        if self.head.added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !self.has_gaps_from(group.last) => Some(read),
            _ => self.place_of(group.last),
        };
        Some((self.head.added as i64).wrapping_sub(read? as i64))
    }
}

impl ReadContext<'_> {
    /// What a stream knows of its entries.
    pub async fn stream_facts(&self, key: &OpenKey) -> Result<StreamFacts, StoreError> {
        let first = self.stream_range(key, IdRange::ALL, false, 1).await?;
        Ok(StreamFacts {
            head: self.stream_head(key).await?,
            length: self.length(key, self.isolation).await?,
            first: first.first().map_or(StreamId::MIN, |entry| entry.id),
            deleted: self.stream_deleted(key).await?,
        })
    }
}
