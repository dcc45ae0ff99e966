//! What a command works with: a transaction, the time, and where things lie.
//!
//! Keyspace events: commands tell of what they did to keys, as `notifyKeyspaceEvent` of Redis
//! does, in messages that are published after the commit.

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
use quoin_layout::{Id, Layout, decode_id};
use quoin_lua::Scripts;
use quoin_store::{Capabilities, Isolation, ReadTransaction, StoreError, Transaction};

use crate::cluster::delegation::HeldGrants;
use crate::error::CommandError;
use crate::keyspace::key::{ClientKey, OpenKey};
use crate::rows::ranks::{RankChanges, RankWants};
use crate::unit::first_nodes::FirstNodes;
use crate::unit::host::{Rights, ScriptCalls, Trackers};
use crate::unit::ids::IdAllocator;
use crate::unit::known::{KnownKeys, LocatedKeys};
use crate::unit::latest_known::{Known, LatestKnown};
use crate::unit::script_reads::ScriptReads;
use crate::unit::signals::{ChannelKind, Message, Ready, Signals, Subscribers, WatchedKeys};

/// What stays the same for all transactions of a server.
pub struct Environment {
    /// Where everything lies.
    pub layout: Layout,
    /// What the store can do.
    pub capabilities: Capabilities,
    /// The store's id. It never changes.
    pub store_id: String,
    /// The setting `databases`: how many there are.
    pub databases: u32,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Unique ids.
    pub ids: IdAllocator,
    /// Who hears what is published, if anybody can.
    pub subscribers: Option<Arc<dyn Subscribers>>,
    /// Which changes of keys are published.
    pub keyspace_events: Arc<EventSwitch>,
    /// What reads of keys have found, for INFO.
    pub lookups: Lookups,
    /// Scripts that run, and those that are known.
    pub scripts: Scripts,
    /// What scripts have read.
    pub script_reads: ScriptReads,
    /// Who counts the commands that scripts call, if anybody does.
    pub script_calls: Option<Arc<dyn ScriptCalls>>,
    /// The setting `hll-sparse-max-bytes`.
    pub hll_sparse_max_bytes: Arc<AtomicU64>,
    /// Who tracks keys, if clients can.
    pub trackers: Option<Arc<dyn Trackers>>,
    /// The setting `stream-node-max-entries`.
    pub stream_node_max_entries: Arc<AtomicU64>,
    /// The setting `stream-node-max-bytes`.
    pub stream_node_max_bytes: Arc<AtomicU64>,
    /// Where Redis's first nodes of streams end that are trimmed.
    pub stream_first_nodes: FirstNodes,
    /// What clients may do. `None` is everything.
    pub rights: Option<Arc<dyn Rights>>,
    /// Sets in which ranks were hard to find.
    pub rank_wants: RankWants,
    /// Which keys clients watch. The executor sets it when it starts.
    pub watched_keys: Option<Arc<dyn WatchedKeys>>,
    /// What the latest commit has left of some rows. Nothing where other servers write too.
    pub latest_known: LatestKnown,
}

impl Environment {
    /// The database of this number.
    ///
    /// # Errors
    /// `DatabaseOutOfRange` beyond [`Environment::databases`].
    pub fn database(&self, number: i64) -> Result<u32, CommandError> {
        u32::try_from(number)
            .ok()
            .filter(|database| *database < self.databases)
            .ok_or(CommandError::DatabaseOutOfRange)
    }

    /// Which changes of keys are published at the moment.
    pub fn events(&self) -> EventClasses {
        self.keyspace_events.classes()
    }

    /// The most bytes that a HyperLogLog has in the sparse encoding.
    pub fn hll_sparse_bytes_max(&self) -> usize {
        let bytes = self.hll_sparse_max_bytes.load(Ordering::Relaxed);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// How many small entries of a stream Redis keeps in a node.
    pub fn stream_node_entries(&self) -> u64 {
        match self.stream_node_entries_max() {
            // Then it has as many as fit by their bytes.
            u64::MAX => STREAM_NODE_ENTRIES_MAX,
            entries => entries,
        }
    }

    /// How many entries of a stream Redis keeps in a node at most, however small.
    pub fn stream_node_entries_max(&self) -> u64 {
        match self.stream_node_max_entries.load(Ordering::Relaxed) {
            0 => u64::MAX,
            entries => entries,
        }
    }

    /// How many bytes Redis keeps in a node at most, unless an entry has more.
    pub fn stream_node_bytes_max(&self) -> u64 {
        match self.stream_node_max_bytes.load(Ordering::Relaxed) {
            0 => u64::MAX,
            bytes => bytes,
        }
    }

    /// The random element of a pushed position: what makes keys of concurrent pushes differ.
    /// Nothing is concurrent on a store with a single writer, and 0 keeps its keys short.
    pub fn position_random(&self) -> i64 {
        if !self.capabilities.has_other_writers {
            0
        } else {
            // 63 bits, so that it stays a positive integer.
            (self.random.next_u64() >> 1) as i64
        }
    }
}

/// How often commands that read have found a key, and how often not.
#[derive(Debug, Default)]
pub struct Lookups {
    /// A key was there.
    pub hits: Counter,
    /// No key was there.
    pub misses: Counter,
}

/// A command's view of one transaction for reading.
pub struct ReadContext<'t> {
    /// The transaction.
    pub transaction: &'t dyn ReadTransaction,
    /// What does not change.
    pub environment: &'t Environment,
    /// The time at which the transaction's commands run, in milliseconds since the Unix epoch:
    /// one instant for all of them, as in Redis.
    pub now_ms: i64,
    /// The client's database.
    pub database: u32,
    /// How the command's plain reads take part in conflict detection: `Serializable` in commands
    /// that write and within EXEC; `Snapshot` in commands that only read, which share a batch
    /// with others' writes but have no writes that could conflict.
    pub isolation: Isolation,
    /// Whether reads that commands by themselves make at snapshot, to spare others conflicts,
    /// must take part in conflict detection all the same: in EXEC, where one command's answer
    /// may be the reason for the next.
    pub is_strict: bool,
    /// Whether a script calls the command.
    pub is_in_script: bool,
    /// Whether the client may not read keys that it finds named in values (SORT).
    pub lacks_named_keys: bool,
    /// What other servers have popped for the unit of work ([`crate::cluster::delegation`]).
    pub grants: Option<&'t HeldGrants>,
    /// Whether the command pops from these.
    pub pops_grants: bool,
    /// What is known of the command's keys.
    pub known_keys: KnownKeys<'t>,
    /// Whether the command only reads, so that what it finds counts in [`Lookups`].
    counts_lookups: bool,
    /// Namespaces that were looked up in this transaction.
    pub(crate) namespaces: &'t NamespaceCache,
}

/// The current namespace of a database with this row. FLUSHDB and SWAPDB give a database another.
///
/// # Errors
/// `Corrupt` where the row is none.
pub fn current_namespace(database: u32, row: Option<&Bytes>) -> Result<Id, StoreError> {
    match row {
        Some(value) => Ok(decode_id(value)?),
        None => Ok(Id {
            instance: 0,
            sequence: u64::from(database),
        }),
    }
}

/// Namespaces of databases as one transaction sees them, and where its keys lie in them.
#[derive(Debug, Default)]
pub struct NamespaceCache {
    /// What the transaction has read or set.
    known: RefCell<Known>,
    /// What was known before it began, where nobody else writes. `None` from when a change may have been
    /// undone.
    before: RefCell<Option<Arc<Known>>>,
    /// Whether the transaction has changed any of it.
    has_changed: Cell<bool>,
    pub(crate) located: LocatedKeys,
    /// The random number in the positions of what the transaction pushes to lists.
    position_random: OnceCell<i64>,
    /// What the transaction has changed and not counted in blocks yet.
    pub(crate) rank_changes: RankChanges,
}

impl NamespaceCache {
    /// For a transaction or a snapshot of which so much is known already.
    pub(crate) fn knowing(before: Option<Arc<Known>>) -> Self {
        Self {
            before: RefCell::new(before),
            ..Self::default()
        }
    }

    /// Has looked up again what writes that were undone may have changed.
    pub(crate) fn forget(&self) {
        if self.has_changed.get() {
            self.known.take();
            self.before.take();
        }
        self.located.forget();
    }

    /// The number of flushes changes without being read.
    pub(crate) fn forget_script_flushes(&self) {
        self.has_changed.set(true);
        self.forget();
    }

    /// What is known, of what the transaction itself knows or of what was known before.
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

    /// What is known at the end of the transaction, if that is news.
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
    /// A view of `transaction` for a client of `database`, for a command that only reads.
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
            grants: None,
            pops_grants: false,
            known_keys: KnownKeys::Nothing,
            counts_lookups: true,
            namespaces,
        }
    }

    /// The same view with every read serializable: within EXEC.
    pub fn strict(mut self) -> Self {
        self.isolation = Isolation::Serializable;
        self.is_strict = true;
        self
    }

    /// The same view within a unit of work that has these grants.
    pub fn with_grants(mut self, grants: &'t HeldGrants) -> Self {
        self.grants = Some(grants);
        self
    }

    /// The same view for a command that pops from the unit's grants.
    pub fn popping_grants(mut self) -> Self {
        self.pops_grants = true;
        self
    }

    /// The same view without counting what it finds in [`Lookups`]: for the server's own reads.
    pub(crate) fn uncounted(&self) -> ReadContext<'t> {
        ReadContext {
            counts_lookups: false,
            ..*self
        }
    }

    /// Counts what the look-up of a key has found, in a command that only reads.
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

    /// The isolation of reads that commands by themselves make at snapshot.
    pub fn relaxed(&self) -> Isolation {
        if self.is_strict {
            Isolation::Serializable
        } else {
            Isolation::Snapshot
        }
    }

    /// The same view, whose plain reads take part in conflict detection only within EXEC.
    pub(crate) fn relaxed_view(&self) -> ReadContext<'t> {
        ReadContext {
            isolation: self.relaxed(),
            ..*self
        }
    }

    /// Where everything lies.
    pub fn layout(&self) -> &'t Layout {
        &self.environment.layout
    }

    /// The current namespace of the client's database.
    pub async fn namespace(&self) -> Result<Id, StoreError> {
        self.namespace_of(self.database).await
    }

    /// The current namespace of a database. Read serializably by commands that write, so that
    /// FLUSHDB and SWAPDB conflict with everything that they must.
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

    /// The same view for another database.
    ///
    /// # Errors
    /// `DatabaseOutOfRange` beyond [`Environment::databases`].
    pub fn for_database(&self, database: i64) -> Result<ReadContext<'t>, CommandError> {
        let database = self.environment.database(database)?;
        Ok(ReadContext { database, ..*self })
    }
}

/// A command's view of one transaction for writing; reads as a [`ReadContext`].
pub struct WriteContext<'t> {
    read: ReadContext<'t>,
    /// The transaction.
    pub transaction: &'t dyn Transaction,
    /// What others must hear of after the commit.
    pub signals: &'t Signals,
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
        }
    }

    /// The same view with every read serializable: within EXEC.
    pub fn strict(mut self) -> Self {
        self.read = self.read.strict();
        self
    }

    /// The same view for a command that a script calls.
    pub fn in_script(mut self) -> Self {
        self.read.is_in_script = true;
        self
    }

    /// The same view for a client that may not read keys that it finds named in values.
    pub fn lacking_named_keys(mut self) -> Self {
        self.read.lacks_named_keys = true;
        self
    }

    /// The same view within a unit of work that has these grants.
    pub fn with_grants(mut self, grants: &'t HeldGrants) -> Self {
        self.read = self.read.with_grants(grants);
        self
    }

    /// The same view for a command that pops from the unit's grants.
    pub fn popping_grants(mut self) -> Self {
        self.read = self.read.popping_grants();
        self
    }

    /// The random element of the positions that this unit of work pushes to lists and priority queues. On a store with
    /// several writers no other unit's rows have it.
    pub(crate) fn unit_position_random(&self) -> i64 {
        let random = &self.namespaces.position_random;
        *random.get_or_init(|| self.environment.position_random())
    }

    /// The same view for a command of whose keys so much is known.
    pub fn knowing(mut self, known_keys: KnownKeys<'t>) -> Self {
        self.read.known_keys = known_keys;
        self
    }

    /// Publishes a message when the commit is done, and answers how many clients of this server
    /// it will reach. A message that nobody will hear is not kept. Where too much is published, the
    /// command fails when it ends ([`Signals::has_refused`]).
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

    /// The same view for another database.
    ///
    /// # Errors
    /// `DatabaseOutOfRange` beyond [`Environment::databases`].
    pub fn for_database(&self, database: i64) -> Result<WriteContext<'t>, CommandError> {
        Ok(WriteContext {
            read: self.read.for_database(database)?,
            transaction: self.transaction,
            signals: self.signals,
        })
    }

    /// Makes a database show a namespace.
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
    /// Whether anybody may hear of events of this class.
    pub fn tells_of(&self, class: EventClasses) -> bool {
        self.environment.events().contains(class)
    }

    /// Tells of what happened to a key of the client's database, where events of this class are
    /// wanted: in the channel named after the key, then in the one named after the event.
    pub fn notify(&self, class: EventClasses, event: &'static str, key: &Bytes) {
        if self.tells_of(class) {
            self.publish_event(event, self.database, key);
        }
    }

    /// [`Self::notify`] of a key that was found.
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

    /// Tells that something is put into a key that was found empty: on a store with many writers
    /// such a key may be there without existing for clients (see [`crate::keyspace`]). To be
    /// called before anything is put into it.
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
