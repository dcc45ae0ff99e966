//! Random fields, and SPOP, which removes random members.

use bytes::Bytes;

use crate::command::arguments::{Draw, OUT_OF_RANGE};
use crate::error::CommandError;
use crate::keyspace::handle::Value;
use crate::unit::context::ReadContext;
use quoin_base::limits::RANDOM_BYTES_MAX;
use quoin_layout::{Entry, successor};
use quoin_store::{KeyValue, StoreError};

use super::{FieldsMut, FieldsType};

impl<T: FieldsType> Value<'_, '_, T> {
    /// The entries that HRANDFIELD or SRANDMEMBER with a count returns.
    ///
    /// # Errors
    /// `Text` if they are too many, or have more than [`RANDOM_BYTES_MAX`].
    pub(crate) async fn draw(&self, draw: Draw) -> Result<Vec<Entry>, CommandError> {
        match draw {
            Draw::Distinct(count) => Ok(self.random_distinct(count).await?),
            Draw::Repeated(count) => self.random(count).await,
            Draw::TooMany if self.context.has_elements(self.key).await? => Err(OUT_OF_RANGE),
            Draw::TooMany => Ok(Vec::new()),
        }
    }

    /// `count` random entries, which may repeat; none if the value is empty.
    ///
    /// # Errors
    /// `Text` if they have more than [`RANDOM_BYTES_MAX`].
    pub async fn random(&self, count: usize) -> Result<Vec<Entry>, CommandError> {
        let context = self.context;
        let mut left_bytes = RANDOM_BYTES_MAX;
        let mut drawn = Vec::with_capacity(count);
        if let Some(entries) = self.body_entries()? {
            for _ in 0..count {
                let rank = context
                    .environment
                    .random
                    .below(entries.len().max(1) as u64);
                let Some(entry) = usize::try_from(rank).ok().and_then(|at| entries.get(at)) else {
                    break;
                };
                take_bytes(&mut left_bytes, entry)?;
                drawn.push(entry.clone());
            }
            return Ok(drawn);
        }
        let length = self.length().await?;
        let rows = context
            .hashed_random(self.key.data(), T::ROW.section(), length, count)
            .await?;
        for row in &rows {
            let entry = self.row_entry(row).await?;
            take_bytes(&mut left_bytes, &entry)?;
            drawn.push(entry);
        }
        Ok(drawn)
    }

    /// Up to `count` distinct random entries.
    async fn random_distinct(&self, count: usize) -> Result<Vec<Entry>, StoreError> {
        match self.body_entries()? {
            Some(entries) => Ok(distinct_entries(self.context, &entries, count)),
            None => self.row_entries(&self.random_rows(count).await?).await,
        }
    }

    /// Up to `count` distinct random rows of a value in rows.
    async fn random_rows(&self, count: usize) -> Result<Vec<KeyValue>, StoreError> {
        let context = self.context;
        let length = self.length().await?;
        if i64::try_from(count).is_ok_and(|count| count < length) {
            return context
                .hashed_random_distinct(self.key.data(), T::ROW.section(), length, count)
                .await;
        }
        self.row_pages().slice(0, count).await
    }
}

impl<T: FieldsType> FieldsMut<'_, '_, T> {
    /// Removes up to `count` random entries and returns them in random order. Conflicts only with
    /// changes of these entries. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn take_random(&mut self, count: usize) -> Result<Vec<Entry>, StoreError> {
        if let Some(mut entries) = self.read().body_entries()? {
            let mut taken = distinct_entries(self.context, &entries, count);
            let names: Vec<&Bytes> = taken.iter().map(|entry| &entry.name).collect();
            entries.retain(|entry| !names.contains(&&entry.name));
            if !taken.is_empty() {
                self.shrink_body(&entries);
            }
            self.shuffle(&mut taken);
            return Ok(taken);
        }
        let relaxed = self.context.relaxed_view();
        let rows = Value::<T>::open(&relaxed, self.key)
            .random_rows(count)
            .await?;
        let mut taken = self.read().row_entries(&rows).await?;
        self.shuffle(&mut taken);
        for row in &rows {
            let transaction = self.context.transaction;
            transaction.add_read_conflict_range(&row.key, &successor(&row.key));
            self.clear_row(&row.key, &row.value)?;
        }
        let removed = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        self.context.add_length(self.key, -removed);
        Ok(taken)
    }

    /// A Fisher-Yates shuffle.
    fn shuffle(&self, entries: &mut [Entry]) {
        for left in (2..=entries.len()).rev() {
            let drawn = self.context.environment.random.below(left as u64);
            entries.swap(left - 1, usize::try_from(drawn).unwrap_or(0));
        }
    }
}

fn distinct_entries(context: &ReadContext<'_>, entries: &[Entry], count: usize) -> Vec<Entry> {
    let ranks = context.distinct_ranks(entries.len() as u64, count);
    let drawn = ranks.into_iter().filter_map(|rank| {
        let rank = usize::try_from(rank).ok()?;
        entries.get(rank).cloned()
    });
    drawn.collect()
}

/// Subtracts the bytes of a drawn entry.
fn take_bytes(left_bytes: &mut usize, entry: &Entry) -> Result<(), CommandError> {
    let entry_bytes = entry.name.len() + entry.value.len();
    let Some(left) = left_bytes.checked_sub(entry_bytes) else {
        let line = format!("ERR too many random values (more than {RANDOM_BYTES_MAX} bytes)");
        return Err(CommandError::Text(line.into()));
    };
    *left_bytes = left;
    Ok(())
}
