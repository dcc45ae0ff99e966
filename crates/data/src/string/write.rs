//! Writes of strings: whole, at an offset, and beyond the end.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::INLINE_BYTES_MAX;
use crate::unit::context::WriteContext;
use quoin_layout::string::PIECE_BYTES;
use quoin_layout::{Id, InlineValue, Meta, ValueType};
use quoin_store::{Isolation, StoreError};

use super::{PIECE, StringValue, StringValueMut, copy_piece, padded};

/// Replaces any value at `name` by a string.
///
/// # Errors
/// `KeyNameTooLong`.
pub(crate) async fn set(
    context: &WriteContext<'_>,
    name: &Bytes,
    value: &Bytes,
    expire_at_ms: Option<i64>,
) -> Result<OpenKey, CommandError> {
    let data = context.environment.ids.allocate();
    if value.len() > INLINE_BYTES_MAX {
        write_new_pieces(context, data, 0, value);
        return set_pieces(context, name, data, value.len() as u64, expire_at_ms).await;
    }
    // A slice of the request would keep the whole request in memory.
    let inline = Some(InlineValue::new(Bytes::copy_from_slice(value)));
    let meta = string_meta(data, expire_at_ms, inline);
    context.create_as(name, meta, 0).await
}

/// Replaces any value at `name` by a string whose pieces are already written.
pub(super) async fn set_pieces(
    context: &WriteContext<'_>,
    name: &Bytes,
    data: Id,
    length: u64,
    expire_at_ms: Option<i64>,
) -> Result<OpenKey, CommandError> {
    let meta = string_meta(data, expire_at_ms, None);
    context.create_as(name, meta, signed(length)).await
}

/// Sets the value of the string that was found at `name`, which keeps its expiry. If none was found,
/// creates it.
///
/// # Errors
/// `KeyNameTooLong`.
pub(crate) async fn put(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    value: &Bytes,
) -> Result<(), CommandError> {
    match found {
        Some(mut key) => StringValueMut::open(context, &mut key).replace(value).await,
        None => set(context, name, value, None).await.map(drop),
    }
}

impl StringValueMut<'_, '_> {
    /// Replaces the value. The expiry stays.
    ///
    /// A string in pieces gets new data, so that its pieces are never cleared while other transactions
    /// write some of them.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn replace(&mut self, value: &Bytes) -> Result<(), CommandError> {
        let meta = &self.key.meta;
        if meta.inline.is_some() && value.len() <= INLINE_BYTES_MAX {
            let inline = Bytes::copy_from_slice(value);
            self.context.write_inline(self.key, inline);
            return Ok(());
        }
        let name = meta.full_name(&self.key.name)?.clone();
        *self.key = set(self.context, &name, value, meta.expire_at_ms).await?;
        Ok(())
    }

    /// Overwrites bytes from an offset on. Zeros fill the gap between the end and the offset. Returns
    /// the new length. Changes nothing if `bytes` is empty.
    pub async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        let end = offset.saturating_add(bytes.len() as u64);
        let length = self.length_for_write(end).await?;
        if bytes.is_empty() {
            return Ok(length);
        }
        let new_length = length.max(end);
        match &self.key.meta.inline {
            Some(inline) if end <= INLINE_BYTES_MAX as u64 => {
                let mut changed = padded(&inline.bytes, end);
                copy_piece(&mut changed, 0, offset, bytes);
                self.context.write_inline(self.key, changed.freeze());
                return Ok(new_length);
            }
            Some(_) => self.inline_to_pieces(new_length),
            None => self.count_longer(length, new_length),
        }
        self.write_pieces(offset, bytes).await?;
        Ok(new_length)
    }

    /// Appends zeros up to a length. Returns false if the string already has that length.
    pub async fn lengthen(&mut self, length: u64) -> Result<bool, StoreError> {
        let old_length = self.length_for_write(length).await?;
        if length <= old_length {
            return Ok(false);
        }
        match &self.key.meta.inline {
            Some(inline) if length <= INLINE_BYTES_MAX as u64 => {
                let bytes = padded(&inline.bytes, length).freeze();
                self.context.write_inline(self.key, bytes);
            }
            Some(_) => self.inline_to_pieces(length),
            None => self.count_longer(old_length, length),
        }
        Ok(true)
    }

    /// Lets WATCH see a write that did not change the value.
    pub fn touch(&mut self) {
        match &self.key.meta.inline {
            Some(inline) => {
                let bytes = inline.bytes.clone();
                self.context.write_inline(self.key, bytes);
            }
            None => self.context.mark_changed(self.key),
        }
    }

    async fn length_for_write(&self, end: u64) -> Result<u64, StoreError> {
        let string = StringValue::open(self.context, self.key);
        string.length_for_write(end).await
    }

    fn count_longer(&self, length: u64, new_length: u64) {
        let delta = signed(new_length) - signed(length);
        self.context.count_change(self.key, delta);
    }

    /// Moves a string from metadata into pieces. `length` is its new length.
    fn inline_to_pieces(&mut self, length: u64) {
        let inline = self.key.meta.inline.as_ref();
        let before = inline
            .map(|inline| inline.bytes.clone())
            .unwrap_or_default();
        self.context.drop_inline(self.key, signed(length));
        write_new_pieces(self.context, self.key.data(), 0, &before);
    }

    /// Overwrites bytes of pieces.
    async fn write_pieces(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let transaction = self.context.transaction;
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = usize::try_from(at % PIECE).unwrap_or(0);
            let (part, others) = rest.split_at(rest.len().min(PIECE_BYTES - within));
            let layout = self.context.layout();
            let row = layout.piece_key(self.key.data(), at / PIECE);
            if part.len() == PIECE_BYTES {
                transaction.set(&row, part);
            } else {
                let old = transaction.get(&row, Isolation::Serializable).await?;
                let end = (within + part.len()) as u64;
                let mut piece = padded(old.as_deref().unwrap_or_default(), end);
                copy_piece(&mut piece, 0, within as u64, part);
                transaction.set(&row, &piece);
            }
            at += part.len() as u64;
            rest = others;
        }
        Ok(())
    }
}

/// Writes bytes into new pieces. `offset` is the beginning of a piece.
pub(super) fn write_new_pieces(context: &WriteContext<'_>, data: Id, offset: u64, bytes: &[u8]) {
    for (number, piece) in (offset / PIECE..).zip(bytes.chunks(PIECE_BYTES)) {
        if piece.iter().any(|byte| *byte != 0) {
            let row = context.layout().piece_key(data, number);
            context.transaction.set(&row, piece);
        }
    }
}

fn string_meta(data: Id, expire_at_ms: Option<i64>, inline: Option<InlineValue>) -> Meta {
    Meta {
        value_type: ValueType::String,
        data,
        expire_at_ms,
        long_name: None,
        inline,
        rank_levels: 0,
        fields_expire: false,
        is_kept: false,
    }
}

fn signed(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
