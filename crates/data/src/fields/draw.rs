//! Random fields, and taking random members away.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::RANDOM_BYTES_MAX;
use quoin_layout::{Entry, successor};
use quoin_store::{KeyValue, StoreError};

use super::{body_entries, row_of};

impl ReadContext<'_> {
    /// `count` random entries, each drawn from all; none of a value that is not there.
    ///
    /// # Errors
    /// `Text` where they have more than [`RANDOM_BYTES_MAX`].
    pub async fn fields_random(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<Entry>, CommandError> {
        let mut left_bytes = RANDOM_BYTES_MAX;
        let mut drawn = Vec::with_capacity(count);
        if let Some(entries) = body_entries(key)? {
            for _ in 0..count {
                let rank = self.environment.random.below(entries.len().max(1) as u64);
                let Some(entry) = usize::try_from(rank).ok().and_then(|at| entries.get(at)) else {
                    break;
                };
                take_bytes(&mut left_bytes, entry)?;
                drawn.push(entry.clone());
            }
            return Ok(drawn);
        }
        let length = self.length(key, self.isolation).await?;
        let section = row_of(key).section();
        let rows = self
            .hashed_random(key.data(), section, length, count)
            .await?;
        for row in &rows {
            for entry in self.row_entries(key, std::slice::from_ref(row)).await? {
                take_bytes(&mut left_bytes, &entry)?;
                drawn.push(entry);
            }
        }
        Ok(drawn)
    }

    /// Up to `count` distinct random entries.
    pub async fn fields_random_distinct(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        match body_entries(key)? {
            Some(entries) => Ok(self.distinct_entries(&entries, count)),
            None => {
                let rows = self.random_rows(key, count).await?;
                self.row_entries(key, &rows).await
            }
        }
    }

    fn distinct_entries(&self, entries: &[Entry], count: usize) -> Vec<Entry> {
        let ranks = self.distinct_ranks(entries.len() as u64, count);
        let drawn = ranks.into_iter().filter_map(|rank| {
            let rank = usize::try_from(rank).ok()?;
            entries.get(rank).cloned()
        });
        drawn.collect()
    }

    /// Up to `count` distinct random rows of a value in rows.
    async fn random_rows(&self, key: &OpenKey, count: usize) -> Result<Vec<KeyValue>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let row = row_of(key);
        if i64::try_from(count).is_ok_and(|count| count < length) {
            return self
                .hashed_random_distinct(key.data(), row.section(), length, count)
                .await;
        }
        let all = self.layout().fields_from(key.data(), row, 0);
        Pages::new(self, all, false, 0).slice(0, count).await
    }
}

impl WriteContext<'_> {
    /// Takes up to `count` random entries away and answers them in random order. Conflicts on these,
    /// not on others among which they were drawn. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn fields_take_random(
        &self,
        key: &mut OpenKey,
        count: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        if let Some(mut entries) = body_entries(key)? {
            let mut taken = self.distinct_entries(&entries, count);
            let names: Vec<&Bytes> = taken.iter().map(|entry| &entry.name).collect();
            entries.retain(|entry| !names.contains(&&entry.name));
            if !taken.is_empty() {
                self.write_left(key, &entries);
            }
            self.shuffle(&mut taken);
            return Ok(taken);
        }
        let rows = self.relaxed_view().random_rows(key, count).await?;
        let mut taken = self.row_entries(key, &rows).await?;
        self.shuffle(&mut taken);
        for row in &rows {
            self.transaction
                .add_read_conflict_range(&row.key, &successor(&row.key));
            self.clear_row(key, &row.key, &row.value)?;
        }
        self.add_length(key, -i64::try_from(rows.len()).unwrap_or(i64::MAX));
        Ok(taken)
    }

    /// Fisher and Yates's.
    fn shuffle(&self, entries: &mut [Entry]) {
        for left in (2..=entries.len()).rev() {
            let drawn = self.environment.random.below(left as u64);
            entries.swap(left - 1, usize::try_from(drawn).unwrap_or(0));
        }
    }
}

/// Counts an entry as drawn.
fn take_bytes(left_bytes: &mut usize, entry: &Entry) -> Result<(), CommandError> {
    let entry_bytes = entry.name.len() + entry.value.len();
    let Some(left) = left_bytes.checked_sub(entry_bytes) else {
        let line = format!("ERR too many random values (more than {RANDOM_BYTES_MAX} bytes)");
        return Err(CommandError::Text(line.into()));
    };
    *left_bytes = left;
    Ok(())
}
