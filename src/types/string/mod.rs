//! Strings.
//!
//! A short string lies whole in its key's metadata. A longer one lies in pieces
//! ([`layout::string`](crate::layout::string)) from then on, and its length counter holds its bytes.
//! Bytes that no piece holds are zeros, so a write far beyond the end costs one piece.

use bytes::{Bytes, BytesMut};

use crate::error::CommandError;
use crate::layout::ValueType;
use crate::layout::string::PIECE_BYTES;
use crate::store::{Isolation, StoreError};

use super::context::{ReadContext, WriteContext};
use super::key::OpenKey;
use super::pages::Pages;

pub mod hyperloglog;
mod kind;
#[cfg(test)]
mod tests;

pub use kind::KIND;

/// Bytes of a string that lies in metadata. LMDB puts larger values into pages of their own, SCAN
/// reads them too, and a change writes all of it.
const BODY_BYTES_MAX: usize = 1_024;
/// [`PIECE_BYTES`] as an offset.
const PIECE: u64 = PIECE_BYTES as u64;

impl ReadContext<'_> {
    /// The whole string.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn string_get(&self, key: &OpenKey) -> Result<Bytes, StoreError> {
        if let Some(body) = &key.meta.body {
            return Ok(body.bytes.clone());
        }
        let length = self.length(key, self.isolation).await?;
        self.read_pieces(key, 0, length.unsigned_abs()).await
    }

    /// The bytes `begin..end` of the string, which must not end before that.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn string_range(
        &self,
        key: &OpenKey,
        begin: u64,
        end: u64,
    ) -> Result<Bytes, StoreError> {
        if let Some(body) = &key.meta.body {
            let length = body.bytes.len();
            let offset = |at: u64| usize::try_from(at).map_or(length, |at| at.min(length));
            let (begin, end) = (offset(begin), offset(end));
            return Ok(body.bytes.slice(begin.min(end)..end));
        }
        self.read_pieces(key, begin, end).await
    }

    async fn read_pieces(&self, key: &OpenKey, begin: u64, end: u64) -> Result<Bytes, StoreError> {
        if begin >= end {
            return Ok(Bytes::new());
        }
        let too_long = |_| StoreError::Corrupt("a string is longer than memory");
        let bytes = usize::try_from(end - begin).map_err(too_long)?;
        let mut whole = BytesMut::zeroed(bytes);
        let last = end.div_ceil(PIECE);
        let range = self.layout().pieces(key.data(), begin / PIECE, last);
        let mut pages = Pages::new(self, range, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let number = self.layout().read_piece_key(key.data(), &row.key)?;
                copy_piece(&mut whole, begin, number.saturating_mul(PIECE), &row.value);
            }
        }
        Ok(whole.freeze())
    }
}

/// Copies what a piece that begins at `at` has of the bytes from `begin` on.
fn copy_piece(whole: &mut [u8], begin: u64, at: u64, piece: &[u8]) {
    let skipped = usize::try_from(begin.saturating_sub(at)).unwrap_or(usize::MAX);
    let place = usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
    let from = piece.get(skipped..).unwrap_or_default();
    let to = whole.get_mut(place..).unwrap_or_default();
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

impl WriteContext<'_> {
    /// Puts a string in place of whatever is at `name`.
    ///
    /// # Errors
    /// `KeyNameTooLong`; when the store fails.
    pub async fn string_set(
        &self,
        name: &Bytes,
        value: &Bytes,
        expire_at_ms: Option<i64>,
    ) -> Result<OpenKey, CommandError> {
        let value_type = ValueType::String;
        if value.len() <= BODY_BYTES_MAX {
            // Not a slice of the request, which would keep all of that.
            let body = Some(Bytes::copy_from_slice(value));
            return self.create_with(name, value_type, expire_at_ms, body).await;
        }
        let key = self.create(name, value_type, expire_at_ms).await?;
        self.write_pieces(&key, 0, value).await?;
        self.add_length(&key, length_of(value));
        Ok(key)
    }

    /// Puts another value in place of a string's, and leaves its expiry what it is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn string_replace(&self, key: &mut OpenKey, value: &Bytes) -> Result<(), StoreError> {
        if key.meta.body.is_some() && value.len() <= BODY_BYTES_MAX {
            self.write_body(key, Bytes::copy_from_slice(value));
            return Ok(());
        }
        let old_length = self.length(key, self.isolation).await?;
        let delta = match key.meta.body {
            Some(_) => {
                self.drop_body(key, 0);
                length_of(value)
            }
            None => {
                let all = self.layout().pieces(key.data(), 0, u64::MAX);
                self.transaction.clear_range(&all.begin, &all.end);
                length_of(value) - old_length
            }
        };
        self.write_pieces(key, 0, value).await?;
        self.count_change(key, delta);
        Ok(())
    }

    /// Writes bytes from an offset on, over what is there; zeros fill up what lies between the end
    /// and the offset. Answers the length of the string after that. Nothing is changed where there
    /// are no bytes.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn string_write(
        &self,
        key: &mut OpenKey,
        offset: u64,
        bytes: &[u8],
    ) -> Result<i64, StoreError> {
        let length = self.length(key, self.isolation).await?;
        if bytes.is_empty() {
            return Ok(length);
        }
        let end = offset.saturating_add(bytes.len() as u64);
        let end_length = i64::try_from(end).unwrap_or(i64::MAX);
        let delta = (end_length - length).max(0);
        if let Some(body) = &key.meta.body {
            if end <= BODY_BYTES_MAX as u64 {
                let mut changed = BytesMut::from(body.bytes.as_ref());
                let end = usize::try_from(end).unwrap_or(usize::MAX);
                changed.resize(changed.len().max(end), 0);
                copy_piece(&mut changed, 0, offset, bytes);
                self.write_body(key, changed.freeze());
                return Ok(length + delta);
            }
            let before = body.bytes.clone();
            self.drop_body(key, length);
            self.write_pieces(key, 0, &before).await?;
        }
        self.write_pieces(key, offset, bytes).await?;
        self.count_change(key, delta);
        Ok(length + delta)
    }

    /// Writes bytes into pieces, over what is there.
    async fn write_pieces(
        &self,
        key: &OpenKey,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = usize::try_from(at % PIECE).unwrap_or(0);
            let (part, others) = rest.split_at(rest.len().min(PIECE_BYTES - within));
            let row = self.layout().piece_key(key.data(), at / PIECE);
            if part.len() == PIECE_BYTES {
                self.transaction.set(&row, part);
            } else {
                let old = self.transaction.get(&row, Isolation::Serializable).await?;
                let mut piece = BytesMut::from(old.as_deref().unwrap_or_default());
                piece.resize(piece.len().max(within + part.len()), 0);
                copy_piece(&mut piece, 0, within as u64, part);
                self.transaction.set(&row, &piece);
            }
            at += part.len() as u64;
            rest = others;
        }
        Ok(())
    }
}

fn length_of(value: &Bytes) -> i64 {
    i64::try_from(value.len()).unwrap_or(i64::MAX)
}
