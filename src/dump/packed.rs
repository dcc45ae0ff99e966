//! The two compact encodings as one.

use bytes::Bytes;

use super::DumpError;
use super::listpack::Listpack;
use super::ziplist::Ziplist;

/// A ziplist or a listpack.
#[derive(Debug, Clone)]
pub(super) enum Packed {
    Ziplist(Ziplist),
    Listpack(Listpack),
}

impl Packed {
    pub(super) fn ziplist(blob: &Bytes) -> Result<Self, DumpError> {
        Ziplist::new(blob).map(Packed::Ziplist)
    }

    pub(super) fn listpack(blob: &Bytes) -> Result<Self, DumpError> {
        Listpack::new(blob).map(Packed::Listpack)
    }

    /// The next entry; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        match self {
            Packed::Ziplist(ziplist) => ziplist.next(),
            Packed::Listpack(listpack) => listpack.next(),
        }
    }
}
