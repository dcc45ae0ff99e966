//! Random fields, and taking random members away.

use bytes::Bytes;

use crate::layout::Entry;
use crate::store::StoreError;
use crate::types::context::{ReadContext, WriteContext};
use crate::types::key::OpenKey;

use super::{body_entries, row_of};

impl ReadContext<'_> {
    /// `count` random entries, each drawn from all; none of a value that is not there.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn fields_random(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        if let Some(entries) = body_entries(key)? {
            let draws = (0..count).filter_map(|_| {
                let rank = self.environment.random.below(entries.len().max(1) as u64);
                entries.get(usize::try_from(rank).ok()?).cloned()
            });
            return Ok(draws.collect());
        }
        let length = self.length(key, self.isolation).await?;
        let section = row_of(key).section();
        let rows = self
            .hashed_random(key.data(), section, length, count)
            .await?;
        self.row_entries(key, &rows).await
    }

    /// Up to `count` distinct random entries.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn fields_random_distinct(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        if let Some(entries) = body_entries(key)? {
            let ranks = self.distinct_ranks(entries.len() as u64, count);
            let drawn = ranks.into_iter().filter_map(|rank| {
                let rank = usize::try_from(rank).ok()?;
                entries.get(rank).cloned()
            });
            return Ok(drawn.collect());
        }
        let length = self.length(key, self.isolation).await?;
        if !i64::try_from(count).is_ok_and(|count| count < length) {
            return self.fields_all(key).await;
        }
        let section = row_of(key).section();
        let rows = self
            .hashed_random_distinct(key.data(), section, length, count)
            .await?;
        self.row_entries(key, &rows).await
    }
}

impl WriteContext<'_> {
    /// Takes up to `count` random entries away and answers them. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn fields_take_random(
        &self,
        key: &mut OpenKey,
        count: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let taken = self.fields_random_distinct(key, count).await?;
        let names: Vec<Bytes> = taken.iter().map(|entry| entry.name.clone()).collect();
        self.fields_remove(key, &names).await?;
        Ok(taken)
    }
}
