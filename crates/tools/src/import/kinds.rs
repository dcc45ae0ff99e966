//! The types that are copied. A type's descriptor says how ([`Import`]).

use super::pace::{CHUNK_ELEMENTS_MAX, SMALL_ELEMENTS_MAX};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_data::keyspace::import::{Import, Reading};
use quoin_data::keyspace::kind::ValueKind;

/// A type that is copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The reply of TYPE.
    pub(super) name: &'static str,
    /// Whether a key may exist without elements.
    pub(super) may_be_empty: bool,
    pub(super) import: &'static Import,
}

/// The beginning of a stretch of a value.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Rank(i64),
    Cursor(Vec<u8>),
}

impl Kind {
    /// The type of that name, if it is copied.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let kind = ValueKind::all().find(|kind| kind.name.as_bytes() == name)?;
        let import = kind.import.as_ref()?;
        Some(Self {
            name: kind.name,
            may_be_empty: kind.exists_when_empty || import.may_be_empty,
            import,
        })
    }

    /// The beginning of a value.
    pub(super) fn first_place(&self) -> Place {
        match self.import.reading {
            Reading::Ranks(..) | Reading::Dump => Place::Rank(0),
            Reading::Iteration(_) => Place::Cursor(b"0".to_vec()),
        }
    }

    /// Maximum number of elements for copying a value with one command, if they have at most
    /// `IMPORT_CHUNK_BYTES`.
    pub(super) fn small_max(&self) -> i64 {
        match self.import.elements_are_bytes {
            true => IMPORT_CHUNK_BYTES as i64,
            false if self.is_dumped() => i64::MAX,
            false => SMALL_ELEMENTS_MAX,
        }
    }

    /// Maximum number of elements in one command.
    pub(super) fn chunk_max(&self) -> i64 {
        match self.import.elements_are_bytes {
            true => IMPORT_CHUNK_BYTES as i64,
            false => CHUNK_ELEMENTS_MAX,
        }
    }

    /// Whether it is only read as a whole.
    pub(super) fn is_dumped(&self) -> bool {
        matches!(self.import.reading, Reading::Dump)
    }

    /// Whether each element is read once.
    pub(super) fn reads_each_once(&self) -> bool {
        matches!(self.import.reading, Reading::Ranks(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_that_can_be_dumped_are_copied() {
        for kind in ValueKind::all() {
            assert_eq!(
                kind.serialization.is_some(),
                kind.import.is_some(),
                "{}",
                kind.name
            );
        }
    }
}
