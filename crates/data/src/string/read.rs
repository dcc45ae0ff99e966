//! Reading strings, whole and in parts.

use bytes::{Bytes, BytesMut};

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_store::{Isolation, StoreError};

use super::{PAGE_PIECES, PIECE, clip, copy_piece};

impl ReadContext<'_> {
    /// The bytes of a string.
    pub async fn string_length(&self, key: &OpenKey) -> Result<u64, StoreError> {
        let length = self.length(key, self.isolation).await?;
        checked_length(length)
    }

    /// The whole string.
    pub async fn string_get(&self, key: &OpenKey) -> Result<Bytes, StoreError> {
        if let Some(body) = &key.meta.body {
            return Ok(body.bytes.clone());
        }
        let length = self.string_length(key).await?;
        self.read_pieces(key, 0, length).await
    }

    /// The bytes `begin..end` of a string. Of one in pieces, zeros stand for what is beyond its end;
    /// a string in metadata ends where it ends.
    pub async fn string_range(
        &self,
        key: &OpenKey,
        begin: u64,
        end: u64,
    ) -> Result<Bytes, StoreError> {
        if let Some(body) = &key.meta.body {
            return Ok(clip(&body.bytes, 0, begin, end).1);
        }
        self.read_pieces(key, begin, end).await
    }

    async fn read_pieces(&self, key: &OpenKey, begin: u64, end: u64) -> Result<Bytes, StoreError> {
        let bytes = usize::try_from(end.saturating_sub(begin));
        let bytes = bytes.map_err(|_| StoreError::Corrupt("a string is longer than memory"))?;
        let mut whole = BytesMut::zeroed(bytes);
        let mut parts = self.string_parts(key, begin, end);
        while let Some(page) = parts.next().await? {
            for (at, part) in page {
                copy_piece(&mut whole, begin, at, &part);
            }
        }
        Ok(whole.freeze())
    }

    /// What is stored of the bytes `begin..end` of a string, a page at a time.
    pub(super) fn string_parts(&self, key: &OpenKey, begin: u64, end: u64) -> Parts<'_> {
        let parts = |source| Parts { source, begin, end };
        let empty = Source::Body(None);
        if begin >= end {
            return parts(empty);
        }
        if let Some(body) = &key.meta.body {
            return parts(Source::Body(Some(body.bytes.clone())));
        }
        let layout = self.layout();
        let range = layout.pieces(key.data(), begin / PIECE, end.div_ceil(PIECE));
        let pages = Pages::new(self, range, false, 0).of_rows(PAGE_PIECES);
        parts(Source::Pieces(Box::new((self, key.clone(), pages))))
    }
}

/// What is stored of a string; see [`ReadContext::string_parts`].
pub(super) struct Parts<'c> {
    source: Source<'c>,
    begin: u64,
    end: u64,
}

enum Source<'c> {
    Body(Option<Bytes>),
    Pieces(Box<(&'c ReadContext<'c>, OpenKey, Pages<'c, 'c>)>),
}

impl Parts<'_> {
    /// The next parts in their order, each with its offset; between them are zeros. `None` after
    /// the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<(u64, Bytes)>>, StoreError> {
        let (begin, end) = (self.begin, self.end);
        match &mut self.source {
            Source::Body(body) => Ok(body.take().map(|body| vec![clip(&body, 0, begin, end)])),
            Source::Pieces(pieces) => {
                let (context, key, pages) = &mut **pieces;
                let Some(rows) = pages.next().await? else {
                    return Ok(None);
                };
                let mut page = Vec::with_capacity(rows.len());
                for row in rows {
                    let number = context.layout().read_piece_key(key.data(), &row.key)?;
                    let at = number.saturating_mul(PIECE);
                    page.push(clip(&row.value, at, begin, end));
                }
                Ok(Some(page))
            }
        }
    }
}

/// A length counter as bytes: what a string can have, so that no damage makes room for more.
pub(super) fn checked_length(length: i64) -> Result<u64, StoreError> {
    match u64::try_from(length) {
        Ok(length) if length <= STRING_BYTES_MAX as u64 => Ok(length),
        _ => Err(StoreError::Corrupt("a string is longer than it can be")),
    }
}

impl ReadContext<'_> {
    /// Whether a string has all bytes up to an offset; see [`Self::length_for_write`].
    pub async fn string_reaches(&self, key: &OpenKey, end: u64) -> Result<bool, StoreError> {
        Ok(self.length_for_write(key, end).await? >= end)
    }

    /// The length as far as a write needs it that ends at `end`. A string in pieces never becomes
    /// shorter, so where it is longer than that, a write of others that lengthens it is no conflict.
    pub(super) async fn length_for_write(
        &self,
        key: &OpenKey,
        end: u64,
    ) -> Result<u64, StoreError> {
        let length = checked_length(self.length(key, self.relaxed()).await?)?;
        if end <= length {
            return Ok(length);
        }
        checked_length(self.length(key, Isolation::Serializable).await?)
    }
}
