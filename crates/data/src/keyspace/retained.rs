//! Background cleanup, in bounded steps: sweeping retained metadata (see [`crate::keyspace`]), removing expired keys,
//! and clearing the trash of FLUSHDB and DEL.
//!
//! A queue whose consumers keep up is empty most of the time. It must not be swept while it is in use, because the
//! sweep would conflict with its pushes. So retained metadata is swept on the second visit, if it was not used since
//! the first.

use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::try_join;
use quoin_base::events::EventClasses;
use quoin_base::limits::{
    BATCH_AGE_MAX_MS, BATCH_MESSAGE_BYTES_SOFT_MAX, REAPER_BYTES_PER_PASS, REAPER_READS_AT_ONCE,
    TRASH_PAGE_ROWS,
};
use quoin_layout::{Id, KeyRange, KeysRow, Meta, Timers, TrashKind, decode_length, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::TypeKind;
use crate::keyspace::presence::Presence;
use crate::keyspace::scanning::KeyScan;
use crate::unit::context::{ReadContext, WriteContext};

/// Retained metadata as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedMeta {
    /// Key of its metadata.
    pub meta_key: Bytes,
    /// Its length counter, which changes with every use of the key. Empty if the key has no counter.
    pub counter: Bytes,
}

impl ReadContext<'_> {
    /// Searches the context's database for retained metadata, from `hash` on, among about `keys_max` keys. Returns the
    /// hash to continue from (0 at the end) and the metadata found. Conflicts with nothing.
    pub async fn retained(
        &self,
        hash: u64,
        keys_max: usize,
    ) -> Result<(u64, Vec<RetainedMeta>), StoreError> {
        let namespace = self.namespace().await?;
        let mut scan =
            KeyScan::new(self, namespace, hash, keys_max.saturating_add(1)).with_snapshot_reads();
        let mut examined = 0_usize;
        let mut last_hash = 0;
        let mut retained = Vec::new();
        while let Some(found) = scan.next().await? {
            let hash = found.key.name.hash();
            if examined >= keys_max && hash != last_hash {
                return Ok((last_hash + 1, retained));
            }
            examined += 1;
            last_hash = hash;
            if self.presence(&found.key.meta, found.length) == Presence::Retained {
                retained.push(RetainedMeta {
                    meta_key: found.key.meta_key.into(),
                    counter: found.counter.unwrap_or_default(),
                });
            }
        }
        Ok((0, retained))
    }
}

impl WriteContext<'_> {
    /// Sweeps retained metadata of the context's database, unless it was used since it was found. Returns whether it
    /// was swept.
    ///
    /// No push is lost: a push reads the key's metadata serializably and adds to its length. If the push commits first,
    /// it changes the length that was read here, and the sweep conflicts. If the push commits afterwards, it finds the
    /// metadata changed, conflicts, and creates the key again.
    pub async fn sweep_retained(&self, found: &RetainedMeta) -> Result<bool, StoreError> {
        let KeysRow::Meta(name) = self.layout().read_keys_row(&found.meta_key)? else {
            return Ok(false);
        };
        let namespace = self.namespace().await?;
        let meta_key = self.layout().meta_key(namespace, &name);
        // The database may have got another namespace.
        if meta_key != found.meta_key {
            return Ok(false);
        }
        let length_key = self.layout().length_key(&meta_key);
        let (meta, counter) = futures_util::try_join!(
            self.transaction.get(&meta_key, Isolation::Snapshot),
            self.transaction.get(&length_key, Isolation::Snapshot),
        )?;
        let Some(meta) = meta.map(|value| Meta::decode(&value)).transpose()? else {
            return Ok(false);
        };
        let presence = self.presence(&meta, decode_length(counter.as_ref())?);
        let is_used = counter.unwrap_or_default() != found.counter;
        if is_used || presence != Presence::Retained {
            return Ok(false);
        }
        // Only now, because a sweep that does nothing must not conflict.
        for row in [&meta_key, &length_key] {
            self.transaction
                .add_read_conflict_range(row, &successor(row));
        }
        let key = OpenKey {
            database: None,
            namespace,
            name,
            meta_key,
            meta,
        };
        // Elements that were popped for a dead server return to the key.
        if self.has_grants(&key).await? {
            return Ok(false);
        }
        self.remove_empty(&key);
        Ok(true)
    }
}

/// Which kinds of background work are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueWork {
    /// Expired keys.
    pub expired: bool,
    /// Trash.
    pub trash: bool,
    /// Timers of task queues and streams.
    pub queue_timers: bool,
    /// Timers of hashes with fields that expire.
    pub hash_timers: bool,
}

/// Rows written when a key is removed: metadata, length, expiry, and its data or trash.
const ROWS_OF_A_KEY: usize = 4;

/// How much work a pass may still do.
struct Budget {
    rows: usize,
    bytes: usize,
}

impl Budget {
    fn new(rows: usize) -> Self {
        Self {
            rows,
            bytes: REAPER_BYTES_PER_PASS,
        }
    }

    fn spend(&mut self, rows: usize, bytes: usize) {
        self.rows = self.rows.saturating_sub(rows);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl ReadContext<'_> {
    /// The background work that is due now.
    pub async fn due_work(&self) -> Result<DueWork, StoreError> {
        let (layout, now_ms) = (self.layout(), self.now_ms);
        let has_rows = async |range: KeyRange| {
            let first = self.first_rows(&range, 1).await?;
            Ok::<bool, StoreError>(!first.is_empty())
        };
        // Concurrently, because on a cluster each read is a round trip.
        let (expired, trash, queue_timers, hash_timers) = try_join!(
            has_rows(layout.expired_by(now_ms)),
            has_rows(layout.trash()),
            has_rows(layout.timers_by(Timers::Queues, now_ms)),
            has_rows(layout.timers_by(Timers::Hashes, now_ms)),
        )?;
        Ok(DueWork {
            expired,
            trash,
            queue_timers,
            hash_timers,
        })
    }

    /// The first rows of a range. This is a snapshot read: background work uses the rows only as hints, and should not
    /// conflict with anyone. Callers add the conflicts that they need.
    pub(crate) async fn first_rows(
        &self,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit,
                reverse: false,
                isolation: Isolation::Snapshot,
            })
            .await
    }
}

impl WriteContext<'_> {
    fn is_spent(&self, budget: &Budget) -> bool {
        budget.rows == 0 || budget.bytes == 0 || self.is_full()
    }

    /// Whether the batch, or the messages to be sent after its commit, have reached their intended maximum size.
    pub(crate) fn is_full(&self) -> bool {
        let capabilities = &self.environment.capabilities;
        let message_bytes = self.signals.message_bytes();
        // Other servers receive the messages through the transaction.
        let carried_bytes = match capabilities.has_other_writers {
            false => 0,
            true => message_bytes,
        };
        let bytes = self.transaction.size_bytes().saturating_add(carried_bytes);
        bytes >= capabilities.batch_bytes_soft_max || message_bytes >= BATCH_MESSAGE_BYTES_SOFT_MAX
    }

    /// Whether the batch has reached its intended maximum age, by the clock.
    pub(crate) fn is_old(&self) -> bool {
        let age_ms = self.environment.clock.now_ms().saturating_sub(self.now_ms);
        u64::try_from(age_ms).is_ok_and(|age_ms| age_ms >= BATCH_AGE_MAX_MS)
    }

    /// Removes expired keys, earliest expiry first, until the batch is full. Returns how many.
    pub async fn expire_pass(&self, keys_max: usize) -> Result<i64, StoreError> {
        let range = self.layout().expired_by(self.now_ms);
        let rows = self.first_rows(&range, keys_max).await?;
        // Concurrent, because on a cluster each read is a round trip. Elsewhere sequential reads cost nothing, and the
        // names may be long.
        let at_once = match self.environment.capabilities.reads_wait {
            false => 1,
            true => REAPER_READS_AT_ONCE,
        };
        let mut removed = 0;
        let mut shown = None;
        for some in rows.chunks(at_once) {
            removed += self.expire_some(some, &mut shown).await?;
            if self.is_full() {
                break;
            }
        }
        Ok(removed)
    }

    /// Whether clients are notified that any of these keys is gone.
    fn tells_that_gone(&self, keys: &[Option<Meta>]) -> bool {
        let mut expired = keys.iter().flatten();
        self.tells_of(EventClasses::EXPIRED)
            || expired.any(|meta| meta.value_type.kind().is_missed())
    }

    /// The current namespaces of all databases.
    async fn namespaces_shown(&self) -> Result<Vec<(Id, u32)>, StoreError> {
        let mut shown = Vec::new();
        for database in 0..self.environment.databases {
            shown.push((self.namespace_of(database).await?, database));
        }
        Ok(shown)
    }

    /// `shown` caches the current namespaces of all databases. They are read when first needed.
    async fn expire_some(
        &self,
        rows: &[KeyValue],
        shown: &mut Option<Vec<(Id, u32)>>,
    ) -> Result<i64, StoreError> {
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            let (at_ms, namespace, name) = self.layout().read_expiry_key(&row.key)?;
            let meta_key = self.layout().meta_key(namespace, &name);
            places.push((at_ms, namespace, name, meta_key));
        }
        // Serializable, so that a key whose expiry was changed concurrently stays.
        let reads = places
            .iter()
            .map(|(.., meta_key)| self.transaction.get(meta_key, Isolation::Serializable));
        let metas = try_join_all(reads).await?.into_iter();
        let metas = metas.map(|value| value.map(|value| Meta::decode(&value)).transpose());
        let metas: Vec<Option<Meta>> = metas.collect::<Result<_, _>>()?;
        if shown.is_none() && self.tells_that_gone(&metas) {
            *shown = Some(self.namespaces_shown().await?);
        }
        let shown = shown.as_deref().unwrap_or_default();
        let mut removed = 0;
        for ((row, (at_ms, namespace, name, meta_key)), meta) in rows.iter().zip(places).zip(metas)
        {
            match meta {
                Some(meta) if meta.expire_at_ms == Some(at_ms) => {
                    let key = OpenKey {
                        // WATCH must not be notified: for clients the key ceased to exist at its expiry, and EXEC
                        // compares what they saw before.
                        database: None,
                        namespace,
                        name,
                        meta_key,
                        meta,
                    };
                    self.remove(&key);
                    self.invalidate(&key);
                    let mut shown = shown.iter();
                    let told = OpenKey {
                        database: shown
                            .find(|(known, _)| *known == namespace)
                            .map(|(_, database)| *database),
                        ..key
                    };
                    self.notify_of(EventClasses::EXPIRED, "expired", &told);
                    self.signal_gone(&told);
                    removed += 1;
                    if self.is_full() {
                        break;
                    }
                }
                // An index row without a key.
                _ => self.transaction.clear(&row.key),
            }
        }
        Ok(removed)
    }

    /// Clears about `rows_max` rows of the trash.
    pub async fn trash_pass(&self, rows_max: usize) -> Result<(), StoreError> {
        let mut budget = Budget::new(rows_max);
        for row in self.first_rows(&self.layout().trash(), rows_max).await? {
            let (kind, id) = self.layout().read_trash_key(&row.key)?;
            let is_done = match kind {
                TrashKind::Data => self.clear_data(id, &mut budget).await?,
                TrashKind::Namespace => self.clear_namespace(id, &mut budget).await?,
            };
            if !is_done {
                return Ok(());
            }
            self.transaction.clear(&row.key);
            budget.spend(1, 0);
            if self.is_spent(&budget) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Clears rows of a data id. Returns whether all are gone.
    async fn clear_data(&self, data: Id, budget: &mut Budget) -> Result<bool, StoreError> {
        let mut range = KeyRange::children(&self.layout().data_prefix(data));
        if self.environment.capabilities.clears_ranges_at_once {
            self.transaction.clear_range(&range.begin, &range.end);
            return Ok(true);
        }
        while !self.is_spent(budget) {
            let limit = budget.rows.min(TRASH_PAGE_ROWS);
            let rows = self.first_rows(&range, limit).await?;
            let Some(last) = rows.last() else {
                return Ok(true);
            };
            let behind = successor(&last.key);
            self.transaction.clear_range(&range.begin, &behind);
            range.begin = behind;
            budget.spend(rows.len(), rows.iter().map(|row| row.value.len()).sum());
            if rows.len() < limit {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes keys of a namespace that no database shows any more. Returns whether all are gone. Nobody can still
    /// write to it: a transaction that was using the database when its namespace changed has read that row, and
    /// conflicts.
    async fn clear_namespace(
        &self,
        namespace: Id,
        budget: &mut Budget,
    ) -> Result<bool, StoreError> {
        let mut scan = KeyScan::new(self, namespace, 0, 0).with_snapshot_reads();
        while !self.is_spent(budget) {
            let Some(found) = scan.next().await? else {
                let range = self.layout().keys_from(namespace, 0);
                self.transaction.clear_range(&range.begin, &range.end);
                return Ok(true);
            };
            self.remove(&found.key);
            let name_bytes = found.key.meta.long_name.as_ref().map_or(0, Bytes::len);
            budget.spend(ROWS_OF_A_KEY, name_bytes);
        }
        Ok(false)
    }
}
