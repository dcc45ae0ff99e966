//! Values that are too long for one row of the store, and concurrent reads within one command.

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;
use quoin_base::limits::{LARGE_READS_AT_ONCE, VALUE_CHUNK_BYTES_MAX};
use quoin_layout::{Id, KeyRange, StoredValue};
use quoin_store::StoreError;

use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};

impl ReadContext<'_> {
    /// The bytes of a stored value of `data`, joined if it is split.
    ///
    /// # Errors
    /// `Corrupt` if chunks are missing.
    pub async fn load_value(&self, data: Id, row: &Bytes) -> Result<Bytes, StoreError> {
        self.load_stored(data, StoredValue::decode(row)?).await
    }

    /// The bytes of a value of `data`, joined if it is split.
    ///
    /// # Errors
    /// `Corrupt` if chunks are missing.
    pub(crate) async fn load_stored(
        &self,
        data: Id,
        value: StoredValue,
    ) -> Result<Bytes, StoreError> {
        let (chunks, length) = match value {
            StoredValue::Plain(bytes) => return Ok(bytes),
            StoredValue::Split { chunks, length } => (chunks, length),
        };
        let range = KeyRange::children(&self.layout().chunks_prefix(data, chunks));
        // Conflicts arise on the row that names the chunks.
        let mut pages = Pages::new(self, range, false, 0).with_snapshot_reads();
        let mut whole = BytesMut::with_capacity(usize::try_from(length).unwrap_or(0));
        while let Some(rows) = pages.next().await? {
            for row in &rows {
                whole.extend_from_slice(&row.value);
            }
        }
        if whole.len() as u64 == length {
            Ok(whole.freeze())
        } else {
            Err(StoreError::Corrupt("chunks of a split value are missing"))
        }
    }
}

impl WriteContext<'_> {
    /// The row's value for `bytes`. Writes chunks if the value needs them.
    pub fn store_value(&self, data: Id, bytes: &[u8]) -> Vec<u8> {
        if !StoredValue::needs_split(bytes.len()) {
            return StoredValue::encode_plain(bytes);
        }
        let chunks = self.environment.ids.allocate();
        for (number, chunk) in (0_u64..).zip(bytes.chunks(VALUE_CHUNK_BYTES_MAX)) {
            let key = self.layout().chunk_key(data, chunks, number);
            self.transaction.set(&key, chunk);
        }
        StoredValue::encode_split(chunks, bytes.len())
    }

    /// Clears the chunks of a row's value that is about to be removed. This is unnecessary if a whole data id is
    /// removed, because its chunks are stored under it.
    ///
    /// # Errors
    /// If the row does not have this layout.
    pub fn discard_value(&self, data: Id, row: &Bytes) -> Result<(), StoreError> {
        self.discard_stored(data, &StoredValue::decode(row)?);
        Ok(())
    }

    /// Clears the chunks of a value that is about to be removed.
    pub(crate) fn discard_stored(&self, data: Id, value: &StoredValue) {
        if let StoredValue::Split { chunks, .. } = value {
            let range = KeyRange::children(&self.layout().chunks_prefix(data, *chunks));
            self.transaction.clear_range(&range.begin, &range.end);
        }
    }
}

impl ReadContext<'_> {
    /// Reads something for each item. If a read is a round trip, up to `at_once` reads run concurrently. Otherwise
    /// they run sequentially, because a future for each would cost as much as the read.
    ///
    /// # Errors
    /// The first error of `read`.
    pub(crate) async fn each<'i, I, T, E: From<StoreError>>(
        &self,
        items: &'i [I],
        at_once: usize,
        read: impl AsyncFn(&'i I) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut all = Vec::with_capacity(items.len());
        if !self.environment.capabilities.reads_wait {
            for item in items {
                all.push(read(item).await?);
            }
            return Ok(all);
        }
        // Once, instead of in each of the reads.
        self.namespace().await?;
        for some in items.chunks(at_once.max(1)) {
            all.extend(try_join_all(some.iter().map(|item| read(item))).await?);
        }
        Ok(all)
    }

    /// How many values of any size are read concurrently. One if reads are not round trips.
    pub(crate) fn large_reads_at_once(&self) -> usize {
        match self.environment.capabilities.reads_wait {
            false => 1,
            true => LARGE_READS_AT_ONCE,
        }
    }
}
