//! Many small reads and changes of one string for BITFIELD. Each piece is read and written once.

use std::collections::BTreeMap;

use bytes::BytesMut;

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::string::PIECE_BYTES;
use quoin_store::StoreError;

use super::{PAGE_PIECES, PIECE, StringValueMut, copy_piece, padded};

/// Reads and changes a string in memory. Missing bytes are zeros.
pub(crate) struct StringEditor<'c> {
    context: &'c ReadContext<'c>,
    writer: Option<&'c WriteContext<'c>>,
    key: Option<OpenKey>,
    /// Pieces by their numbers. A string in metadata is piece 0.
    pieces: BTreeMap<u64, Piece>,
}

#[derive(Default)]
struct Piece {
    bytes: BytesMut,
    is_changed: bool,
}

impl<'c> StringEditor<'c> {
    /// An editor that only reads.
    pub(super) fn reader(context: &'c ReadContext<'c>, key: Option<OpenKey>) -> Self {
        Self {
            context,
            writer: None,
            key,
            pieces: BTreeMap::new(),
        }
    }

    /// An editor that reads and writes.
    pub(super) fn new(context: &'c WriteContext<'c>, key: OpenKey) -> Self {
        Self {
            writer: Some(context),
            ..Self::reader(context, Some(key))
        }
    }

    /// Reads bytes from an offset on.
    pub(super) async fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        bytes.fill(0);
        let end = offset.saturating_add(bytes.len() as u64);
        for number in offset / PIECE..end.div_ceil(PIECE) {
            let piece = self.piece(number).await?;
            copy_piece(bytes, offset, number.saturating_mul(PIECE), &piece.bytes);
        }
        Ok(())
    }

    /// Changes bytes from an offset on. The string must be long enough.
    pub(super) async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
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

    /// Writes the changes. WATCH sees a change in any case.
    pub(super) fn finish(mut self) {
        self.put_pieces();
        if let (Some(context), Some(key)) = (self.writer, self.key.as_mut()) {
            match self.pieces.remove(&0) {
                Some(whole) => context.write_inline(key, whole.bytes.freeze()),
                None => StringValueMut::open(context, key).touch(),
            }
        }
    }

    async fn piece(&mut self, number: u64) -> Result<&mut Piece, StoreError> {
        if !self.pieces.contains_key(&number) {
            if self.pieces.len() >= PAGE_PIECES {
                self.put_pieces();
            }
            let piece = Piece {
                bytes: self.stored_piece(number).await?,
                is_changed: false,
            };
            self.pieces.insert(number, piece);
        }
        Ok(self.pieces.entry(number).or_default())
    }

    /// The stored bytes of a piece.
    async fn stored_piece(&self, number: u64) -> Result<BytesMut, StoreError> {
        let Some(key) = &self.key else {
            return Ok(BytesMut::new());
        };
        match &key.meta.inline {
            Some(inline) if number == 0 => Ok(BytesMut::from(inline.bytes.as_ref())),
            Some(_) => Ok(BytesMut::new()),
            None => {
                let context = self.context;
                let row = context.layout().piece_key(key.data(), number);
                let stored = context.transaction.get(&row, context.isolation).await?;
                Ok(BytesMut::from(stored.as_deref().unwrap_or_default()))
            }
        }
    }

    /// Writes the changed pieces, and forgets all pieces except a string in metadata.
    fn put_pieces(&mut self) {
        let is_small = self
            .key
            .as_ref()
            .is_some_and(|key| key.meta.inline.is_some());
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
