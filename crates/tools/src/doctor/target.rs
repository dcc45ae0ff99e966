//! The store that is checked: how it is read, scanned for keys, and repaired.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::report::{Line, shown};
use crate::progress::ProgressLine;
use quoin_base::clock::Clock;
use quoin_base::limits::DATABASES_MAX;
use quoin_base::random::Random;
use quoin_data::cluster::delegation::has_grants;
use quoin_data::keyspace::presence::{Presence, presence};
use quoin_data::unit::context::current_namespace;
use quoin_layout::{
    Id, KeyName, KeyRange, KeysRow, Layout, Meta, Space, TrashKind, decode_length, successor,
};
use quoin_store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, Store, StoreError, Transaction,
};

/// Rows that `quoin doctor` reads at a time if they are small.
pub(super) const PAGE_ROWS: usize = 512;

/// Rows of data that it reads at a time; each may hold a chunk of a split value.
pub(super) const DATA_PAGE_ROWS: usize = 128;

/// Reads in flight at once.
pub(super) const READS_AT_ONCE: usize = 64;

/// Work that has been due for this long should have been done by some server.
pub(super) const OVERDUE_MS: i64 = 60_000;

/// Attempts at one read or repair.
const ATTEMPTS_MAX: u32 = 10;

/// Pause between two attempts.
const RETRY_PAUSE_MS: u64 = 50;

/// How often each measurement is repeated.
pub(super) const LATENCY_TRIES: usize = 40;

/// The future of a check.
pub(super) type Answer<'c, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + 'c>>;

/// A store, and what may be done with it.
pub(super) struct DoctorTarget<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) layout: Layout,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    /// Whether to repair what is wrong.
    pub(super) repairs: bool,
    /// Whether elements are counted.
    pub(super) is_deep: bool,
    /// Whether no server uses the store.
    pub(super) is_offline: bool,
    /// Whether the store is a standby, which a commit would end.
    pub(super) is_standby: bool,
    /// Longest time that messages may stay in the store.
    pub(super) message_grace: Duration,
    pub(super) progress: ProgressLine,
    /// Which databases showed which namespaces at the start, for the names of keys.
    pub(super) shown: OnceCell<Vec<(Id, u32)>>,
}

impl DoctorTarget<'_> {
    /// Reads at one moment. Retries if the store asks to.
    pub(super) async fn read<T>(
        &self,
        read: impl AsyncFn(&dyn ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_in(ATTEMPTS_MAX, read).await
    }

    /// Calls `visit` for every row of a range, page by page. Each page is read at its own moment.
    pub(super) async fn each_row(
        &self,
        range: &KeyRange,
        mut visit: impl FnMut(&KeyValue),
    ) -> Result<(), StoreError> {
        let mut begin = range.begin.clone();
        loop {
            let page = self
                .read(async |transaction: &dyn ReadTransaction| {
                    let limit = PAGE_ROWS;
                    rows(transaction, &begin, &range.end, limit, Isolation::Snapshot).await
                })
                .await?;
            page.iter().for_each(&mut visit);
            match page.last() {
                Some(last) if page.len() >= PAGE_ROWS => begin = successor(&last.key),
                _ => return Ok(()),
            }
        }
    }

    /// Reads at one moment. `None` if one read transaction is not long enough.
    pub(super) async fn read_much<T>(
        &self,
        read: impl AsyncFn(&dyn ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match self.read_in(2, read).await {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::TooOld) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read_in<T>(
        &self,
        attempts_max: u32,
        read: impl AsyncFn(&dyn ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = {
                let transaction = self.store.begin_read()?;
                read(&*transaction).await
            };
            match result {
                Err(error) if error.is_retryable() && attempts < attempts_max => pause().await,
                result => return result,
            }
        }
    }

    /// Changes something in one transaction. After a conflict or an unknown result, calls `change`
    /// again, which reads and decides again.
    pub(super) async fn write<T>(
        &self,
        change: impl AsyncFn(&dyn Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let transaction = self.store.begin_write()?;
            let result = match change(&*transaction).await {
                Ok(changed) => transaction.commit().await.map(|()| changed),
                Err(error) => {
                    drop(transaction);
                    Err(error)
                }
            };
            match result {
                Err(error)
                    if attempts < ATTEMPTS_MAX
                        && (error.is_retryable() || matches!(error, StoreError::UnknownResult)) =>
                {
                    pause().await;
                }
                result => return result,
            }
        }
    }

    /// [`Self::write`], if repairs are wanted. Returns whether it was repaired. A repair that conflicts every
    /// time is not done, and may succeed later.
    pub(super) async fn repair(
        &self,
        change: impl AsyncFn(&dyn Transaction) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        if !self.repairs {
            return Ok(false);
        }
        match self.write(change).await {
            Ok(is_repaired) => Ok(is_repaired),
            Err(error) if error.is_retryable() => Ok(false),
            Err(StoreError::TooLarge) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The current namespaces of all databases, however many the servers of this store have.
    pub(super) async fn current_namespaces(
        &self,
        transaction: &dyn ReadTransaction,
        isolation: Isolation,
    ) -> Result<Vec<(Id, u32)>, StoreError> {
        let places: Vec<Vec<u8>> = (0..=DATABASES_MAX)
            .map(|database| self.layout.database_key(database))
            .collect();
        let (Some(begin), Some(end)) = (places.first(), places.last()) else {
            return Ok(Vec::new());
        };
        // Nearly all databases have no row. There are no more rows than databases.
        let found = rows(transaction, begin, end, places.len(), isolation).await?;
        let found: HashMap<&[u8], &Bytes> = found
            .iter()
            .map(|row| (row.key.as_ref(), &row.value))
            .collect();
        let mut shown = Vec::new();
        for (database, place) in (0..DATABASES_MAX).zip(&places) {
            let row = found.get(place.as_slice()).copied();
            shown.push((current_namespace(database, row)?, database));
        }
        Ok(shown)
    }

    /// A key in the form shown to people: its name, and its database unless that is 0.
    pub(super) fn name(&self, namespace: Id, name: &KeyName, meta: Option<&Meta>) -> String {
        let full = match meta {
            Some(meta) => meta.full_name(name).ok(),
            None => name.inline(),
        };
        let name = full.map_or_else(|| "a long name".to_owned(), |full| shown(full));
        let Some(shown) = self.shown.get() else {
            return name;
        };
        match shown.iter().find(|(known, _)| *known == namespace) {
            Some((_, 0)) => name,
            Some((_, database)) => format!("{name} of database {database}"),
            None => format!("{name} of no database"),
        }
    }

    /// Whether a key with this metadata and length exists.
    pub(super) fn presence(&self, meta: &Meta, length: i64) -> Presence {
        presence(meta, length, &self.store.capabilities())
    }

    /// Whether elements of a queue are granted and not fetched. Conflicts with new grants.
    pub(super) async fn has_grants(
        &self,
        transaction: &dyn Transaction,
        data: Id,
    ) -> Result<bool, StoreError> {
        has_grants(&self.layout, transaction, data).await
    }

    /// Clears data that no key names, as the server does when a key is removed.
    pub(super) fn discard_data(&self, transaction: &dyn Transaction, data: Id) {
        if self.store.capabilities().clears_ranges_at_once {
            let range = KeyRange::children(&self.layout.data_prefix(data));
            transaction.clear_range(&range.begin, &range.end);
        } else {
            let trash_key = self.layout.trash_key(TrashKind::Data, data);
            transaction.set(&trash_key, b"");
        }
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(RETRY_PAUSE_MS)).await;
}

/// The first rows of a range.
pub(super) async fn rows(
    transaction: &dyn ReadTransaction,
    begin: &[u8],
    end: &[u8],
    limit: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, StoreError> {
    transaction
        .get_range(RangeQuery {
            begin,
            end,
            limit,
            reverse: false,
            isolation,
        })
        .await
}

/// A key, whether it exists for clients or not.
#[derive(Debug, Clone)]
pub(super) struct FoundKey {
    pub(super) namespace: Id,
    pub(super) name: KeyName,
    pub(super) meta_key: Bytes,
    pub(super) meta: Meta,
    /// `None` if the counter cannot be read.
    pub(super) length: Option<i64>,
}

/// A page of the space of keys.
#[derive(Debug, Default)]
pub(super) struct KeyPage {
    pub(super) keys: Vec<FoundKey>,
    /// Keys of length rows without metadata.
    pub(super) stray_lengths: Vec<Bytes>,
    /// Keys of rows that cannot be read.
    pub(super) unreadable: Vec<Bytes>,
}

/// The first page of keys.
pub(super) fn first_key(layout: &Layout) -> Vec<u8> {
    layout.rows_of(Space::Keys).begin
}

/// Reads a page from `begin` on, and returns where the next page begins. Metadata and length of a key are
/// always in one page.
pub(super) async fn read_key_page(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    begin: &[u8],
) -> Result<(KeyPage, Option<Vec<u8>>), StoreError> {
    let end = layout.rows_of(Space::Keys).end;
    let mut rows = rows(transaction, begin, &end, PAGE_ROWS, Isolation::Snapshot).await?;
    let mut next = None;
    if rows.len() >= PAGE_ROWS
        && let Some(last) = rows.pop()
    {
        next = Some(match layout.read_namespaced_key(&last.key) {
            // Its length may follow.
            Ok((_, KeysRow::Meta(_))) => last.key.to_vec(),
            _ => {
                let behind = successor(&last.key);
                rows.push(last);
                behind
            }
        });
    }
    let mut page = KeyPage::default();
    for row in rows {
        match layout.read_namespaced_key(&row.key) {
            Ok((namespace, KeysRow::Meta(name))) => match Meta::decode(&row.value) {
                Ok(meta) => page.keys.push(FoundKey {
                    namespace,
                    name,
                    meta_key: row.key,
                    meta,
                    length: Some(0),
                }),
                Err(_) => page.unreadable.push(row.key),
            },
            Ok((namespace, KeysRow::Length(name))) => match page.keys.last_mut() {
                Some(key) if key.namespace == namespace && key.name == name => {
                    key.length = decode_length(Some(&row.value)).ok();
                }
                _ if is_beside(&row.key, page.unreadable.last()) => {}
                _ => page.stray_lengths.push(row.key),
            },
            Err(_) => page.unreadable.push(row.key),
        }
    }
    Ok((page, next))
}

/// Whether this is the length of a key with unreadable metadata.
fn is_beside(length_key: &[u8], unreadable: Option<&Bytes>) -> bool {
    unreadable.is_some_and(|meta_key| length_key.starts_with(meta_key))
}

/// A check that gets all keys, page by page.
pub(in crate::doctor) trait KeyCheck {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Checks some keys, as they were a moment ago.
    fn check<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()>;

    /// The result.
    fn line(&self) -> Line;
}
