//! RENAME, MOVE and COPY of whole values.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::kind::TypeKind;
use quoin_layout::{KeyRange, Meta};
use quoin_store::{Isolation, StoreError};

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Holds;
use crate::rows::pages::Pages;
use crate::unit::context::WriteContext;

impl WriteContext<'_> {
    /// Gives a key another name, in the database of `to`, in place of what has it. Moves no
    /// data, and keeps the expiry.
    pub async fn move_key(
        &self,
        source: &OpenKey,
        to: &WriteContext<'_>,
        name: &Bytes,
    ) -> Result<(), CommandError> {
        self.return_grants(source).await?;
        // Serializable: an element that is pushed meanwhile is counted at the old name.
        let length = self.length(source, Isolation::Serializable).await?;
        self.detach(source);
        to.put(name, source.meta.clone(), length).await?;
        Ok(())
    }

    /// Copies a key with its expiry, in place of what has the new name. Rows of data do not
    /// contain their own data id, so they are copied as they are, chunks of split values
    /// included. Copies of metadata, which name the key, are left out, and so are blocks for ranks.
    ///
    /// Where the copy turns out larger than a transaction may be, this stops in the middle: the
    /// executor refuses the command for its size, and nothing of it is kept.
    pub async fn copy_key(
        &self,
        source: &OpenKey,
        to: &WriteContext<'_>,
        name: &Bytes,
    ) -> Result<(), CommandError> {
        let length = self.length(source, Isolation::Serializable).await?;
        let data = self.environment.ids.allocate();
        let meta = Meta {
            data,
            // Blocks are made again when they are wanted.
            rank_levels: 0,
            ..source.meta.clone()
        };
        if meta.body.is_some() {
            to.put(name, meta, length).await?;
            return Ok(());
        }
        let from_prefix = self.layout().data_prefix(source.data());
        let to_prefix = self.layout().data_prefix(data);
        let sections = source.meta.value_type.kind().sections.iter();
        let ranks = sections.filter(|kind| matches!(kind.holds, Holds::Ranks));
        let ranks: Vec<Vec<u8>> = ranks
            .map(|kind| self.layout().section_prefix(source.data(), kind.section))
            .collect();
        let is_of_ranks = |key: &Bytes| ranks.iter().any(|prefix| key.starts_with(prefix));
        let mut pages = Pages::new(self, KeyRange::children(&from_prefix), false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                if self.layout().is_meta_copy(&row.key) || is_of_ranks(&row.key) {
                    continue;
                }
                let Some(suffix) = row.key.strip_prefix(from_prefix.as_slice()) else {
                    return Err(StoreError::Corrupt("row outside the range that was read").into());
                };
                let key = [to_prefix.as_slice(), suffix].concat();
                self.transaction.set(&key, &row.value);
            }
            if self.transaction.size_bytes() > self.environment.capabilities.transaction_bytes_max {
                return Ok(());
            }
        }
        to.put(name, meta, length).await?;
        Ok(())
    }
}
