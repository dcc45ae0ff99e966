//! The compact encodings as one.

use bytes::Bytes;

use super::DumpError;
use super::intset::Intset;
use super::listpack::Listpack;
use super::ziplist::Ziplist;
use super::zipmap::Zipmap;

/// One of the compact encodings.
#[derive(Debug, Clone)]
pub(super) enum Packed {
    Ziplist(Ziplist),
    Listpack(Listpack),
    Intset(Intset),
    Zipmap(Zipmap),
}

impl Packed {
    pub(super) fn ziplist(blob: &Bytes) -> Result<Self, DumpError> {
        Ziplist::new(blob).map(Packed::Ziplist)
    }

    pub(super) fn listpack(blob: &Bytes) -> Result<Self, DumpError> {
        Listpack::new(blob).map(Packed::Listpack)
    }

    pub(super) fn intset(blob: &Bytes) -> Result<Self, DumpError> {
        Intset::new(blob).map(Packed::Intset)
    }

    pub(super) fn zipmap(blob: &Bytes) -> Result<Self, DumpError> {
        Zipmap::new(blob).map(Packed::Zipmap)
    }

    /// The next entry; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        match self {
            Packed::Ziplist(ziplist) => ziplist.next(),
            Packed::Listpack(listpack) => listpack.next(),
            Packed::Intset(intset) => intset.next(),
            Packed::Zipmap(zipmap) => zipmap.next(),
        }
    }
}
