//! Consumer groups: each entry of a stream goes to one consumer of a group, and is pending until it is
//! acknowledged.
//!
//! A group's row holds how far the group has read. Only those that deliver new entries write it, so
//! readers of one group conflict with each other and with nothing else: they read entries at a
//! snapshot, which an XADD that commits meanwhile can only continue.
//!
//! A pending entry has two rows, one of the group and one of its consumer, and two counters. Every
//! change of a pending entry reads the first of these rows serializably. DESTROY and DELCONSUMER clear
//! it, so no change of a pending entry survives them.
//!
//! - this file: groups themselves;
//! - `consumers`: consumers of a group;
//! - `pending`: rows and counters of pending entries;
//! - `lag`: how many entries a group has read, where that is known;
//! - `deliver`: XREADGROUP;
//! - `delivering`: several of them as one;
//! - `claim`: XCLAIM and XAUTOCLAIM;
//! - `acknowledge`: XACK;
//! - `release`: XNACK;
//! - `references`: deleting entries with what groups know of them: XDELEX and XACKDEL;
//! - `policy`: XGROUP SETPOLICY, and what a policy has XREADGROUP do;
//! - `dead_letter`: entries that were delivered too often;
//! - `checks`: what `quoin doctor` looks up.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::STREAM_NAME_BYTES_MAX;
use quoin_layout::stream_group::long_name;
use quoin_layout::{StreamGroup, StreamId};
use quoin_store::{Isolation, StoreError};

mod acknowledge;
pub(super) mod checks;
mod claim;
mod consumers;
mod dead_letter;
mod deliver;
mod delivering;
mod lag;
mod pending;
mod policy;
mod references;
mod release;

pub use claim::{AutoClaim, Claim, Claimed};
pub use consumers::OpenConsumer;
pub use deliver::HistoryEntry;
pub use delivering::Delivering;
pub use lag::StreamFacts;
pub use pending::PendingEntry;
pub use references::{Deletion, References};
pub use release::{Release, ReleaseMode};

/// A group that was found in this transaction.
#[derive(Debug, Clone)]
pub struct OpenGroup {
    /// Its name.
    pub name: Bytes,
    /// Its row.
    pub row: StreamGroup,
}

/// A name in a stream, which stands in its row's key or, if it is long, in the row.
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

impl ReadContext<'_> {
    /// A group of a stream. Read serializably it conflicts with all that deliver new entries to the
    /// group.
    pub async fn stream_group(
        &self,
        key: &OpenKey,
        name: &Bytes,
        isolation: Isolation,
    ) -> Result<Option<OpenGroup>, StoreError> {
        let row = self.layout().stream_group_key(key.data(), name);
        let Some(value) = self.transaction.get(&row, isolation).await? else {
            return Ok(None);
        };
        Ok(Some(OpenGroup {
            name: name.clone(),
            row: StreamGroup::decode(&value)?,
        }))
    }

    /// The groups of a stream in the order of their names.
    pub async fn stream_groups(&self, key: &OpenKey) -> Result<Vec<OpenGroup>, StoreError> {
        let (layout, data) = (self.layout(), key.data());
        let mut pages = Pages::new(self, layout.stream_groups(data), false, 0);
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
}

impl WriteContext<'_> {
    /// Makes a group that was given all entries up to `last`; false where there is one of that name.
    ///
    /// # Errors
    /// `Text` for a name that is too long.
    pub async fn stream_create_group(
        &self,
        key: &OpenKey,
        name: &Bytes,
        last: StreamId,
        entries_read: Option<u64>,
    ) -> Result<bool, CommandError> {
        check_name(name)?;
        if self
            .stream_group(key, name, self.isolation)
            .await?
            .is_some()
        {
            return Ok(false);
        }
        let row = StreamGroup {
            id: self.environment.ids.allocate(),
            last,
            entries_read,
            long_name: long_name(name),
            policy: None,
        };
        let name = name.clone();
        self.set_stream_group(key, &OpenGroup { name, row });
        Ok(true)
    }

    /// Writes a group's row.
    pub fn set_stream_group(&self, key: &OpenKey, group: &OpenGroup) {
        let row = self.layout().stream_group_key(key.data(), &group.name);
        self.transaction.set(&row, &group.row.encode());
    }

    /// Removes a group with all that belongs to it, and tells its clients that wait.
    pub fn stream_destroy_group(&self, key: &OpenKey, group: &OpenGroup) {
        let (layout, data) = (self.layout(), key.data());
        self.transaction
            .clear(&layout.stream_group_key(data, &group.name));
        for range in layout.stream_group_ranges(data, group.row.id) {
            self.transaction.clear_range(&range.begin, &range.end);
        }
        self.wake_waiting(key);
    }
}
