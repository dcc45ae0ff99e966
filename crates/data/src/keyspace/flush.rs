//! FLUSHDB, FLUSHALL and SWAPDB. A database is a name for a namespace, so none of them touches a key.

use bytes::Bytes;

use crate::error::CommandError;
use quoin_base::limits::EXCHANGED_WATCHED_KEYS_MAX;
use quoin_layout::TrashKind;
use quoin_store::{Isolation, RangeQuery};

use crate::keyspace::key::ClientKey;
use crate::unit::context::{ReadContext, WriteContext};
use crate::unit::host::Change;
use crate::unit::signals::Exchanged;

impl WriteContext<'_> {
    /// Gives a database a new, empty namespace and leaves the old one to the background task that clears trash. Every
    /// command that writes reads its database's namespace, so this conflicts with all of them, and nothing can be added
    /// to the old namespace afterwards.
    pub async fn flush_database(&self, database: u32) -> Result<(), CommandError> {
        // Also for an empty database: as in Redis, clients drop everything they have cached.
        self.signals.change(Change::AllKeys);
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
        self.touch_watched(database, None).await?;
        self.set_namespace(database, self.environment.ids.allocate());
        let trash_key = self.layout().trash_key(TrashKind::Namespace, old);
        self.transaction.set(&trash_key, b"");
        Ok(())
    }

    /// Swaps the namespaces of two databases.
    pub async fn swap_databases(&self, first: u32, second: u32) -> Result<(), CommandError> {
        let of_first = self.namespace_of(first).await?;
        let of_second = self.namespace_of(second).await?;
        if first != second {
            // Redis leaves client caches unchanged, although the cached values now belong to other keys.
            self.signals.change(Change::AllKeys);
            self.touch_watched(first, Some(second)).await?;
            self.touch_watched(second, Some(first)).await?;
            self.set_namespace(first, of_second);
            self.set_namespace(second, of_first);
        }
        Ok(())
    }

    /// Notifies WATCH of the keys that change when a database shows another one's namespace, or an empty one. As in
    /// Redis (`touchAllWatchedKeysInDb`), these are the watched keys that exist on either side. They count as changed
    /// even if the databases are swapped back before EXEC, which would find the original values.
    async fn touch_watched(&self, database: u32, other: Option<u32>) -> Result<(), CommandError> {
        let Some(watched_keys) = &self.environment.watched_keys else {
            return Ok(());
        };
        let names = watched_keys.of_database(database);
        let mut exists = vec![names.len() > EXCHANGED_WATCHED_KEYS_MAX; names.len()];
        if names.len() <= EXCHANGED_WATCHED_KEYS_MAX {
            for side in [Some(database), other].into_iter().flatten() {
                self.mark_existing(side, &names, &mut exists).await?;
            }
        }
        for (name, _) in names.iter().zip(exists).filter(|(_, exists)| *exists) {
            self.signals.change(Change::OnlyWatched(ClientKey {
                database,
                key: name.clone(),
            }));
        }
        self.signals.exchange(Exchanged {
            database,
            checked: names.into_iter().collect(),
        });
        Ok(())
    }

    /// Marks the names that exist in a database.
    async fn mark_existing(
        &self,
        database: u32,
        names: &[Bytes],
        exists: &mut [bool],
    ) -> Result<(), CommandError> {
        let mut context = ReadContext::for_database(self, i64::from(database))?;
        // Pushes and pops of other servers must not prevent a swap.
        context.isolation = self.relaxed();
        let found = context.find_each(names).await?;
        for (exists, found) in exists.iter_mut().zip(found) {
            *exists |= found.is_some();
        }
        Ok(())
    }
}
