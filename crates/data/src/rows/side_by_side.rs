//! Several reads of one command.

use futures_util::future::try_join_all;

use crate::unit::context::ReadContext;
use quoin_base::limits::LARGE_READS_AT_ONCE;
use quoin_store::StoreError;

impl ReadContext<'_> {
    /// Reads something for each item. Where a read is a round trip, up to `at_once` are under way side
    /// by side. Elsewhere they follow each other, because a future for each costs as much as what it
    /// reads.
    ///
    /// # Errors
    /// The first of `read`.
    pub(crate) async fn each<'i, I, T, E: From<StoreError>>(
        &self,
        items: &'i [I],
        at_once: usize,
        read: impl AsyncFn(&'i I) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut all = Vec::with_capacity(items.len());
        if self.environment.capabilities.single_writer {
            for item in items {
                all.push(read(item).await?);
            }
            return Ok(all);
        }
        // Once, rather than by each of the reads.
        self.namespace().await?;
        for some in items.chunks(at_once.max(1)) {
            all.extend(try_join_all(some.iter().map(|item| read(item))).await?);
        }
        Ok(all)
    }

    /// How many values of any size are read side by side: one, where no read is a round trip.
    pub(crate) fn large_reads_at_once(&self) -> usize {
        match self.environment.capabilities.single_writer {
            true => 1,
            false => LARGE_READS_AT_ONCE,
        }
    }
}
