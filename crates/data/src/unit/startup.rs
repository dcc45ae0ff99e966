//! Prepares a store before a server serves from it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;

use quoin_base::clock::Clock;
use quoin_base::limits::{
    COMMIT_ATTEMPTS_MAX, DATABASES, HLL_SPARSE_BYTES_MAX, STREAM_NODE_BYTES_MAX,
    STREAM_NODE_ENTRIES_MAX, STREAM_PRODUCED, STREAM_PRODUCED_DURATION_S,
};
use quoin_base::random::Random;
use quoin_base::redis_version::RedisVersion;
use quoin_base::secret::hex;
use quoin_layout::{DecodeError, LAYOUT_VERSION, Layout, decode_counter, encode_counter};
use quoin_lua::Scripts;
use quoin_store::{Isolation, Store, StoreError, Transaction};

use crate::rows::ranks::RankWants;
use crate::unit::context::{Environment, Lookups, current_namespace};
use crate::unit::first_nodes::FirstNodes;
use crate::unit::ids::IdAllocator;
use crate::unit::latest_known::{Known, LatestKnown};

/// Random numbers of 64 bits in the id of a store.
const STORE_ID_NUMBERS: usize = 2;
/// Random numbers of 64 bits in the secret of links.
const LINK_SECRET_NUMBERS: usize = 4;

/// Why a server cannot use a store.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store was written by a newer Quoin.
    #[error(
        "the store has layout version {found}, but this Quoin supports versions up to \
         {LAYOUT_VERSION}: use a newer Quoin"
    )]
    NewerLayout {
        /// The version found.
        found: i64,
    },
    /// The first rows that a server reads are not Quoin's or are damaged.
    #[error(
        "{what} cannot be read ({source}): what lies under the setting root-prefix is another \
         program's, or is damaged; `quoin doctor` looks closer"
    )]
    OwnRow {
        /// The content of the row.
        what: &'static str,
        /// Why it cannot be read.
        source: DecodeError,
    },
    /// The store failed.
    #[error("the store cannot be opened: {0}")]
    Store(#[from] StoreError),
}

/// Checks the layout's version (or writes it into an empty store) and takes an instance number that no other server
/// start has. The environment has no subscribers or other listeners, and default settings. A server adds its own before
/// it starts an executor.
///
/// # Errors
/// `NewerLayout`, `OwnRow`, or an error of the store.
pub async fn prepare(
    store: &dyn Store,
    layout: Layout,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<Environment, StartError> {
    let mut attempts = 0_u32;
    let (instance, store_id, link_secret) = loop {
        attempts += 1;
        match take_instance(store, &layout, &*random).await {
            Ok(taken) => break taken,
            // An attempt with an unknown result may have used up a number. The next attempt takes
            // another one.
            Err(StartError::Store(error)) if may_try_again(attempts, &error) => {}
            Err(error) => return Err(error),
        }
    };
    for range in layout.rows_of_instance(instance) {
        // Nothing with such an id exists yet.
        store.note_empty(&range.begin, &range.end);
    }
    let latest_known = LatestKnown::default();
    if !store.capabilities().has_other_writers {
        latest_known.set(read_known(store, &layout).await?);
    }
    Ok(Environment {
        layout,
        capabilities: store.capabilities(),
        store_id,
        link_secret,
        databases: DATABASES,
        reported_version: RedisVersion::default(),
        clock,
        random,
        ids: IdAllocator::new(instance),
        subscribers: None,
        trackers: None,
        keyspace_events: Arc::default(),
        lookups: Lookups::default(),
        scripts: Scripts::default(),
        script_calls: None,
        span_receiver: None,
        hll_sparse_max_bytes: setting(HLL_SPARSE_BYTES_MAX),
        stream_node_max_entries: setting(STREAM_NODE_ENTRIES_MAX),
        stream_node_max_bytes: setting(STREAM_NODE_BYTES_MAX),
        stream_idmp_duration_s: setting(STREAM_PRODUCED_DURATION_S),
        stream_idmp_maxsize: setting(STREAM_PRODUCED),
        stream_first_nodes: FirstNodes::default(),
        rights: None,
        rank_wants: RankWants::default(),
        watched_keys: None,
        latest_known,
    })
}

/// A setting that never changes.
fn setting(value: u64) -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(value))
}

async fn read_known(store: &dyn Store, layout: &Layout) -> Result<Known, StoreError> {
    let snapshot = store.begin_read()?;
    let mut known = Known::default();
    for database in 0..DATABASES {
        let row = snapshot.get(&layout.database_key(database), Isolation::Snapshot);
        let namespace = row
            .await
            .and_then(|row| current_namespace(database, row.as_ref()));
        let namespace = if_undamaged(namespace)?;
        known
            .namespaces
            .extend(namespace.map(|namespace| (database, namespace)));
    }
    let flushes = snapshot.get(&layout.script_flushes_key(), Isolation::Snapshot);
    let flushes = flushes
        .await
        .and_then(|row| Ok(decode_counter(row.as_ref())?));
    known.script_flushes = if_undamaged(flushes)?.map(i64::cast_unsigned);
    Ok(known)
}

/// `None` if the row is damaged. Commands that need it will report that.
fn if_undamaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_about_rows() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Upgrades a store of an older layout to this version. The rules of this version hold for everything that older
/// servers have written. Older servers refuse the store afterwards. Must be called before a server writes.
///
/// # Errors
/// An error of the store, or `OwnRow`.
pub async fn raise_version(store: &dyn Store, layout: &Layout) -> Result<(), StartError> {
    let version_key = layout.version_key();
    let mut attempts = 0_u32;
    loop {
        attempts += 1;
        let transaction = store.begin_write()?;
        let version = transaction.get(&version_key, Isolation::Serializable).await;
        let committed = match version {
            Ok(Some(version)) if version_of(&version)? < LAYOUT_VERSION => {
                transaction.set(&version_key, &encode_counter(LAYOUT_VERSION));
                transaction.commit().await
            }
            Ok(_) => return Ok(()),
            Err(error) => Err(error),
        };
        match committed {
            Err(error) if may_try_again(attempts, &error) => {}
            ended => return Ok(ended?),
        }
    }
}

/// Whether to try again, which is harmless even if the first attempt was applied.
fn may_try_again(attempts: u32, error: &StoreError) -> bool {
    attempts < COMMIT_ATTEMPTS_MAX
        && (error.is_retryable() || matches!(error, StoreError::UnknownResult))
}

/// Takes an instance number. Returns it with the store's id, and with the secret of the servers that share it.
async fn take_instance(
    store: &dyn Store,
    layout: &Layout,
    random: &dyn Random,
) -> Result<(u64, String, Option<Bytes>), StartError> {
    let transaction = store.begin_write()?;
    let version_key = layout.version_key();
    match transaction
        .get(&version_key, Isolation::Serializable)
        .await?
    {
        None => transaction.set(&version_key, &encode_counter(LAYOUT_VERSION)),
        Some(value) => {
            let found = version_of(&value)?;
            if found > LAYOUT_VERSION {
                return Err(StartError::NewerLayout { found });
            }
        }
    }
    let instances_key = layout.instances_key();
    let starts = transaction
        .get(&instances_key, Isolation::Serializable)
        .await?;
    let instance = counter("the count of server starts", starts.as_ref())? + 1;
    transaction.set(&instances_key, &encode_counter(instance));
    let store_id = match store.id() {
        Some(id) => id,
        None => {
            let key = layout.store_id_key();
            hex(stored_random(&*transaction, &key, random, STORE_ID_NUMBERS).await?)
        }
    };
    let link_secret = match store.capabilities().has_other_writers {
        true => {
            let key = layout.link_secret_key();
            Some(stored_random(&*transaction, &key, random, LINK_SECRET_NUMBERS).await?)
        }
        false => None,
    };
    transaction.commit().await?;
    match u64::try_from(instance) {
        Ok(instance) => Ok((instance, store_id, link_secret)),
        Err(_) => Err(StoreError::Corrupt("count of server starts").into()),
    }
}

/// The random bytes, eight for each of `numbers`, that the first server wrote into the store.
async fn stored_random(
    transaction: &dyn Transaction,
    key: &[u8],
    random: &dyn Random,
    numbers: usize,
) -> Result<Bytes, StoreError> {
    if let Some(stored) = transaction.get(key, Isolation::Serializable).await? {
        return Ok(stored);
    }
    let bytes = (0..numbers).flat_map(|_| random.next_u64().to_be_bytes());
    let made: Bytes = bytes.collect();
    transaction.set(key, &made);
    Ok(made)
}

fn version_of(row: &Bytes) -> Result<i64, StartError> {
    counter("the version of the store's layout", Some(row))
}

fn counter(what: &'static str, row: Option<&Bytes>) -> Result<i64, StartError> {
    decode_counter(row).map_err(|source| StartError::OwnRow { what, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_base::clock::SystemClock;
    use quoin_base::random::SystemRandom;
    use quoin_store::faults::OptimisticStore;
    use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

    async fn start(store: &EmbeddedStore) -> Result<u64, StartError> {
        let layout = Layout::new("test");
        let environment =
            prepare(store, layout, Arc::new(SystemClock), Arc::new(SystemRandom)).await?;
        Ok(environment.ids.instance())
    }

    #[tokio::test]
    async fn an_older_layout_becomes_one_of_this_version() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let layout = Layout::new("test");
        let version = async || {
            let transaction = store.begin_read().unwrap();
            let row = transaction.get(&layout.version_key(), Isolation::Snapshot);
            decode_counter(row.await.unwrap().as_ref()).unwrap()
        };
        // An empty store gets its version at the first start.
        raise_version(&store, &layout).await.unwrap();
        assert_eq!(version().await, 0);
        let transaction = store.begin_write().unwrap();
        transaction.set(&layout.version_key(), &encode_counter(1));
        transaction.commit().await.unwrap();
        start(&store).await.unwrap();
        assert_eq!(version().await, 1);
        raise_version(&store, &layout).await.unwrap();
        assert_eq!(version().await, LAYOUT_VERSION);
    }

    #[tokio::test]
    async fn rows_of_another_program_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let transaction = store.begin_write().unwrap();
        transaction.set(&Layout::new("test").version_key(), b"theirs");
        transaction.commit().await.unwrap();
        let refused = start(&store).await.unwrap_err().to_string();
        assert!(
            refused.contains("version of the store's layout"),
            "{refused}"
        );
        assert!(refused.contains("root-prefix"), "{refused}");
    }

    #[tokio::test]
    async fn a_store_without_an_id_is_given_one() {
        let layout = || Layout::new("test");
        let id_in = async |store: &dyn Store| {
            let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandom));
            let prepared = prepare(store, layout(), clock, random).await;
            prepared.unwrap().store_id
        };
        let folder = tempfile::tempdir().unwrap();
        let open = |name| {
            let path = folder.path().join(name);
            EmbeddedStore::open(&path, EmbeddedOptions::default()).unwrap()
        };
        let store = OptimisticStore::new(open("a"));
        let id = id_in(&store).await;
        assert_eq!(id.len(), 32);
        assert_eq!(id_in(&store).await, id);
        assert_ne!(id_in(&OptimisticStore::new(open("b"))).await, id);
        let store = open("c");
        assert_eq!(id_in(&store).await, store.id().to_string());
    }

    #[tokio::test]
    async fn a_newer_layout_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let first = start(&store).await.unwrap();
        assert!(start(&store).await.unwrap() > first);
        let transaction = store.begin_write().unwrap();
        let newer = encode_counter(LAYOUT_VERSION + 1);
        transaction.set(&Layout::new("test").version_key(), &newer);
        transaction.commit().await.unwrap();
        let refused = start(&store).await;
        let expected = LAYOUT_VERSION + 1;
        assert!(matches!(refused, Err(StartError::NewerLayout { found }) if found == expected));
    }
}
