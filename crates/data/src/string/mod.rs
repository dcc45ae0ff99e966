//! Strings, and what Redis keeps in them: numbers, bitmaps, HyperLogLogs.
//!
//! A short string is in its key's metadata. A longer one is in pieces
//! ([`layout::string`](quoin_layout::string)) from then on, and its length counter holds its bytes.
//! Bytes outside of the pieces are zeros, so a write far beyond the end costs one piece.

pub mod commands;
pub mod hyperloglog;

mod bits;
mod editor;
mod kind;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use bits::{Combination, combine};
pub(crate) use editor::StringEditor;
pub use kind::KIND;
pub(crate) use write::{put, set};

use bytes::{Bytes, BytesMut};

use crate::keyspace::handle::Value;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::string::PIECE_BYTES;

/// Marks the handle of strings.
pub enum StringType {}
/// A string, for reading.
pub type StringValue<'c, 't> = Value<'c, 't, StringType>;

/// A string, for writing. A write of a short string changes the metadata in the key, so this handle
/// borrows the key mutably, unlike [`ValueMut`](crate::keyspace::handle::ValueMut).
pub struct StringValueMut<'c, 't> {
    context: &'c WriteContext<'t>,
    key: &'c mut OpenKey,
}

impl<'c, 't> StringValueMut<'c, 't> {
    /// The value of a key that was found, or created, with this type.
    pub fn open(context: &'c WriteContext<'t>, key: &'c mut OpenKey) -> Self {
        Self { context, key }
    }
}

/// [`PIECE_BYTES`] as an offset.
const PIECE: u64 = PIECE_BYTES as u64;
/// Pieces of one read: 1 MiB.
const PAGE_PIECES: usize = 64;

/// Copies the bytes from `begin` on that a piece has. The piece begins at `at`.
fn copy_piece(whole: &mut [u8], begin: u64, at: u64, piece: &[u8]) {
    let skipped = usize::try_from(begin.saturating_sub(at)).unwrap_or(usize::MAX);
    let place = usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
    let from = piece.get(skipped..).unwrap_or_default();
    let to = whole.get_mut(place..).unwrap_or_default();
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Bytes followed by zeros up to a length, unless they are longer.
fn padded(bytes: &[u8], length: u64) -> BytesMut {
    let mut padded = BytesMut::from(bytes);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    padded.resize(padded.len().max(length), 0);
    padded
}

/// The part of a piece within `begin..end`, with the offset of that part. The piece begins at `at`.
fn clip(piece: &Bytes, at: u64, begin: u64, end: u64) -> (u64, Bytes) {
    let place = |offset: u64| {
        let place = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        place.min(piece.len())
    };
    let (first, last) = (place(begin), place(end));
    (at.max(begin), piece.slice(first.min(last)..last))
}
