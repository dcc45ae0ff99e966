//! Fields that expire.
//!
//! The row of a field with an expiry begins with the expiry. The field also has an empty row
//! ordered by time, under the same data id. Reads skip expired fields. Background work, which a
//! [timer](crate::taskqueue::timers) starts, removes them soon after. Until then the length counts
//! them, as in Redis. An inline hash has no fields that expire: the first one moves the hash to
//! rows.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::{RANGE_PAGE_ROWS, REAPER_READS_AT_ONCE};
use quoin_layout::{FieldValue, KeyRange, Member, Section, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::{Hash, HashMut};

/// A field's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldExpiry {
    /// There is no such field.
    NoField,
    /// The field does not expire.
    Never,
    /// The field expires at this time, in milliseconds since the Unix epoch.
    At(i64),
}

/// What a command did to a field's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such field.
    NoField,
    /// A condition forbids it, or there is nothing to change.
    Unchanged,
    /// The expiry was set or removed.
    Changed,
    /// The expiry is in the past, so the field was removed.
    Removed,
}

impl Hash<'_, '_> {
    /// The expiries of fields.
    pub async fn expiries(&self, names: &[Bytes]) -> Result<Vec<FieldExpiry>, StoreError> {
        if self.key.meta.inline.is_some() {
            let found = self.contains_each(names).await?;
            let expiry = |found| match found {
                true => FieldExpiry::Never,
                false => FieldExpiry::NoField,
            };
            return Ok(found.into_iter().map(expiry).collect());
        }
        let read = async |name: &Bytes| {
            Ok(match self.live_row(&Member::new(name)).await? {
                None => FieldExpiry::NoField,
                Some(row) => row.expire_at_ms.map_or(FieldExpiry::Never, FieldExpiry::At),
            })
        };
        self.context.each(names, RANGE_PAGE_ROWS, read).await
    }
}

impl HashMut<'_, '_> {
    /// Sets or removes (`None`) the expiries of fields, in order, if `allows` a change of the present expiry. A field
    /// whose expiry is not after now is removed; then the caller ends with [`WriteContext::remove_if_empty`].
    pub async fn set_expiries(
        &mut self,
        names: &[Bytes],
        at_ms: Option<i64>,
        allows: impl Fn(Option<i64>) -> bool,
    ) -> Result<Vec<Outcome>, StoreError> {
        let is_past = at_ms.is_some_and(|at_ms| at_ms <= self.context.now_ms);
        if self.key.meta.inline.is_some() {
            let found = self.read().contains_each(names).await?;
            if !found.contains(&true) || at_ms.is_none() || !allows(None) {
                let outcome = |found| match found {
                    true => Outcome::Unchanged,
                    false => Outcome::NoField,
                };
                return Ok(found.into_iter().map(outcome).collect());
            }
            if is_past {
                self.remove(names).await?;
                let mut removed = HashSet::new();
                let outcomes = names.iter().zip(found).map(|(name, found)| {
                    match found && removed.insert(name) {
                        true => Outcome::Removed,
                        false => Outcome::NoField,
                    }
                });
                let outcomes = outcomes.collect();
                self.context.signals.fields_expired(removed.len() as u64);
                return Ok(outcomes);
            }
            self.ensure_rows().await?;
        }
        let mut outcomes = Vec::with_capacity(names.len());
        let (mut removed, mut is_expected) = (0, false);
        for names in names.chunks(RANGE_PAGE_ROWS) {
            let members: Vec<Member> = names.iter().map(Member::new).collect();
            let hash = self.read();
            let read = async |member| hash.live_row(member).await;
            let rows = self.context.each(&members, RANGE_PAGE_ROWS, read).await?;
            // Fields changed so far, because a field may be named twice.
            let mut fields: HashMap<&Bytes, Option<FieldValue>> =
                HashMap::with_capacity(names.len());
            for ((name, member), row) in names.iter().zip(&members).zip(rows) {
                let field = fields.entry(name).or_insert(row);
                let Some(present) = field else {
                    outcomes.push(Outcome::NoField);
                    continue;
                };
                if !allows(present.expire_at_ms)
                    || present.expire_at_ms.is_none() && at_ms.is_none()
                {
                    outcomes.push(Outcome::Unchanged);
                    continue;
                }
                let row_key = self.row_key(member);
                if is_past {
                    self.clear_row(&row_key, &present.encode())?;
                    *field = None;
                    removed += 1;
                    outcomes.push(Outcome::Removed);
                    continue;
                }
                if let Some(at_ms) = at_ms
                    && !is_expected
                {
                    self.expect_expiry(at_ms).await?;
                    is_expected = true;
                }
                self.clear_expiry(&row_key, present)?;
                present.expire_at_ms = at_ms;
                self.write_field(&row_key, present)?;
                outcomes.push(Outcome::Changed);
            }
        }
        if removed > 0 {
            self.context.add_length(self.key, -removed);
            self.context.signals.fields_expired(removed.unsigned_abs());
        } else if outcomes.contains(&Outcome::Changed) {
            self.context.mark_changed(self.key);
        }
        Ok(outcomes)
    }
}

/// When the first field of a hash expires. `None` if none does. Causes no conflicts.
pub(crate) async fn next_expiry(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Option<i64>, StoreError> {
    let range = context.layout().section(key.data(), Section::FieldExpiries);
    let first = context.first_rows(&range, 1).await?;
    let read = |row: &KeyValue| context.layout().read_field_expiry_key(key.data(), &row.key);
    let first = first.first().map(read).transpose()?;
    Ok(first.map(|(at_ms, _)| at_ms))
}

/// Removes up to `fields_max` expired fields, with about `bytes_max` bytes of values. Returns
/// whether all expired fields are gone. If so, sets the next timer.
///
/// Conflicts with changes of these fields, and with a concurrently added field that expires before
/// all that remain, because it may have no timer of its own. Fields that expire later do not
/// matter.
pub(crate) async fn remove_expired(
    context: &WriteContext<'_>,
    key: &OpenKey,
    (fields_max, bytes_max): (usize, usize),
) -> Result<bool, StoreError> {
    let layout = context.layout();
    let data = key.data();
    let due = layout.field_expiries_by(data, context.now_ms);
    let rows = context.transaction.get_range(RangeQuery {
        begin: &due.begin,
        end: &due.end,
        limit: fields_max.saturating_add(1),
        reverse: false,
        isolation: Isolation::Serializable,
    });
    let mut rows = rows.await?;
    if rows.len() <= fields_max {
        let later = KeyRange {
            begin: due.end,
            end: layout.section(data, Section::FieldExpiries).end,
        };
        let first = context.transaction.get_range(RangeQuery {
            begin: &later.begin,
            end: &later.end,
            limit: 1,
            reverse: false,
            isolation: Isolation::Snapshot,
        });
        let first = first.await?;
        let end = first.first().map_or(later.end, |row| successor(&row.key));
        context
            .transaction
            .add_read_conflict_range(&later.begin, &end);
        rows.extend(first);
    }
    let read = |row: &KeyValue| layout.read_field_expiry_key(data, &row.key);
    let rows = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let due = rows.iter().take(fields_max);
    let due: Vec<_> = due
        .take_while(|(at_ms, _)| *at_ms <= context.now_ms)
        .collect();
    let mut key = key.clone();
    let hash = HashMut::open(context, &mut key);
    let (mut checked, mut removed, mut bytes) = (0, 0, 0);
    for some in due.chunks(REAPER_READS_AT_ONCE) {
        // Concurrently, because on a cluster each read is a round trip.
        let reads = some
            .iter()
            .map(|(_, field)| context.transaction.get(field, Isolation::Serializable));
        for ((at_ms, field), row) in some.iter().zip(try_join_all(reads).await?) {
            let expiry_key = layout.field_expiry_key(data, *at_ms, field)?;
            context.transaction.clear(&expiry_key);
            if let Some(row) = row
                && FieldValue::decode(&row).is_ok_and(|row| row.expire_at_ms == Some(*at_ms))
            {
                bytes += row.len();
                match hash.clear_row(field, &row) {
                    // It must not hold up the others. The doctor finds it.
                    Err(StoreError::Corrupt(_)) => {}
                    cleared => {
                        cleared?;
                        removed += 1;
                    }
                }
            }
        }
        checked += some.len();
        if bytes >= bytes_max || context.is_full() || context.is_old() {
            break;
        }
    }
    if removed > 0 {
        context.add_length(&key, -removed);
        context.signals.fields_expired(removed.unsigned_abs());
        context.notify_of(EventClasses::HASH, "hexpired", &key);
        context.remove_if_empty(&key).await?;
    }
    match rows.get(checked) {
        Some((at_ms, _)) if *at_ms <= context.now_ms => return Ok(false),
        Some((at_ms, _)) => context.set_timer_within_day(&key, *at_ms),
        None => {}
    }
    Ok(true)
}
