//! Changing strings.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::BODY_BYTES_MAX;
use crate::unit::context::WriteContext;
use quoin_layout::string::PIECE_BYTES;
use quoin_layout::{Body, Id, Meta, ValueType};
use quoin_store::{Isolation, StoreError};

use super::{PIECE, copy_piece, is_zero, length_of, padded};

impl WriteContext<'_> {
    /// Puts a string in place of whatever is at `name`.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn string_set(
        &self,
        name: &Bytes,
        value: &Bytes,
        expire_at_ms: Option<i64>,
    ) -> Result<OpenKey, CommandError> {
        let data = self.environment.ids.allocate();
        if value.len() > BODY_BYTES_MAX {
            self.write_new_pieces(data, 0, value);
            return self
                .string_adopt(name, data, length_of(value), expire_at_ms)
                .await;
        }
        // Not a slice of the request, which would keep all of that.
        let body = Some(Body::new(Bytes::copy_from_slice(value)));
        self.create_as(name, string_meta(data, expire_at_ms, body), 0)
            .await
    }

    /// Puts a string whose pieces are written already in place of whatever is at `name`.
    pub(super) async fn string_adopt(
        &self,
        name: &Bytes,
        data: Id,
        length: i64,
        expire_at_ms: Option<i64>,
    ) -> Result<OpenKey, CommandError> {
        let meta = string_meta(data, expire_at_ms, None);
        self.create_as(name, meta, length).await
    }

    /// Puts another value in place of a string's, and leaves its expiry what it is.
    ///
    /// Of a string in pieces nothing stays, so that pieces are never taken away under those who
    /// write others.
    pub async fn string_replace(
        &self,
        key: &mut OpenKey,
        value: &Bytes,
    ) -> Result<(), CommandError> {
        if key.meta.body.is_some() && value.len() <= BODY_BYTES_MAX {
            self.write_body(key, Bytes::copy_from_slice(value));
            return Ok(());
        }
        let name = key.meta.full_name(&key.name)?.clone();
        *key = self.string_set(&name, value, key.meta.expire_at_ms).await?;
        Ok(())
    }

    /// Writes bytes from an offset on, over what is there; zeros fill up what lies between the end
    /// and the offset. Answers the length of the string after that. Nothing is changed where there
    /// are no bytes.
    pub async fn string_write(
        &self,
        key: &mut OpenKey,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u64, StoreError> {
        let end = offset.saturating_add(bytes.len() as u64);
        let length = self.length_for_write(key, end).await?;
        if bytes.is_empty() {
            return Ok(length);
        }
        let new_length = length.max(end);
        match &key.meta.body {
            Some(body) if end <= BODY_BYTES_MAX as u64 => {
                let mut changed = padded(&body.bytes, end);
                copy_piece(&mut changed, 0, offset, bytes);
                self.write_body(key, changed.freeze());
                return Ok(new_length);
            }
            Some(_) => self.body_to_pieces(key, new_length),
            None => self.count_change(key, signed(new_length) - signed(length)),
        }
        self.write_pieces(key.data(), offset, bytes).await?;
        Ok(new_length)
    }

    /// Lengthens a string with zeros, unless it is as long. Answers whether it was shorter.
    pub async fn string_lengthen(
        &self,
        key: &mut OpenKey,
        length: u64,
    ) -> Result<bool, StoreError> {
        let old_length = self.length_for_write(key, length).await?;
        if length <= old_length {
            return Ok(false);
        }
        match &key.meta.body {
            Some(body) if length <= BODY_BYTES_MAX as u64 => {
                let bytes = padded(&body.bytes, length).freeze();
                self.write_body(key, bytes);
            }
            Some(_) => self.body_to_pieces(key, length),
            None => self.count_change(key, signed(length) - signed(old_length)),
        }
        Ok(true)
    }

    /// Tells those who watch that a string was written whose value is what it was.
    pub fn string_touch(&self, key: &mut OpenKey) {
        match &key.meta.body {
            Some(body) => {
                let bytes = body.bytes.clone();
                self.write_body(key, bytes);
            }
            None => self.mark_changed(key),
        }
    }

    /// Makes a string in metadata one in pieces, of a length from now on.
    fn body_to_pieces(&self, key: &mut OpenKey, length: u64) {
        let before = key.meta.body.as_ref().map(|body| body.bytes.clone());
        self.drop_body(key, signed(length));
        self.write_new_pieces(key.data(), 0, &before.unwrap_or_default());
    }

    /// Writes bytes where no pieces are, from the beginning of a piece on.
    pub(super) fn write_new_pieces(&self, data: Id, offset: u64, bytes: &[u8]) {
        for (number, piece) in (offset / PIECE..).zip(bytes.chunks(PIECE_BYTES)) {
            if !is_zero(piece) {
                let row = self.layout().piece_key(data, number);
                self.transaction.set(&row, piece);
            }
        }
    }

    /// Writes bytes into pieces, over what is there.
    async fn write_pieces(&self, data: Id, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = usize::try_from(at % PIECE).unwrap_or(0);
            let (part, others) = rest.split_at(rest.len().min(PIECE_BYTES - within));
            let row = self.layout().piece_key(data, at / PIECE);
            if part.len() == PIECE_BYTES {
                self.transaction.set(&row, part);
            } else {
                let old = self.transaction.get(&row, Isolation::Serializable).await?;
                let end = (within + part.len()) as u64;
                let mut piece = padded(old.as_deref().unwrap_or_default(), end);
                copy_piece(&mut piece, 0, within as u64, part);
                self.transaction.set(&row, &piece);
            }
            at += part.len() as u64;
            rest = others;
        }
        Ok(())
    }
}

fn string_meta(data: Id, expire_at_ms: Option<i64>, body: Option<Body>) -> Meta {
    Meta {
        value_type: ValueType::String,
        data,
        expire_at_ms,
        long_name: None,
        body,
        rank_levels: 0,
    }
}

fn signed(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
