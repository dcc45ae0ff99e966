//! Streams: entries in the order of their ids.
//!
//! Each entry is a row under its id, and the key's length counts the entries. Every XADD reads and
//! writes the head, which holds the last id. So ids grow in the order of commits on all servers,
//! and a reader that has seen an id never misses a smaller one. XADDs that wait on one server share
//! a batch, so at most one transaction of each server conflicts with those of others.
//!
//! A stream without entries still exists: it keeps its last id and its groups. Consumer groups are
//! in [`group`].

pub mod commands;

use bytes::Bytes;

use quoin_layout::StreamId;

use crate::keyspace::handle::{Value, ValueMut};

mod append;
mod delete;
mod doctor;
mod dumping;
mod group;
mod kind;
mod producers;
mod read;
#[cfg(test)]
mod tests;
mod trim;
mod trim_references;

pub use kind::KIND;

/// The type of a stream's handles.
pub enum StreamType {}
/// A stream, for reading.
pub type Stream<'c, 't> = Value<'c, 't, StreamType>;
/// A stream, for writing.
pub type StreamMut<'c, 't> = ValueMut<'c, 't, StreamType>;

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its id.
    pub id: StreamId,
    /// Alternating names and values.
    pub fields: Vec<Bytes>,
}

impl StreamEntry {
    /// Bytes of its names and values.
    pub fn size_bytes(&self) -> usize {
        self.fields.iter().map(Bytes::len).sum()
    }
}

/// Ids from the first to the last, both included. Empty if the first is above the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// The first.
    pub first: StreamId,
    /// The last.
    pub last: StreamId,
}

impl IdRange {
    /// All ids.
    pub const ALL: Self = Self {
        first: StreamId::MIN,
        last: StreamId::MAX,
    };

    /// All ids from this one on.
    pub fn from(first: StreamId) -> Self {
        Self { first, ..Self::ALL }
    }

    /// All ids after this one. `None` after the greatest.
    pub fn after(id: StreamId) -> Option<Self> {
        id.next().map(Self::from)
    }
}
