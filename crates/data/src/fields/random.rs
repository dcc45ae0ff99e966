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
            Draw::Distinct(count) => self.random_distinct(count).await,
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
        if let Some(entries) = self.inline_entries()? {
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
        let keys = self.row_keys();
        for row in &rows {
            let Some(entry) = self.row_entry(&keys, row).await? else {
                return self.random_live(count).await;
            };
            take_bytes(&mut left_bytes, &entry)?;
            drawn.push(entry);
        }
        Ok(drawn)
    }

    /// [`Self::random`] of a value in rows, some of whose fields have expired. Reads all of it.
    async fn random_live(&self, count: usize) -> Result<Vec<Entry>, CommandError> {
        let live = self.live_count().await?;
        if live == 0 {
            return Ok(Vec::new());
        }
        let random = &self.context.environment.random;
        let mut draws: Vec<(u64, usize)> = (0..count)
            .map(|place| (random.below(live), place))
            .collect();
        draws.sort_unstable();
        let ranks = draws.iter().map(|(rank, _)| *rank);
        let entries = self.live_at_ranks(ranks, RANDOM_BYTES_MAX).await?;
        let mut drawn: Vec<(usize, Entry)> = { draws.iter() }
            .map(|(_, place)| *place)
            .zip(entries)
            .collect();
        drawn.sort_unstable_by_key(|(place, _)| *place);
        Ok(drawn.into_iter().map(|(_, entry)| entry).collect())
    }

    /// The number of fields that have not expired. Reads them all.
    pub(crate) async fn live_count(&self) -> Result<u64, StoreError> {
        let mut pages = self.pages()?;
        let mut count = 0;
        while let Some(page) = pages.next().await? {
            count += page.len() as u64;
        }
        Ok(count)
    }

    /// The entries at these ranks among those that have not expired. The ranks must ascend and may repeat.
    async fn live_at_ranks(
        &self,
        ranks: impl Iterator<Item = u64>,
        mut left_bytes: usize,
    ) -> Result<Vec<Entry>, CommandError> {
        let mut ranks = ranks.peekable();
        let mut pages = self.pages()?;
        let (mut rank, mut found) = (0, Vec::new());
        while ranks.peek().is_some()
            && let Some(page) = pages.next().await?
        {
            for entry in page {
                while ranks.next_if_eq(&rank).is_some() {
                    take_bytes(&mut left_bytes, &entry)?;
                    found.push(entry.clone());
                }
                rank += 1;
            }
        }
        Ok(found)
    }

    /// Up to `count` distinct random entries.
    async fn random_distinct(&self, count: usize) -> Result<Vec<Entry>, CommandError> {
        if let Some(entries) = self.inline_entries()? {
            return Ok(distinct_entries(self.context, &entries, count));
        }
        let rows = self.random_rows(count).await?;
        let entries = self.row_entries(&rows).await?;
        if entries.len() == rows.len() || rows.len() < count {
            return Ok(entries);
        }
        // Some of the fields have expired.
        let ranks = self
            .context
            .distinct_ranks(self.live_count().await?, count)
            .into_iter();
        self.live_at_ranks(ranks, usize::MAX).await
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
        if let Some(mut entries) = self.read().inline_entries()? {
            let mut taken = distinct_entries(self.context, &entries, count);
            let names: Vec<&Bytes> = taken.iter().map(|entry| &entry.name).collect();
            entries.retain(|entry| !names.contains(&&entry.name));
            if !taken.is_empty() {
                self.shrink_inline(&entries);
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
