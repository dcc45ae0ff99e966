//! The keys that COMMAND GETKEYS finds in a command's arguments, which need not be valid.
//!
//! Redis looks first where the key specifications say. Where they do not tell, a function of the
//! command looks again, less strictly and in an order of its own (`getKeysFromCommandWithSpecs` in
//! `db.c`). What a command of Quoin uses is in [`Row::key_indexes`].

use bytes::Bytes;

use crate::command::arguments::{integer, is_word};
use crate::command::key_specs::{
    KeyFlags, KeyPlace, KeySpec, READ, TAKE, first_stream, migrated_keys, stored_key,
};
use crate::command::row::Row;

/// A key among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Its position.
    pub(super) at: usize,
    /// What the command does to it; nothing where Redis does not say.
    pub(super) flags: KeyFlags,
}

/// The keys of a command; none where the arguments do not say which there are.
pub(super) fn keys(row: &Row, command: &[Bytes]) -> Vec<Found> {
    by_specifications(row, command).unwrap_or_else(|| by_function(row, command))
}

/// `None` where a specification does not fit.
fn by_specifications(row: &Row, command: &[Bytes]) -> Option<Vec<Found>> {
    let mut all = Vec::new();
    for spec in row.keys.iter().filter(|spec| spec.is_key()) {
        let place = match place_of(spec, command) {
            Place::At(first, last, step) => Some((first, last, step)),
            Place::Nowhere => continue,
            Place::Unknown => None,
        };
        let is_complete = !spec.flags.contains(&"incomplete");
        let fits = |(first, last, _): &(usize, usize, usize)| {
            is_complete && first <= last && *last < command.len()
        };
        let (first, last, step) = place.filter(fits)?;
        let flags = spec.flags_of(command);
        all.extend((first..=last).step_by(step).map(|at| Found { at, flags }));
    }
    Some(all)
}

/// Where a specification finds keys.
enum Place {
    /// The first, the last, and from one to the next.
    At(usize, usize, usize),
    /// There are none.
    Nowhere,
    /// The specification does not tell, or does not fit.
    Unknown,
}

fn place_of(spec: &KeySpec, command: &[Bytes]) -> Place {
    let count = command.len();
    let word_from = |word: &str, from: usize| {
        // The last argument is no such word: nothing follows it.
        let mut candidates = from..count.saturating_sub(1);
        candidates.find(|at| is_word_at(command, *at, word))
    };
    let up_to = |first: usize, last: Option<usize>, step: usize| {
        last.map_or(Place::Unknown, |last| Place::At(first, last, step))
    };
    match spec.place {
        KeyPlace::Range { first, last, step } => {
            let distance = usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX);
            let last = match last < 0 {
                true => count.checked_sub(distance),
                false => first.checked_add(distance),
            };
            up_to(first, last, step)
        }
        KeyPlace::Counted { count: count_at } => {
            let number = command.get(count_at).and_then(|text| integer(text).ok());
            let number = number.and_then(|number| usize::try_from(number).ok());
            let last = number.and_then(|number| count_at.checked_add(number));
            up_to(count_at + 1, last, 1)
        }
        KeyPlace::NamedByElements | KeyPlace::AfterStore => Place::Unknown,
        KeyPlace::AfterWord { word, from } => match word_from(word, from) {
            Some(at) => Place::At(at + 1, at + 1, 1),
            None => Place::Nowhere,
        },
        KeyPlace::AllAfterWord { word, .. } => {
            // Backwards from the last but one.
            let last = count.saturating_sub(1);
            let mut candidates = (2..last).rev();
            match candidates.find(|at| is_word_at(command, *at, word)) {
                Some(at) => Place::At(at + 1, last, 1),
                None => Place::Nowhere,
            }
        }
        KeyPlace::Streams { from } => match word_from("STREAMS", from) {
            Some(at) => {
                let first = at + 1;
                up_to(first, (first + (count - first) / 2).checked_sub(1), 1)
            }
            None => Place::Nowhere,
        },
    }
}

/// As the functions find keys that Redis has for its commands whose keys stand at no fixed place.
fn by_function(row: &Row, command: &[Bytes]) -> Vec<Found> {
    let mut all = Vec::new();
    let mut put = |at: usize, flags: KeyFlags| all.push(Found { at, flags });
    for spec in row.keys {
        match spec.place {
            KeyPlace::Counted { count } => {
                let number = command.get(count).map_or(0, |text| leading_int(text));
                let first = count + 1;
                let left = command.len().saturating_sub(first);
                let number = usize::try_from(number).unwrap_or(0);
                if number == 0 || number > left {
                    return Vec::new();
                }
                (first..first + number).for_each(|at| put(at, &[]));
                // The key that is written comes last.
                let stored = row.keys.iter().find_map(|other| match other.place {
                    KeyPlace::Range { first, .. } => Some(first),
                    _ => None,
                });
                stored.into_iter().for_each(|at| put(at, &[]));
                return all;
            }
            KeyPlace::NamedByElements => {
                put(1, READ);
                for store in row
                    .keys
                    .iter()
                    .filter(|spec| spec.place == KeyPlace::AfterStore)
                {
                    let stored = stored_key(command);
                    stored.into_iter().for_each(|at| put(at, store.flags));
                }
                return all;
            }
            KeyPlace::AllAfterWord { word, from } => {
                match migrated_keys(command, word, from) {
                    None => put(3, TAKE),
                    // The key that stands alone must be empty then.
                    Some(_) if command.get(3).is_some_and(|key| !key.is_empty()) => {}
                    Some(first) => (first..command.len()).for_each(|at| put(at, TAKE)),
                }
                return all;
            }
            KeyPlace::Streams { .. } => {
                let first = first_stream(command).unwrap_or(command.len());
                let following = command.len() - first;
                if following.is_multiple_of(2) {
                    (first..first + following / 2).for_each(|at| put(at, &[]));
                }
                return all;
            }
            KeyPlace::Range { .. } | KeyPlace::AfterStore | KeyPlace::AfterWord { .. } => {}
        }
    }
    all
}

fn is_word_at(command: &[Bytes], at: usize, word: &str) -> bool {
    command.get(at).is_some_and(|one| is_word(one, word))
}

/// What C's `atoi` makes of a text: the number that it begins with, or 0. More than an `int` holds is as
/// much as no command has arguments.
fn leading_int(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    if is_negative { -number } else { number }
}
