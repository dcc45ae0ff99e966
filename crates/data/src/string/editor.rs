//! Many small reads and changes of one string, of which each piece is read and written once.

use std::collections::BTreeMap;

use bytes::BytesMut;

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::string::PIECE_BYTES;
use quoin_store::StoreError;

use super::{PAGE_PIECES, PIECE, copy_piece, padded};

/// Reads and changes a string in memory. What is not there is zeros.
pub struct StringEditor<'c> {
    context: &'c ReadContext<'c>,
    writer: Option<&'c WriteContext<'c>>,
    key: Option<OpenKey>,
    /// Pieces by their numbers; a string in metadata is the first.
    pieces: BTreeMap<u64, Piece>,
}

#[derive(Default)]
struct Piece {
    bytes: BytesMut,
    is_changed: bool,
}

impl<'c> ReadContext<'c> {
    /// An editor of a string that is only read.
    pub fn string_reader(&'c self, key: Option<OpenKey>) -> StringEditor<'c> {
        StringEditor {
            context: self,
            writer: None,
            key,
            pieces: BTreeMap::new(),
        }
    }
}

impl<'c> WriteContext<'c> {
    /// An editor of a string.
    pub fn string_editor(&'c self, key: OpenKey) -> StringEditor<'c> {
        StringEditor {
            writer: Some(self),
            ..self.string_reader(Some(key))
        }
    }
}

impl StringEditor<'_> {
    /// Reads bytes from an offset on.
    pub async fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        bytes.fill(0);
        let end = offset.saturating_add(bytes.len() as u64);
        for number in offset / PIECE..end.div_ceil(PIECE) {
            let piece = self.piece(number).await?;
            copy_piece(bytes, offset, number.saturating_mul(PIECE), &piece.bytes);
        }
        Ok(())
    }

    /// Changes bytes from an offset on, which the string must have.
    pub async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let end = offset.saturating_add(bytes.len() as u64);
        for number in offset / PIECE..end.div_ceil(PIECE) {
            let begin = number.saturating_mul(PIECE);
            let piece = self.piece(number).await?;
            let filled = (end - begin).min(PIECE_BYTES as u64);
            let mut changed = padded(&piece.bytes, filled);
            copy_piece(&mut changed, begin, offset, bytes);
            piece.is_changed |= changed != piece.bytes;
            piece.bytes = changed;
        }
        Ok(())
    }

    /// Writes what was changed, and tells those who watch that something was.
    pub fn finish(mut self) {
        self.put_pieces();
        if let (Some(context), Some(key)) = (self.writer, self.key.as_mut()) {
            match self.pieces.remove(&0) {
                Some(whole) => context.write_body(key, whole.bytes.freeze()),
                None => context.string_touch(key),
            }
        }
    }

    async fn piece(&mut self, number: u64) -> Result<&mut Piece, StoreError> {
        if !self.pieces.contains_key(&number) {
            if self.pieces.len() >= PAGE_PIECES {
                self.put_pieces();
            }
            let begin = number.saturating_mul(PIECE);
            let piece = match &self.key {
                Some(key) => self.context.stored_piece(key, begin).await?,
                None => BytesMut::new(),
            };
            let piece = Piece {
                bytes: piece,
                is_changed: false,
            };
            self.pieces.insert(number, piece);
        }
        Ok(self.pieces.entry(number).or_default())
    }

    /// Writes the pieces that were changed, and forgets all but a string in metadata.
    fn put_pieces(&mut self) {
        let is_small = self.key.as_ref().is_some_and(|key| key.meta.body.is_some());
        if is_small {
            self.pieces.retain(|number, _| *number == 0);
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        if let (Some(context), Some(key)) = (self.writer, &self.key) {
            for (number, piece) in pieces.iter().filter(|(_, piece)| piece.is_changed) {
                let row = context.layout().piece_key(key.data(), *number);
                context.transaction.set(&row, &piece.bytes);
            }
        }
    }
}

impl ReadContext<'_> {
    /// What is stored of the piece that begins at `begin`.
    async fn stored_piece(&self, key: &OpenKey, begin: u64) -> Result<BytesMut, StoreError> {
        match &key.meta.body {
            Some(body) if begin == 0 => Ok(BytesMut::from(body.bytes.as_ref())),
            Some(_) => Ok(BytesMut::new()),
            None => {
                let row = self.layout().piece_key(key.data(), begin / PIECE);
                let stored = self.transaction.get(&row, self.isolation).await?;
                Ok(BytesMut::from(stored.as_deref().unwrap_or_default()))
            }
        }
    }
}
