//! Union, intersection and difference.

use std::collections::HashSet;

use bytes::Bytes;

use crate::error::CommandError;
use crate::fields::canonical_number;
use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;
use quoin_store::{Isolation, StoreError};

use super::lookup::Lookup;

/// Whether more members are wanted.
type Visit<'v> = &'v mut dyn FnMut(Bytes) -> Result<bool, CommandError>;

impl ReadContext<'_> {
    /// The members that any of the sets has: each once, in the order in which they are met, and
    /// whole numbers in their order until something else is met, as in Redis while sets are small.
    ///
    /// # Errors
    /// `visit`'s.
    pub async fn set_union(
        &self,
        sets: &[OpenKey],
        mut check: impl FnMut(&Bytes) -> Result<(), CommandError>,
    ) -> Result<Vec<Bytes>, CommandError> {
        let mut seen: HashSet<Bytes> = HashSet::new();
        let mut union: Vec<Bytes> = Vec::new();
        for set in sets {
            let mut pages = self.fields(set)?;
            while let Some(page) = pages.next().await? {
                for one in page {
                    if seen.insert(one.name.clone()) {
                        check(&one.name)?;
                        union.push(one.name);
                    }
                }
            }
        }
        let numbers = union.iter().map_while(canonical_number).count();
        if let Some(numbers) = union.get_mut(..numbers) {
            numbers.sort_by_cached_key(canonical_number);
        }
        Ok(union)
    }

    /// Hands over the members that all of the sets have, in the order of the smallest, until
    /// `visit` wants no more. Reads the smallest set, and of the others what that asks for.
    ///
    /// # Errors
    /// `visit`'s.
    pub async fn set_intersection(
        &self,
        sets: &[OpenKey],
        visit: Visit<'_>,
    ) -> Result<(), CommandError> {
        let mut by_length = self.with_lengths(sets).await?;
        // Only which way is taken depends on the lengths, not the result.
        by_length.sort_by_key(|(_, length)| *length);
        let Some((smallest, others)) = by_length.split_first() else {
            return Ok(());
        };
        self.set_filter(*smallest, others, true, visit).await
    }

    /// Hands over the members of the first set that none of the others has, in its order, until
    /// `visit` wants no more.
    ///
    /// # Errors
    /// `visit`'s.
    pub async fn set_difference(
        &self,
        first: &OpenKey,
        others: &[OpenKey],
        visit: Visit<'_>,
    ) -> Result<(), CommandError> {
        let first = (first, self.length(first, Isolation::Snapshot).await?);
        let mut others = self.with_lengths(others).await?;
        // The largest takes most away from what the next have to look for.
        others.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
        self.set_filter(first, &others, false, visit).await
    }

    async fn with_lengths<'k>(
        &self,
        sets: &'k [OpenKey],
    ) -> Result<Vec<(&'k OpenKey, i64)>, StoreError> {
        let mut with_lengths = Vec::with_capacity(sets.len());
        for set in sets {
            with_lengths.push((set, self.length(set, Isolation::Snapshot).await?));
        }
        Ok(with_lengths)
    }

    /// Hands over the members of a set that all of the others have, or none of them.
    async fn set_filter(
        &self,
        (set, length): (&OpenKey, i64),
        others: &[(&OpenKey, i64)],
        is_wanted: bool,
        visit: Visit<'_>,
    ) -> Result<(), CommandError> {
        let mut lookups = Vec::with_capacity(others.len());
        for (other, other_length) in others {
            let is_near = other_length / Lookup::MERGE_RATIO <= length;
            lookups.push(Lookup::new(self, set, other, is_near)?);
        }
        let mut pages = self.fields(set)?;
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
}
