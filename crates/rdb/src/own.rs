//! Values of Quoin's own types, in the form in which Redis's modules write theirs.
//!
//! The value begins with a number for the name of the type and the version of its form. [`Parts`](super::parts)
//! follow that each say what they are, and an end. So a Redis refuses such a payload as the value of a module
//! that it has not loaded, and a file with one by the name of the type; tools that read files of Redis
//! find where the value ends.

/// The type of values of modules, as RDB files number it.
pub(super) const MODULE: u8 = 7;
/// Letters of the names of modules' types, each by its number.
const NAME_LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Bits of a letter.
const LETTER_BITS: u32 = 6;
/// Bits of the version, after the letters.
const VERSION_BITS: u32 = 10;
/// The version of the forms that are written.
const VERSION: u64 = 1;

/// A type that Redis does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnType {
    /// A priority queue.
    PriorityQueue,
    /// A task queue.
    TaskQueue,
}

impl OwnType {
    const ALL: [Self; 2] = [OwnType::PriorityQueue, OwnType::TaskQueue];

    /// The name that a Redis shows where it refuses a file.
    pub fn module_name(self) -> &'static str {
        match self {
            OwnType::PriorityQueue => "quoinprio",
            OwnType::TaskQueue => "quointask",
        }
    }

    /// The number that such a value begins with.
    pub(super) fn module_id(self) -> u64 {
        let name = self.module_name().bytes().fold(0, |id, letter| {
            let number = NAME_LETTERS.iter().position(|known| *known == letter);
            id << LETTER_BITS | number.unwrap_or(0) as u64
        });
        name << VERSION_BITS | VERSION
    }

    /// The type whose values begin with this number, in a version that is read.
    pub(super) fn of(module_id: u64) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|own| own.module_id() == module_id)
    }

    /// The type whose values begin with this number in another version.
    pub(super) fn of_other_version(module_id: u64) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        let name = module_id >> VERSION_BITS;
        all.find(|own| own.module_id() >> VERSION_BITS == name && own.module_id() != module_id)
    }
}
