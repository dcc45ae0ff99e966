//! Sweeping retained metadata, of keys that have no elements (see [`crate::keyspace`]).
//!
//! A queue whose consumers keep up is empty most of the time. It must not be swept amid its pushes,
//! which would conflict with that. So retained metadata is swept at a second look, if it was not
//! used since the first.

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::keyspace::presence::Presence;
use crate::keyspace::scanning::KeyScan;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{KeysRow, Meta, decode_length, successor};
use quoin_store::{Isolation, StoreError};

/// Retained metadata as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedMeta {
    /// Key of its metadata.
    pub meta_key: Bytes,
    /// Its length counter, which every use of the key changes; empty where there is none.
    pub counter: Bytes,
}

impl ReadContext<'_> {
    /// Looks for retained metadata among the keys of the context's database from `hash` on, looking
    /// at about `keys_max`. Answers where to go on, 0 at the end, and what was found. Conflicts
    /// with nothing.
    pub async fn retained(
        &self,
        hash: u64,
        keys_max: usize,
    ) -> Result<(u64, Vec<RetainedMeta>), StoreError> {
        let namespace = self.namespace().await?;
        let mut scan =
            KeyScan::new(self, namespace, hash, keys_max.saturating_add(1)).with_snapshot_reads();
        let mut looked_at = 0_usize;
        let mut last_hash = 0;
        let mut retained = Vec::new();
        while let Some(found) = scan.next().await? {
            let hash = found.key.name.hash();
            if looked_at >= keys_max && hash != last_hash {
                return Ok((last_hash + 1, retained));
            }
            looked_at += 1;
            last_hash = hash;
            if self.presence(&found.key.meta, found.length) == Presence::Retained {
                retained.push(RetainedMeta {
                    meta_key: found.key.meta_key.into(),
                    counter: found.counter.unwrap_or_default(),
                });
            }
        }
        Ok((0, retained))
    }
}

impl WriteContext<'_> {
    /// Sweeps retained metadata of the context's database, if it was not used since it was found;
    /// answers whether it did.
    ///
    /// No push is lost: a push reads the key's metadata serializably and adds to its length. One
    /// that commits before this changes the length that was read here, and this conflicts; one
    /// that commits after this finds its metadata changed, conflicts, and creates the key again.
    pub async fn sweep_retained(&self, found: &RetainedMeta) -> Result<bool, StoreError> {
        let KeysRow::Meta(name) = self.layout().read_keys_row(&found.meta_key)? else {
            return Ok(false);
        };
        let namespace = self.namespace().await?;
        let meta_key = self.layout().meta_key(namespace, &name);
        // The database may show another namespace by now.
        if meta_key != found.meta_key {
            return Ok(false);
        }
        let length_key = self.layout().length_key(&meta_key);
        let (meta, counter) = futures_util::try_join!(
            self.transaction.get(&meta_key, Isolation::Snapshot),
            self.transaction.get(&length_key, Isolation::Snapshot),
        )?;
        let Some(meta) = meta.map(|value| Meta::decode(&value)).transpose()? else {
            return Ok(false);
        };
        let presence = self.presence(&meta, decode_length(counter.as_ref())?);
        let is_used = counter.unwrap_or_default() != found.counter;
        if is_used || presence != Presence::Retained {
            return Ok(false);
        }
        // Only now: what is not swept must not conflict.
        for row in [&meta_key, &length_key] {
            self.transaction
                .add_read_conflict_range(row, &successor(row));
        }
        let key = OpenKey {
            database: None,
            namespace,
            name,
            meta_key,
            meta,
        };
        // Elements that were popped for a dead server return to it.
        if self.has_grants(&key).await? {
            return Ok(false);
        }
        self.remove_empty(&key);
        Ok(true)
    }
}
