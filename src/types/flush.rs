//! FLUSHDB, FLUSHALL and SWAPDB: databases are names for namespaces, so none of them touches a
//! key.

use crate::layout::TrashKind;
use crate::store::{Isolation, RangeQuery, StoreError};

use super::context::WriteContext;

impl WriteContext<'_> {
    /// Gives a database a new, empty namespace and leaves the old one to the background task
    /// that clears trash. Every command that writes reads which namespace its database shows,
    /// so this conflicts with all of them and nothing can still be added to the old one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn flush_database(&self, database: u32) -> Result<(), StoreError> {
        let old = self.namespace_of(database).await?;
        let range = self.layout().keys_from(old, 0);
        let first = self
            .transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit: 1,
                reverse: false,
                isolation: Isolation::Serializable,
            })
            .await?;
        if first.is_empty() {
            return Ok(());
        }
        self.set_namespace(database, self.environment.ids.allocate());
        let trash_key = self.layout().trash_key(TrashKind::Namespace, old);
        self.transaction.set(&trash_key, b"");
        Ok(())
    }

    /// Makes two databases show each other's namespace.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn swap_databases(&self, first: u32, second: u32) -> Result<(), StoreError> {
        let of_first = self.namespace_of(first).await?;
        let of_second = self.namespace_of(second).await?;
        if first != second {
            self.set_namespace(first, of_second);
            self.set_namespace(second, of_first);
        }
        Ok(())
    }
}
