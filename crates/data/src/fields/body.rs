//! Changes of entries that lie in metadata.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use bytes::Bytes;

use crate::keyspace::kind::BODY_BYTES_MAX;
use quoin_layout::{Entry, FieldRow};

/// Entries of a body, which are searched one after the other.
pub(super) const BODY_ENTRIES_MAX: usize = 64;

/// The body with these entries, if it may be one.
pub(super) fn encode(row: FieldRow, entries: &[Entry]) -> Option<Bytes> {
    match entries.len() <= BODY_ENTRIES_MAX {
        true => row.encode_body(entries, BODY_BYTES_MAX),
        false => None,
    }
}

/// Entries without those that a later one of the same name replaces, in the order in which a body
/// keeps them.
pub(super) fn distinct(row: FieldRow, entries: Vec<Entry>) -> Vec<Entry> {
    let mut distinct: Vec<Entry> = Vec::with_capacity(entries.len());
    if entries.len() <= BODY_ENTRIES_MAX {
        for entry in entries {
            put(row, &mut distinct, entry);
        }
        return distinct;
    }
    let mut places: HashMap<Bytes, usize> = HashMap::with_capacity(entries.len());
    for entry in entries {
        match places.entry(entry.name.clone()) {
            Place::Occupied(place) => {
                if let Some(present) = distinct.get_mut(*place.get()) {
                    present.value = entry.value;
                }
            }
            Place::Vacant(place) => {
                place.insert(distinct.len());
                distinct.push(entry);
            }
        }
    }
    match distinct.len() <= BODY_ENTRIES_MAX {
        true => self::distinct(row, distinct),
        false => distinct,
    }
}

/// Puts an entry among the others, in place of one of its name. Answers whether there was none.
pub(super) fn put(row: FieldRow, entries: &mut Vec<Entry>, entry: Entry) -> bool {
    let mut present = entries.iter_mut();
    if let Some(present) = present.find(|present| present.name == entry.name) {
        present.value = entry.value;
        return false;
    }
    let place = match row {
        FieldRow::Hash => entries.len(),
        FieldRow::Set => place_of_number(entries, &entry.name).unwrap_or(entries.len()),
    };
    entries.insert(place, entry);
    true
}

/// Where a number belongs among numbers in their order; `None` where it is none, or they are not.
fn place_of_number(entries: &[Entry], name: &Bytes) -> Option<usize> {
    let number = canonical_number(name)?;
    let mut place = 0;
    let mut last = None;
    for entry in entries {
        let other = canonical_number(&entry.name)?;
        if last.is_some_and(|last| last > other) {
            return None;
        }
        place += usize::from(other < number);
        last = Some(other);
    }
    Some(place)
}

/// The 64-bit integer that prints as these bytes.
pub(crate) fn canonical_number(bytes: &Bytes) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
