//! Union, intersection and difference.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use crate::error::CommandError;
use crate::fields::canonical_number;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::{FieldRow, Member};
use quoin_store::{Isolation, StoreError};

use super::Set;

/// If a set has at most this many times the members to look up in it, it is read whole. Reading a
/// row is that much cheaper than looking it up.
const MERGE_RATIO: i64 = 8;

/// Takes a member. Returns whether more members are wanted.
type Visit<'v> = &'v mut dyn FnMut(Bytes) -> Result<bool, CommandError>;

/// The union of the sets: each member once, in the order in which the members are found. As in
/// Redis's small sets, the integers at the beginning are sorted.
///
/// # Errors
/// Those of `check`, which is called for each member before it is kept.
pub(super) async fn union(
    context: &ReadContext<'_>,
    sets: &[OpenKey],
    mut check: impl FnMut(&Bytes) -> Result<(), CommandError>,
) -> Result<Vec<Bytes>, CommandError> {
    let mut seen: HashSet<Bytes> = HashSet::new();
    let mut union: Vec<Bytes> = Vec::new();
    let visit = &mut |member: Bytes| -> Result<bool, CommandError> {
        if seen.insert(member.clone()) {
            check(&member)?;
            union.push(member);
        }
        Ok(true)
    };
    each(context, sets, visit).await?;
    let numbers = union.iter().map_while(canonical_number).count();
    if let Some(numbers) = union.get_mut(..numbers) {
        numbers.sort_by_cached_key(canonical_number);
    }
    Ok(union)
}

/// Passes the members of all sets to `visit`. A member of several sets is passed several times.
///
/// # Errors
/// Those of `visit`.
pub(super) async fn each(
    context: &ReadContext<'_>,
    sets: &[OpenKey],
    visit: Visit<'_>,
) -> Result<(), CommandError> {
    for set in sets {
        let mut pages = Set::open(context, set).pages()?;
        while let Some(page) = pages.next().await? {
            for one in page {
                if !visit(one.name)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Passes the members of the intersection to `visit`, in the order of the smallest set. Reads the
/// smallest set, and looks up its members in the others.
///
/// # Errors
/// Those of `visit`.
pub(super) async fn intersection(
    context: &ReadContext<'_>,
    sets: &[OpenKey],
    visit: Visit<'_>,
) -> Result<(), CommandError> {
    let mut by_length = with_lengths(context, sets).await?;
    // The result does not depend on the lengths, which are not read serializably.
    by_length.sort_by_key(|(_, length)| *length);
    let Some((smallest, others)) = by_length.split_first() else {
        return Ok(());
    };
    filter(context, *smallest, others, true, visit).await
}

/// Passes the members of the first set that are in none of the others to `visit`, in the order of
/// the first set.
///
/// # Errors
/// Those of `visit`.
pub(super) async fn difference(
    context: &ReadContext<'_>,
    first: &OpenKey,
    others: &[OpenKey],
    visit: Visit<'_>,
) -> Result<(), CommandError> {
    let first = (first, context.length(first, Isolation::Snapshot).await?);
    let mut others = with_lengths(context, others).await?;
    // The largest set first: it removes most members, so that fewer are looked up in the next one.
    others.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    filter(context, first, &others, false, visit).await
}

async fn with_lengths<'k>(
    context: &ReadContext<'_>,
    sets: &'k [OpenKey],
) -> Result<Vec<(&'k OpenKey, i64)>, StoreError> {
    let mut with_lengths = Vec::with_capacity(sets.len());
    for set in sets {
        with_lengths.push((set, context.length(set, Isolation::Snapshot).await?));
    }
    Ok(with_lengths)
}

/// Passes members of a set to `visit`: those that are in all other sets, or in none.
async fn filter(
    context: &ReadContext<'_>,
    (set, length): (&OpenKey, i64),
    others: &[(&OpenKey, i64)],
    is_wanted: bool,
    visit: Visit<'_>,
) -> Result<(), CommandError> {
    let mut lookups = Vec::with_capacity(others.len());
    for (other, other_length) in others {
        let is_near = other_length / MERGE_RATIO <= length;
        let other = Set::open(context, other);
        lookups.push(Lookup::new(set, other, is_near)?);
    }
    let mut pages = Set::open(context, set).pages()?;
    while let Some(page) = pages.next().await? {
        let mut left: Vec<Bytes> = page.into_iter().map(|one| one.name).collect();
        for lookup in &mut lookups {
            let found = lookup.look_up(&left).await?;
            let mut found = found.into_iter();
            left.retain(|_| found.next() == Some(is_wanted));
        }
        for name in left {
            if !visit(name)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Looks up the members of one set in another. They arrive in the order of their own set.
enum Lookup<'c, 't> {
    /// In memory.
    Names(HashSet<Bytes>),
    /// Row by row.
    Rows(Set<'c, 't>),
    /// Reads both sets in parallel: rows of all sets have the same order.
    Merge(Merge<'c, 't>),
}

impl<'c, 't> Lookup<'c, 't> {
    /// Looks up members of `driver` in `other`. `is_near`: whether reading all of `other` costs
    /// less than looking up each member.
    fn new(driver: &OpenKey, other: Set<'c, 't>, is_near: bool) -> Result<Self, StoreError> {
        if let Some(inline) = &other.key.meta.inline {
            let entries = FieldRow::Set.decode_inline(&inline.bytes)?.into_iter();
            return Ok(Lookup::Names(entries.map(|entry| entry.name).collect()));
        }
        if driver.meta.inline.is_none() && is_near {
            return Ok(Lookup::Merge(Merge::new(other)));
        }
        Ok(Lookup::Rows(other))
    }

    /// Whether each of the names is a member.
    async fn look_up(&mut self, names: &[Bytes]) -> Result<Vec<bool>, StoreError> {
        match self {
            Lookup::Names(known) => Ok(names.iter().map(|name| known.contains(name)).collect()),
            Lookup::Rows(set) => set.contains_each(names).await,
            Lookup::Merge(merge) => merge.look_up(names).await,
        }
    }
}

/// A set that is read in parallel with another.
struct Merge<'c, 't> {
    set: Set<'c, 't>,
    pages: Pages<'c, 't>,
    /// Keys of rows that were read and not passed yet.
    rows: VecDeque<Bytes>,
}

impl<'c, 't> Merge<'c, 't> {
    fn new(set: Set<'c, 't>) -> Self {
        let pages = set.row_pages();
        Self {
            set,
            pages,
            rows: VecDeque::new(),
        }
    }

    /// The names are in the order of rows, and follow those of earlier calls.
    async fn look_up(&mut self, names: &[Bytes]) -> Result<Vec<bool>, StoreError> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let layout = self.set.context.layout();
            let data = self.set.key.data();
            let row = layout.field_key(data, FieldRow::Set, &Member::new(name));
            found.push(self.advance(&row).await?);
        }
        Ok(found)
    }

    /// Passes the rows before this one. Returns whether the row exists.
    async fn advance(&mut self, row: &[u8]) -> Result<bool, StoreError> {
        loop {
            while let Some(first) = self.rows.front() {
                if first.as_ref() >= row {
                    return Ok(first.as_ref() == row);
                }
                self.rows.pop_front();
            }
            match self.pages.next().await? {
                Some(rows) => self.rows.extend(rows.into_iter().map(|row| row.key)),
                None => return Ok(false),
            }
        }
    }
}
