//! Where a command's keys stand among its arguments, and what it does to them: the key
//! specifications of COMMAND INFO.

use std::ops::Range;

use bytes::Bytes;

use super::arguments::is_word;

/// What a command does to keys, in Redis's words.
pub type KeyFlags = &'static [&'static str];

/// Looks at a key without reading its value.
pub const LOOK: KeyFlags = &["RO"];
/// Reads a value.
pub const READ: KeyFlags = &["RO", "access"];
/// Adds to a value.
pub const INSERT: KeyFlags = &["RW", "insert"];
/// Changes a value.
pub const UPDATE: KeyFlags = &["RW", "update"];
/// Reads a value and changes it.
pub const READ_UPDATE: KeyFlags = &["RW", "access", "update"];
/// Removes from a value what it returns.
pub const TAKE: KeyFlags = &["RW", "access", "delete"];
/// Removes from a value.
pub const DELETE: KeyFlags = &["RW", "delete"];
/// Replaces a value without reading it.
pub const OVERWRITE: KeyFlags = &["OW", "update"];
/// Makes a key that was not there.
pub const CREATE: KeyFlags = &["OW", "insert"];
/// Removes a key without reading its value.
pub const REMOVE: KeyFlags = &["RM", "delete"];
/// Not keys but channels, by which clients of a Redis Cluster route as by keys.
pub const CHANNEL: KeyFlags = &["not_key"];

/// Keys that stand together among a command's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// What the command does to them.
    pub flags: KeyFlags,
    /// Where they stand.
    pub place: KeyPlace,
}

/// Where keys stand. The command's name is argument 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// At `first` and up to `last`, which counts from `first` or, where it is negative, from the
    /// end: −1 is the last argument.
    Range {
        /// The first key.
        first: usize,
        /// The last key.
        last: i32,
    },
    /// Their number stands at `count`; they follow it.
    Counted {
        /// Position of the number.
        count: usize,
    },
    /// The elements that are sorted name them (SORT's BY and GET).
    NamedByElements,
    /// After the last STORE (SORT).
    AfterStore,
    /// After the first such word, which stands at `from` or later.
    AfterWord {
        /// In capitals.
        word: &'static str,
        /// Where it may stand first.
        from: usize,
    },
}

/// One key.
pub const fn at(first: usize, flags: KeyFlags) -> KeySpec {
    up_to(first, 0, flags)
}

/// Keys from `first` to `last`, see [`KeyPlace::Range`].
pub const fn up_to(first: usize, last: i32, flags: KeyFlags) -> KeySpec {
    let place = KeyPlace::Range { first, last };
    KeySpec { flags, place }
}

/// Keys whose number stands at `count`.
pub const fn counted_at(count: usize, flags: KeyFlags) -> KeySpec {
    let place = KeyPlace::Counted { count };
    KeySpec { flags, place }
}

/// Keys that the sorted elements name.
pub const fn named_by_elements(flags: KeyFlags) -> KeySpec {
    let place = KeyPlace::NamedByElements;
    KeySpec { flags, place }
}

/// The key after the last STORE.
pub const fn after_store(flags: KeyFlags) -> KeySpec {
    let place = KeyPlace::AfterStore;
    KeySpec { flags, place }
}

/// The key after the first `word`, which stands at `from` or later.
pub const fn after_word(word: &'static str, from: usize, flags: KeyFlags) -> KeySpec {
    let place = KeyPlace::AfterWord { word, from };
    KeySpec { flags, place }
}

impl KeySpec {
    /// Whether these are keys.
    pub fn is_key(&self) -> bool {
        self.flags != CHANNEL
    }

    /// The positions of the keys in `arguments`; `None` where the arguments do not fit.
    pub fn indexes(&self, arguments: &[Bytes]) -> Option<Range<usize>> {
        let count = arguments.len();
        match self.place {
            KeyPlace::Range { first, last } => {
                let from_end = usize::try_from(last.unsigned_abs()).ok()?;
                let end = if last < 0 {
                    (count + 1).checked_sub(from_end)?
                } else {
                    (first + from_end + 1).min(count)
                };
                (first < end).then_some(first..end)
            }
            KeyPlace::Counted { count: count_at } => {
                let number = std::str::from_utf8(arguments.get(count_at)?).ok()?;
                let number = number.parse::<usize>().ok().filter(|number| *number > 0)?;
                let first = count_at + 1;
                let end = first.checked_add(number)?;
                (end <= count).then_some(first..end)
            }
            KeyPlace::NamedByElements => Some(0..0),
            KeyPlace::AfterStore => Some(stored_key(arguments).map_or(0..0, |at| at..at + 1)),
            KeyPlace::AfterWord { word, from } => {
                // As in Redis, the last argument is no such word.
                let mut candidates = from..count.saturating_sub(1);
                let is_word = |at: &usize| arguments.get(*at).is_some_and(|one| is_word(one, word));
                let found = candidates.find(is_word);
                Some(found.map_or(0..0, |at| at + 1..at + 2))
            }
        }
    }
}

/// The key after the last STORE of a SORT, found as Redis finds it (`sortGetKeys` in `db.c`): it
/// skips the arguments of other options, but not those of STORE.
fn stored_key(arguments: &[Bytes]) -> Option<usize> {
    let mut stored = None;
    let mut at = 2;
    while let Some(word) = arguments.get(at) {
        if is_word(word, "limit") {
            at += 2;
        } else if is_word(word, "get") || is_word(word, "by") {
            at += 1;
        } else if is_word(word, "store") && at + 1 < arguments.len() {
            stored = Some(at + 1);
        }
        at += 1;
    }
    stored
}

/// The first key, the last (negative: from the end) and their distance, where keys stand at fixed
/// positions; zeros elsewhere. COMMAND INFO shows them beside the specifications.
pub fn legacy_range(specs: &[KeySpec]) -> (i64, i64, i64) {
    let ranges = specs.iter().filter_map(|spec| match spec.place {
        KeyPlace::Range { first, last } => Some((i64::try_from(first).ok()?, i64::from(last))),
        _ => None,
    });
    let mut whole = None;
    for (first, last) in ranges {
        let last = if last < 0 { last } else { first + last };
        whole = Some((whole.map_or(first, |(first, _)| first), last));
    }
    whole.map_or((0, 0, 0), |(first, last)| (first, last, 1))
}
