//! Strings.
//!
//! A short string lies whole in its key's metadata. A longer one lies in pieces
//! ([`layout::string`](quoin_layout::string)) from then on, and its length counter holds its bytes.
//! Bytes that no piece holds are zeros, so a write far beyond the end costs one piece.

pub mod bitmap_commands;
pub mod commands;
pub mod hyperloglog_commands;

use bytes::{Bytes, BytesMut};

use quoin_layout::string::PIECE_BYTES;

mod bits;
mod change;
mod combine;
mod editor;
mod encoding;
pub mod hyperloglog;
mod kind;
mod read;
#[cfg(test)]
mod tests;

pub use combine::Combination;
pub use editor::StringEditor;
pub use kind::KIND;

/// [`PIECE_BYTES`] as an offset.
const PIECE: u64 = PIECE_BYTES as u64;
/// Pieces that are read at a time: 1 MiB.
const PAGE_PIECES: usize = 64;

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

/// The part of a piece that begins at `at` within `begin..end`, and where that part begins.
fn clip(piece: &Bytes, at: u64, begin: u64, end: u64) -> (u64, Bytes) {
    let place = |offset: u64| {
        let place = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        place.min(piece.len())
    };
    let (first, last) = (place(begin), place(end));
    (at.max(begin), piece.slice(first.min(last)..last))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn length_of(value: &[u8]) -> i64 {
    i64::try_from(value.len()).unwrap_or(i64::MAX)
}

/// Bytes with zeros up to a length, unless there are as many.
fn padded(bytes: &[u8], length: u64) -> BytesMut {
    let mut padded = BytesMut::from(bytes);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    padded.resize(padded.len().max(length), 0);
    padded
}
