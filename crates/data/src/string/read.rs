//! Reads of strings, whole and in parts.

use bytes::{Bytes, BytesMut};

use crate::rows::pages::Pages;
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_store::{Isolation, StoreError};

use super::{PAGE_PIECES, PIECE, StringValue, clip, copy_piece};

impl<'c> StringValue<'c, '_> {
    /// The length in bytes.
    pub async fn length(&self) -> Result<u64, StoreError> {
        let length = self.context.length(self.key, self.context.isolation);
        checked_length(length.await?)
    }

    /// The whole string.
    pub async fn get(&self) -> Result<Bytes, StoreError> {
        if let Some(inline) = &self.key.meta.inline {
            return Ok(inline.bytes.clone());
        }
        let length = self.length().await?;
        self.read_pieces(0, length).await
    }

    /// The bytes `begin..end`. A string in pieces has zeros after its end. One in metadata ends at
    /// its end.
    pub async fn range(&self, begin: u64, end: u64) -> Result<Bytes, StoreError> {
        if let Some(inline) = &self.key.meta.inline {
            return Ok(clip(&inline.bytes, 0, begin, end).1);
        }
        self.read_pieces(begin, end).await
    }

    async fn read_pieces(&self, begin: u64, end: u64) -> Result<Bytes, StoreError> {
        let bytes = usize::try_from(end.saturating_sub(begin));
        let bytes = bytes.map_err(|_| StoreError::Corrupt("a string is longer than memory"))?;
        let mut whole = BytesMut::zeroed(bytes);
        let mut parts = self.parts(begin, end);
        while let Some(page) = parts.next().await? {
            for (at, part) in page {
                copy_piece(&mut whole, begin, at, &part);
            }
        }
        Ok(whole.freeze())
    }

    /// The stored parts of the bytes `begin..end`, a page at a time.
    pub(super) fn parts(&self, begin: u64, end: u64) -> Parts<'c> {
        let parts = |source| Parts { source, begin, end };
        if begin >= end {
            return parts(Source::Inline(None));
        }
        if let Some(inline) = &self.key.meta.inline {
            return parts(Source::Inline(Some(inline.bytes.clone())));
        }
        let layout = self.context.layout();
        let range = layout.pieces(self.key.data(), begin / PIECE, end.div_ceil(PIECE));
        let pages = Pages::new(self.context, range, false, 0).of_rows(PAGE_PIECES);
        let string = StringValue::open(self.context, self.key);
        parts(Source::Pieces(Box::new((string, pages))))
    }

    /// Whether the string has all bytes up to `end`. A string in pieces never becomes shorter, so
    /// `true` does not conflict with a write that lengthens it.
    pub(super) async fn reaches(&self, end: u64) -> Result<bool, StoreError> {
        Ok(self.length_for_write(end).await? >= end)
    }

    /// The length for a write that ends at `end`. It is exact only if it is less than `end`; see
    /// [`Self::reaches`].
    pub(super) async fn length_for_write(&self, end: u64) -> Result<u64, StoreError> {
        let context = self.context;
        let length = checked_length(context.length(self.key, context.relaxed()).await?)?;
        if end <= length {
            return Ok(length);
        }
        checked_length(context.length(self.key, Isolation::Serializable).await?)
    }
}

/// The stored parts of a string; see [`StringValue::parts`].
pub(super) struct Parts<'c> {
    source: Source<'c>,
    begin: u64,
    end: u64,
}

enum Source<'c> {
    Inline(Option<Bytes>),
    Pieces(Box<(StringValue<'c, 'c>, Pages<'c, 'c>)>),
}

impl Parts<'_> {
    /// The next parts, each with its offset. Zeros are between them. `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<(u64, Bytes)>>, StoreError> {
        let (begin, end) = (self.begin, self.end);
        match &mut self.source {
            Source::Inline(inline) => Ok(inline
                .take()
                .map(|inline| vec![clip(&inline, 0, begin, end)])),
            Source::Pieces(pieces) => {
                let (string, pages) = &mut **pieces;
                let Some(rows) = pages.next().await? else {
                    return Ok(None);
                };
                let (layout, data) = (string.context.layout(), string.key.data());
                let mut page = Vec::with_capacity(rows.len());
                for row in rows {
                    let number = layout.read_piece_key(data, &row.key)?;
                    let at = number.saturating_mul(PIECE);
                    page.push(clip(&row.value, at, begin, end));
                }
                Ok(Some(page))
            }
        }
    }
}

/// The value of a length counter in bytes. An impossible length is an error, so that damage cannot
/// exhaust memory.
fn checked_length(length: i64) -> Result<u64, StoreError> {
    match u64::try_from(length) {
        Ok(length) if length <= STRING_BYTES_MAX as u64 => Ok(length),
        _ => Err(StoreError::Corrupt("a string is longer than it can be")),
    }
}
