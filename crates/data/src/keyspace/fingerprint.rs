//! The fingerprint of a key, which WATCH compares.

use bytes::{Bytes, BytesMut};

use quoin_layout::{Meta, decode_length};
use quoin_store::StoreError;

use crate::keyspace::presence::Presence;
use crate::unit::context::ReadContext;

impl ReadContext<'_> {
    /// Bytes that change with every change of a key, by any server; `None` if there is no such key. They consist of the
    /// key's metadata (changed by RENAME, EXPIRE and new values) and the row with its length and change counter.
    /// Watching costs pushes nothing: they add to that row without reading it, and only a transaction that reads it can
    /// conflict.
    pub async fn fingerprint(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        let (meta_key, Some(meta_row)) = self.meta_row(key).await? else {
            return Ok(None);
        };
        let meta = Meta::decode(&meta_row)?;
        if self.is_expired(&meta) {
            return Ok(None);
        }
        let length_key = self.layout().length_key(&meta_key);
        let length_row = self.transaction.get(&length_key, self.isolation).await?;
        if self.may_be_retained(&meta)
            && self.presence(&meta, decode_length(length_row.as_ref())?) == Presence::Retained
        {
            return Ok(None);
        }
        let mut bytes = BytesMut::from(length_row.as_deref().unwrap_or_default());
        match meta.rank_levels {
            0 => bytes.extend_from_slice(&meta_row),
            // Rank levels change although the value does not.
            _ => bytes.extend_from_slice(
                &Meta {
                    rank_levels: 0,
                    ..meta
                }
                .encode(),
            ),
        }
        Ok(Some(bytes.freeze()))
    }
}
