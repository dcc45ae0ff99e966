//! The context of a command: its transaction, the time, and the layout.
//!
//! Also keyspace events: like Redis's `notifyKeyspaceEvent`, commands report changes of keys in messages that are
//! published after the commit.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use quoin_base::clock::Clock;
use quoin_base::counter::Counter;
use quoin_base::events::{EventClasses, EventSwitch};
use quoin_base::limits::STREAM_NODE_ENTRIES_MAX;
use quoin_base::random::Random;
use quoin_base::redis_version::RedisVersion;
use quoin_layout::{Id, Layout, ProducerSettings, decode_id};
use quoin_lua::Scripts;
use quoin_store::{Capabilities, Isolation, ReadTransaction, StoreError, Transaction};

use crate::error::CommandError;
use crate::keyspace::key::{ClientKey, OpenKey};
use crate::rows::ranks::{RankChanges, RankWants};
use crate::unit::first_nodes::FirstNodes;
use crate::unit::host::{Rights, ScriptCalls, Trackers};
use crate::unit::ids::IdAllocator;
use crate::unit::known::{KnownKeys, LocatedKeys};
use crate::unit::latest_known::{Known, LatestKnown};
use crate::unit::signals::{ChannelKind, Message, Ready, Signals, Subscribers, WatchedKeys};
use crate::unit::spans::SpanReceiver;

/// The state that all transactions of a server share.
pub struct Environment {
    /// The store's layout.
    pub layout: Layout,
    /// The store's capabilities.
    pub capabilities: Capabilities,
    /// The store's id. It never changes.
    pub store_id: String,
    /// The secret by which servers that share the store recognize each other. `None` on a store
    /// with a single writer.
    pub link_secret: Option<Bytes>,
    /// The setting `databases`: the number of databases.
    pub databases: u32,
    /// The version of Redis that clients and scripts see: the setting `compatible-version`.
    pub reported_version: RedisVersion,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub random: Arc<dyn Random>,
    /// Allocates unique ids.
    pub ids: IdAllocator,
    /// Receives published messages, if there can be subscribers.
    pub subscribers: Option<Arc<dyn Subscribers>>,
    /// Which keyspace events are published.
    pub keyspace_events: Arc<EventSwitch>,
    /// Hits and misses of key lookups, for INFO.
    pub lookups: Lookups,
    /// The running scripts and the cached scripts.
    pub scripts: Scripts,
    /// Counts the commands that scripts call, if they are counted.
    pub script_calls: Option<Arc<dyn ScriptCalls>>,
    /// Receives what traces show about tasks, if a collector is configured.
    pub span_receiver: Option<Arc<dyn SpanReceiver>>,
    /// The setting `hll-sparse-max-bytes`.
    pub hll_sparse_max_bytes: Arc<AtomicU64>,
    /// Tracks keys for clients, if clients can track keys.
    pub trackers: Option<Arc<dyn Trackers>>,
    /// The setting `stream-node-max-entries`.
    pub stream_node_max_entries: Arc<AtomicU64>,
    /// The setting `stream-node-max-bytes`.
    pub stream_node_max_bytes: Arc<AtomicU64>,
    /// The setting `stream-idmp-duration`.
    pub stream_idmp_duration_s: Arc<AtomicU64>,
    /// The setting `stream-idmp-maxsize`.
    pub stream_idmp_maxsize: Arc<AtomicU64>,
    /// The ends of Redis's first nodes, for streams that are trimmed.
    pub stream_first_nodes: FirstNodes,
    /// The rights of clients. `None` allows everything.
    pub rights: Option<Arc<dyn Rights>>,
    /// Keys in which ranks were expensive to find.
    pub rank_wants: RankWants,
    /// The keys that clients watch. Set by the executor when it starts.
    pub watched_keys: Option<Arc<dyn WatchedKeys>>,
    /// Values of some rows after the latest commit. Empty if other servers write too.
    pub latest_known: LatestKnown,
}

impl Environment {
    /// Checks a database number.
    ///
    /// # Errors
    /// `DatabaseOutOfRange` if it is not below [`Environment::databases`].
    pub fn database(&self, number: i64) -> Result<u32, CommandError> {
        u32::try_from(number)
            .ok()
            .filter(|database| *database < self.databases)
            .ok_or(CommandError::DatabaseOutOfRange)
    }

    /// The keyspace events that are currently published.
    pub fn events(&self) -> EventClasses {
        self.keyspace_events.classes()
    }

    /// Most bytes of a HyperLogLog in the sparse encoding.
    pub fn hll_sparse_bytes_max(&self) -> usize {
        let bytes = self.hll_sparse_max_bytes.load(Ordering::Relaxed);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// How many small entries of a stream Redis keeps in one node.
    pub fn stream_node_entries(&self) -> u64 {
        match self.stream_node_entries_max() {
            // The number of entries is then limited only by their size.
            u64::MAX => STREAM_NODE_ENTRIES_MAX,
            entries => entries,
        }
    }

    /// Most entries of a stream that Redis keeps in one node, however small they are.
    pub fn stream_node_entries_max(&self) -> u64 {
        match self.stream_node_max_entries.load(Ordering::Relaxed) {
            0 => u64::MAX,
            entries => entries,
        }
    }

    /// Most bytes that Redis keeps in one node, unless a single entry is larger.
    pub fn stream_node_bytes_max(&self) -> u64 {
        match self.stream_node_max_bytes.load(Ordering::Relaxed) {
            0 => u64::MAX,
            bytes => bytes,
        }
    }

    /// What streams without their own setting remember of producers.
    pub fn producer_settings(&self) -> ProducerSettings {
        ProducerSettings {
            duration_s: self.stream_idmp_duration_s.load(Ordering::Relaxed),
            entries_max: self.stream_idmp_maxsize.load(Ordering::Relaxed),
        }
    }

    /// The random part of a pushed position, which makes the keys of concurrent pushes differ. A store with a single
    /// writer has no concurrent pushes, and 0 keeps its keys short.
    pub fn position_random(&self) -> i64 {
        if !self.capabilities.has_other_writers {
            0
        } else {
            // 63 bits, so that it is a non-negative integer.
            (self.random.next_u64() >> 1) as i64
        }
    }
}

/// How often read-only commands found a key, and how often they did not.
#[derive(Debug, Default)]
pub struct Lookups {
    /// Lookups that found a key.
    pub hits: Counter,
    /// Lookups that found no key.
    pub misses: Counter,
}

/// A command's read view of one transaction.
pub struct ReadContext<'t> {
    /// The transaction.
    pub transaction: &'t dyn ReadTransaction,
    /// The state shared by all transactions.
    pub environment: &'t Environment,
    /// The time at which all commands of the transaction are executed, in milliseconds since the Unix epoch. One
    /// instant for all of them, as in Redis.
    pub now_ms: i64,
    /// The client's database.
    pub database: u32,
    /// How the command's plain reads take part in conflict detection: `Serializable` in commands that write and within
    /// EXEC; `Snapshot` in read-only commands, which may share a batch with other commands' writes but have no writes
    /// of their own that could conflict.
    pub isolation: Isolation,
    /// Whether reads that commands normally do at snapshot isolation, to avoid conflicts, must take part in conflict
    /// detection. This is so in EXEC, where one command's reply may be the reason for the next command.
    pub is_strict: bool,
    /// Whether a script called the command.
    pub is_in_script: bool,
    /// Whether the client may not read keys that are named in values (SORT).
    pub lacks_named_keys: bool,
    /// What is known about the command's keys.
    pub known_keys: KnownKeys<'t>,
    /// Whether the command is read-only, so that its lookups count in [`Lookups`].
    counts_lookups: bool,
    /// Namespaces that were looked up in this transaction.
    pub(crate) namespaces: &'t NamespaceCache,
}

/// The current namespace of a database, given its row. FLUSHDB and SWAPDB change it.
///
/// # Errors
/// `Corrupt` if the row is malformed.
pub fn current_namespace(database: u32, row: Option<&Bytes>) -> Result<Id, StoreError> {
    match row {
        Some(value) => Ok(decode_id(value)?),
        None => Ok(Id {
            instance: 0,
            sequence: u64::from(database),
        }),
    }
}

/// Databases' namespaces as seen by one transaction, and the locations of its keys.
#[derive(Debug, Default)]
pub struct NamespaceCache {
    /// What the transaction has read or set.
    known: RefCell<Known>,
    /// What was known before the transaction began, on a store with a single writer. `None` once a change may have been
    /// undone.
    before: RefCell<Option<Arc<Known>>>,
    /// Whether the transaction has changed any of it.
    has_changed: Cell<bool>,
    pub(crate) located: LocatedKeys,
    /// The random part of the positions of elements that the transaction pushes.
    position_random: OnceCell<i64>,
    /// Changes of the transaction that are not counted in blocks yet.
    pub(crate) rank_changes: RankChanges,
}

impl NamespaceCache {
    /// For a transaction or snapshot, with what was known before it began.
    pub(crate) fn knowing(before: Option<Arc<Known>>) -> Self {
        Self {
            before: RefCell::new(before),
            ..Self::default()
        }
    }

    /// Forgets what undone writes may have changed, so that it is looked up again.
    pub(crate) fn forget(&self) {
        if self.has_changed.get() {
            self.known.take();
            self.before.take();
        }
        self.located.forget();
    }

    /// Forgets the number of script flushes, which was incremented without being read.
    pub(crate) fn forget_script_flushes(&self) {
        self.has_changed.set(true);
        self.forget();
    }

    /// Searches what the transaction knows, then what was known before.
    fn find<T>(&self, find: impl Fn(&Known) -> Option<T>) -> Option<T> {
        let before = || find(self.before.borrow().as_ref()?);
        find(&self.known.borrow()).or_else(before)
    }

    pub(crate) fn script_flushes(&self) -> Option<u64> {
        self.find(|known| known.script_flushes)
    }

    pub(crate) fn set_script_flushes(&self, flushes: u64) {
        self.known.borrow_mut().script_flushes = Some(flushes);
    }

    /// What is known at the end of the transaction, if it differs from before.
    pub(crate) fn take_news(&self) -> Option<Known> {
        let mut known = self.known.take();
        match self.before.take() {
            Some(_) if known.is_empty() => return None,
            Some(before) => known.complete(&before),
            None => {}
        }
        Some(known)
    }
}

impl<'t> ReadContext<'t> {
    /// A view of `transaction` for a read-only command of a client of `database`.
    pub fn new(
        transaction: &'t dyn ReadTransaction,
        environment: &'t Environment,
        namespaces: &'t NamespaceCache,
        now_ms: i64,
        database: u32,
    ) -> Self {
        Self {
            transaction,
            environment,
            now_ms,
            database,
            isolation: Isolation::Snapshot,
            is_strict: false,
            is_in_script: false,
            lacks_named_keys: false,
            known_keys: KnownKeys::Nothing,
            counts_lookups: true,
            namespaces,
        }
    }

    /// Makes every read serializable, for commands within EXEC.
    pub fn strict(mut self) -> Self {
        self.isolation = Isolation::Serializable;
        self.is_strict = true;
        self
    }

    /// A view whose lookups do not count in [`Lookups`], for the server's own reads.
    pub(crate) fn uncounted(&self) -> ReadContext<'t> {
        ReadContext {
            counts_lookups: false,
            ..*self
        }
    }

    /// Counts a lookup of a read-only command.
    pub(crate) fn count_lookup(&self, is_hit: bool) {
        if self.counts_lookups {
            let lookups = &self.environment.lookups;
            let counter = if is_hit {
                &lookups.hits
            } else {
                &lookups.misses
            };
            counter.add(1);
        }
    }

    /// The isolation of reads that commands normally do at snapshot isolation.
    pub fn relaxed(&self) -> Isolation {
        if self.is_strict {
            Isolation::Serializable
        } else {
            Isolation::Snapshot
        }
    }

    /// A view whose plain reads take part in conflict detection only within EXEC.
    pub(crate) fn relaxed_view(&self) -> ReadContext<'t> {
        ReadContext {
            isolation: self.relaxed(),
            ..*self
        }
    }

    /// The store's layout.
    pub fn layout(&self) -> &'t Layout {
        &self.environment.layout
    }

    /// The current namespace of the client's database.
    pub async fn namespace(&self) -> Result<Id, StoreError> {
        self.namespace_of(self.database).await
    }

    /// The current namespace of a database. Commands that write read it serializably, so that FLUSHDB and SWAPDB
    /// conflict with them.
    pub async fn namespace_of(&self, database: u32) -> Result<Id, StoreError> {
        let known = self.namespaces.find(|known| known.namespace(database));
        if let Some(namespace) = known {
            return Ok(namespace);
        }
        let stored = self
            .transaction
            .get(
                &self.layout().database_key(database),
                Isolation::Serializable,
            )
            .await?;
        let namespace = current_namespace(database, stored.as_ref())?;
        let mut known = self.namespaces.known.borrow_mut();
        known.namespaces.push((database, namespace));
        drop(known);
        Ok(namespace)
    }

    /// The view for another database.
    ///
    /// # Errors
    /// `DatabaseOutOfRange` if it is not below [`Environment::databases`].
    pub fn for_database(&self, database: i64) -> Result<ReadContext<'t>, CommandError> {
        let database = self.environment.database(database)?;
        Ok(ReadContext { database, ..*self })
    }
}

/// A command's write view of one transaction. It can also read, like a [`ReadContext`].
pub struct WriteContext<'t> {
    read: ReadContext<'t>,
    /// The transaction.
    pub transaction: &'t dyn Transaction,
    /// What to tell others after the commit.
    pub signals: &'t Signals,
    /// Whether changes of lengths count as elements that enter or leave queues.
    pub(crate) counts_elements: bool,
}

impl<'t> Deref for WriteContext<'t> {
    type Target = ReadContext<'t>;

    fn deref(&self) -> &ReadContext<'t> {
        &self.read
    }
}

impl<'t> WriteContext<'t> {
    /// A view of `transaction` for a client of `database`.
    pub fn new(
        transaction: &'t dyn Transaction,
        environment: &'t Environment,
        namespaces: &'t NamespaceCache,
        signals: &'t Signals,
        now_ms: i64,
        database: u32,
    ) -> Self {
        let mut read = ReadContext::new(transaction, environment, namespaces, now_ms, database);
        read.isolation = Isolation::Serializable;
        read.counts_lookups = false;
        Self {
            read,
            transaction,
            signals,
            counts_elements: true,
        }
    }

    /// A view that does not count elements as entering or leaving queues, for elements that return
    /// from another server.
    pub(crate) fn without_counting(&self) -> WriteContext<'t> {
        WriteContext {
            read: ReadContext { ..self.read },
            transaction: self.transaction,
            signals: self.signals,
            counts_elements: false,
        }
    }

    /// Makes every read serializable, for commands within EXEC.
    pub fn strict(mut self) -> Self {
        self.read = self.read.strict();
        self
    }

    /// Marks the command as called by a script.
    pub fn in_script(mut self) -> Self {
        self.read.is_in_script = true;
        self
    }

    /// Marks that the client may not read keys that are named in values.
    pub fn lacking_named_keys(mut self) -> Self {
        self.read.lacks_named_keys = true;
        self
    }

    /// The random part of the positions that this unit of work pushes to lists and priority queues. On a store with
    /// several writers, no other unit uses the same one.
    pub(crate) fn unit_position_random(&self) -> i64 {
        let random = &self.namespaces.position_random;
        *random.get_or_init(|| self.environment.position_random())
    }

    /// Sets what is known about the command's keys.
    pub fn knowing(mut self, known_keys: KnownKeys<'t>) -> Self {
        self.read.known_keys = known_keys;
        self
    }

    /// Publishes a message after the commit. Returns how many clients of this server it will reach. A message without
    /// receivers is dropped. If too much is published, the command fails when it ends ([`Signals::has_refused`]).
    pub fn publish(&self, kind: ChannelKind, channel: Bytes, payload: Bytes) -> usize {
        let subscribers = self.environment.subscribers.as_ref();
        let count = subscribers.map_or(0, |subscribers| subscribers.count(kind, &channel));
        if count == 0 && subscribers.is_some() && !self.environment.capabilities.has_other_writers {
            return 0;
        }
        self.signals.publish(Message {
            kind,
            channel,
            payload,
        });
        count
    }

    /// The view for another database.
    ///
    /// # Errors
    /// `DatabaseOutOfRange` if it is not below [`Environment::databases`].
    pub fn for_database(&self, database: i64) -> Result<WriteContext<'t>, CommandError> {
        Ok(WriteContext {
            read: self.read.for_database(database)?,
            transaction: self.transaction,
            signals: self.signals,
            counts_elements: self.counts_elements,
        })
    }

    /// Sets the namespace of a database.
    pub fn set_namespace(&self, database: u32, namespace: Id) {
        self.transaction.set(
            &self.layout().database_key(database),
            &quoin_layout::encode_id(namespace),
        );
        self.namespaces.has_changed.set(true);
        let mut known = self.namespaces.known.borrow_mut();
        known.namespaces.retain(|(other, _)| *other != database);
        known.namespaces.push((database, namespace));
        drop(known);
        self.namespaces.located.forget();
        self.signals.ready(Ready::Database(database));
    }
}

impl WriteContext<'_> {
    /// Whether events of this class are published.
    pub fn tells_of(&self, class: EventClasses) -> bool {
        self.environment.events().contains(class)
    }

    /// Publishes a keyspace event for a key of the client's database, if the class is enabled: first to the channel
    /// named after the key, then to the one named after the event.
    pub fn notify(&self, class: EventClasses, event: &'static str, key: &Bytes) {
        if self.tells_of(class) {
            self.publish_event(event, self.database, key);
        }
    }

    /// [`Self::notify`] for a key that was found.
    pub(crate) fn notify_of(&self, class: EventClasses, event: &'static str, key: &OpenKey) {
        if self.tells_of(class)
            && let Some(ClientKey { database, key }) = key.client_key()
        {
            self.publish_event(event, database, &key);
        }
    }

    fn publish_event(&self, event: &'static str, database: u32, key: &Bytes) {
        let classes = self.environment.events();
        if classes.contains(EventClasses::KEYSPACE) {
            let mut channel = format!("__keyspace@{database}__:").into_bytes();
            channel.extend_from_slice(key);
            let event = Bytes::from_static(event.as_bytes());
            self.publish(ChannelKind::Global, channel.into(), event);
        }
        if classes.contains(EventClasses::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{event}");
            self.publish(ChannelKind::Global, channel.into(), key.clone());
        }
    }

    /// Publishes that a key that seems empty comes into existence. On a store with several writers, a key may have
    /// metadata without existing for clients (see [`crate::keyspace`]). Must be called before anything is added to the
    /// key.
    pub async fn notify_if_reborn(&self, key: &OpenKey, name: &Bytes) -> Result<(), StoreError> {
        if self.tells_of(EventClasses::NEW)
            && self
                .is_retained(&key.meta_key, &key.meta, self.relaxed())
                .await?
        {
            self.notify(EventClasses::NEW, "new", name);
        }
        Ok(())
    }
}
