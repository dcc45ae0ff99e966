//! The positions of a command's keys among its arguments, and how it uses them: the key specifications of COMMAND INFO.

use std::iter::StepBy;
use std::ops::Range;

use bytes::Bytes;

use crate::command::arguments::is_word;

/// What a command does to keys, in Redis's words.
pub type KeyFlags = &'static [&'static str];

/// Checks a key without reading its value.
pub const CHECK: KeyFlags = &["RO"];
/// Reads a value.
pub const READ: KeyFlags = &["RO", "access"];
/// Adds to a value.
pub const INSERT: KeyFlags = &["RW", "insert"];
/// Changes a value.
pub const UPDATE: KeyFlags = &["RW", "update"];
/// Reads a value, changes it, or both, depending on the arguments.
pub const READ_UPDATE_OR_LESS: KeyFlags = &["RW", "access", "update", "variable_flags"];
/// Reads a value and may store it in another form.
pub const READ_WRITE: KeyFlags = &["RW", "access"];
/// Reads a value and adds to it.
pub const READ_INSERT: KeyFlags = &["RW", "access", "insert"];
/// Reads a value and changes it.
pub const READ_UPDATE: KeyFlags = &["RW", "access", "update"];
/// Removes elements of a value and returns them.
pub const TAKE: KeyFlags = &["RW", "access", "delete"];
/// Removes elements of a value.
pub const DELETE: KeyFlags = &["RW", "delete"];
/// Removes a value, perhaps depending on it.
pub const DELETE_OR_LESS: KeyFlags = &["RW", "delete", "variable_flags"];
/// Replaces a value without reading it.
pub const OVERWRITE: KeyFlags = &["OW", "update"];
/// Takes whole values. There may be more keys than the specification finds.
pub const TAKE_AND_MORE: KeyFlags = &["RW", "access", "delete", "incomplete"];
/// Creates a key.
pub const CREATE: KeyFlags = &["OW", "insert"];
/// Removes a key without reading its value.
pub const REMOVE: KeyFlags = &["RM", "delete"];
/// Channels rather than keys. Clients of a Redis Cluster route by them as by keys.
pub const CHANNEL: KeyFlags = &["not_key"];

/// A group of keys among a command's arguments.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// How the command uses them.
    pub flags: KeyFlags,
    /// Their positions.
    pub place: KeyPlace,
    /// Redis's notes on them.
    pub notes: Option<&'static str>,
    /// Narrows the flags, given the arguments.
    pub narrowed: Option<fn(&[Bytes]) -> KeyFlags>,
}

/// Positions of keys. The command's name is argument 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// From `first` to `last`. `last` counts from `first`, or from the end if it is negative: −1 is the last argument.
    Range {
        /// The first key.
        first: usize,
        /// The last key, counted as described above.
        last: i32,
        /// Distance from one key to the next.
        step: usize,
    },
    /// The argument at `count` is their number; they follow it.
    Counted {
        /// Position of the number.
        count: usize,
        /// Distance from one key to the next.
        step: usize,
    },
    /// Named by the elements to be sorted (BY and GET of SORT).
    NamedByElements,
    /// After the last STORE (SORT).
    AfterStore,
    /// After the first such word at `from` or later.
    AfterWord {
        /// In upper case.
        word: &'static str,
        /// The first possible position of the word.
        from: usize,
    },
    /// All arguments after the first such word among the options, which begin at `from` (MIGRATE).
    AllAfterWord {
        /// In upper case.
        word: &'static str,
        /// The first possible position of the word.
        from: usize,
    },
    /// The first half of the arguments after STREAMS, which is at `from` or later (XREAD).
    Streams {
        /// The first possible position of STREAMS.
        from: usize,
    },
}

const BY_NOTES: &str = "For the optional BY/GET keyword. It is marked 'unknown' because the key \
                        names derive from the content of the key we sort";
const STORE_NOTES: &str = "For the optional STORE keyword. It is marked 'unknown' because the \
                           keyword can appear anywhere in the argument array";

const fn spec(place: KeyPlace, flags: KeyFlags) -> KeySpec {
    KeySpec {
        flags,
        place,
        notes: None,
        narrowed: None,
    }
}

/// One key.
pub const fn at(first: usize, flags: KeyFlags) -> KeySpec {
    up_to(first, 0, flags)
}

/// Keys from `first` to `last`; see [`KeyPlace::Range`].
pub const fn up_to(first: usize, last: i32, flags: KeyFlags) -> KeySpec {
    let step = 1;
    spec(KeyPlace::Range { first, last, step }, flags)
}

/// Every second argument from `first` on.
pub const fn every_second(first: usize, flags: KeyFlags) -> KeySpec {
    let (last, step) = (-1, 2);
    spec(KeyPlace::Range { first, last, step }, flags)
}

/// Keys whose number is the argument at `count`.
pub const fn counted_at(count: usize, flags: KeyFlags) -> KeySpec {
    let step = 1;
    spec(KeyPlace::Counted { count, step }, flags)
}

/// Keys with a value after each, whose number is the argument at `count`.
pub const fn counted_pairs_at(count: usize, flags: KeyFlags) -> KeySpec {
    let step = 2;
    spec(KeyPlace::Counted { count, step }, flags)
}

/// Keys named by the elements to be sorted.
pub const fn named_by_elements(flags: KeyFlags) -> KeySpec {
    spec(KeyPlace::NamedByElements, flags).notes(BY_NOTES)
}

/// The key after the last STORE.
pub const fn after_store(flags: KeyFlags) -> KeySpec {
    spec(KeyPlace::AfterStore, flags).notes(STORE_NOTES)
}

/// The key after the first `word` at `from` or later.
pub const fn after_word(word: &'static str, from: usize, flags: KeyFlags) -> KeySpec {
    spec(KeyPlace::AfterWord { word, from }, flags)
}

/// All keys after `word`, an option of MIGRATE at `from` or later.
pub const fn all_after_word(word: &'static str, from: usize, flags: KeyFlags) -> KeySpec {
    spec(KeyPlace::AllAfterWord { word, from }, flags)
}

/// The first half of the arguments after STREAMS, which is at `from` or later.
pub const fn streams(from: usize, flags: KeyFlags) -> KeySpec {
    spec(KeyPlace::Streams { from }, flags)
}

impl KeySpec {
    /// Adds Redis's notes.
    pub const fn notes(self, notes: &'static str) -> Self {
        Self {
            notes: Some(notes),
            ..self
        }
    }

    /// Sets a function that narrows the flags, given the arguments.
    pub const fn narrowed(self, narrowed: fn(&[Bytes]) -> KeyFlags) -> Self {
        Self {
            narrowed: Some(narrowed),
            ..self
        }
    }

    /// How a command with these arguments uses the keys.
    pub fn flags_of(&self, arguments: &[Bytes]) -> KeyFlags {
        self.narrowed
            .map_or(self.flags, |narrowed| narrowed(arguments))
    }

    /// Whether these are keys.
    pub fn is_key(&self) -> bool {
        self.flags != CHANNEL
    }

    /// The positions of the keys in `arguments`; `None` if the arguments do not match.
    pub fn indexes(&self, arguments: &[Bytes]) -> Option<StepBy<Range<usize>>> {
        let count = arguments.len();
        let (range, step) = match self.place {
            KeyPlace::Range { first, last, step } => {
                let from_end = usize::try_from(last.unsigned_abs()).ok()?;
                let end = if last < 0 {
                    (count + 1).checked_sub(from_end)?
                } else {
                    (first + from_end + 1).min(count)
                };
                ((first < end).then_some(first..end)?, step)
            }
            KeyPlace::Counted {
                count: count_at,
                step,
            } => {
                let number = std::str::from_utf8(arguments.get(count_at)?).ok()?;
                let number = number.parse::<usize>().ok().filter(|number| *number > 0)?;
                let first = count_at + 1;
                let end = first.checked_add(number.checked_mul(step)?)?;
                ((end <= count).then_some(first..end)?, step)
            }
            KeyPlace::NamedByElements => (0..0, 1),
            KeyPlace::AfterStore => (stored_key(arguments).map_or(0..0, |at| at..at + 1), 1),
            KeyPlace::AfterWord { word, from } => {
                // As in Redis, the last argument cannot be the word.
                let mut candidates = from..count.saturating_sub(1);
                let is_word = |at: &usize| arguments.get(*at).is_some_and(|one| is_word(one, word));
                let found = candidates.find(is_word);
                (found.map_or(0..0, |at| at + 1..at + 2), 1)
            }
            KeyPlace::AllAfterWord { word, from } => {
                let found = migrated_keys(arguments, word, from);
                (found.map_or(0..0, |first| first..count), 1)
            }
            KeyPlace::Streams { .. } => {
                let first = first_stream(arguments)?;
                let following = count - first;
                let is_even = following > 0 && following.is_multiple_of(2);
                (is_even.then_some(first..first + following / 2)?, 1)
            }
        };
        Some(range.step_by(step))
    }

    /// The positions of all keys that the command may access, for permission checks; `None` if the arguments do not
    /// match. All occurrences of a repeated option count. Redis's check considers only one of them, while its commands
    /// may use another.
    pub fn touched(&self, arguments: &[Bytes]) -> Option<Vec<usize>> {
        let after_each = |word: &str, from: usize| {
            let places = from..arguments.len().saturating_sub(1);
            let is_word = |at: &usize| arguments.get(*at).is_some_and(|one| is_word(one, word));
            Some(places.filter(is_word).map(|at| at + 1).collect())
        };
        match self.place {
            KeyPlace::AfterStore => after_each("STORE", 2),
            KeyPlace::AfterWord { word, from } => after_each(word, from),
            // PFMERGE may have no keys after the first.
            KeyPlace::Range { .. } => Some(self.indexes(arguments).into_iter().flatten().collect()),
            _ => self.indexes(arguments).map(Iterator::collect),
        }
    }
}

/// The position of the first key after KEYS in a MIGRATE. A password may also be `KEYS`.
pub(crate) fn migrated_keys(arguments: &[Bytes], keys: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = arguments.get(at) {
        at += 1;
        if is_word(word, keys) {
            return Some(at);
        } else if is_word(word, "auth") {
            at += 1;
        } else if is_word(word, "auth2") {
            at += 2;
        }
    }
    None
}

/// The position of the key after the last STORE of a SORT, found as Redis does (`sortGetKeys` in `db.c`): the arguments
/// of other options are skipped, but not those of STORE.
pub(crate) fn stored_key(arguments: &[Bytes]) -> Option<usize> {
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

/// The position of the first key of XREAD and XREADGROUP, found as Redis does (`xreadGetKeys` in `db.c`): the arguments
/// of other options are skipped, so a consumer may be called `streams`.
pub(crate) fn first_stream(arguments: &[Bytes]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = arguments.get(at) {
        if is_word(word, "streams") {
            return Some(at + 1);
        }
        at += if is_word(word, "block") || is_word(word, "count") {
            2
        } else if is_word(word, "group") {
            3
        } else if is_word(word, "noack") {
            1
        } else {
            return None;
        };
    }
    None
}

/// The first key, the last key (negative: from the end) and their distance, if keys have fixed positions; otherwise
/// zeros. COMMAND INFO shows them next to the specifications.
pub fn legacy_range(specs: &[KeySpec]) -> (i64, i64, i64) {
    let position = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    let ranges = specs.iter().filter_map(|spec| match spec.place {
        KeyPlace::Range { first, last, step } => {
            Some((position(first), i64::from(last), position(step)))
        }
        _ => None,
    });
    let mut whole = None;
    for (first, last, step) in ranges {
        let last = if last < 0 { last } else { first + last };
        whole = Some((whole.map_or(first, |(first, _, _)| first), last, step));
    }
    whole.unwrap_or((0, 0, 0))
}
