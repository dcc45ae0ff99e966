//! Wake-up watches: they notice data that other servers write to awaited keys.
//!
//! For each awaited key, whatever the number of its clients, the server watches one row of the store: the row that
//! holds the key's length. Every push changes it by an atomic add, so pushes do not conflict. When the row changes, a
//! wake-up of the key is scheduled.
//!
//! Data may arrive between a command's first run, which found nothing, and the arming of the watch. So arming a watch
//! also returns the current value. The batch that parks a client schedules a wake-up of keys that have meanwhile
//! turned out not to be quiet ([`super::waiters`]). While an awaited key is quiet, clients come and go without
//! reading it. The store may lose a watch (for example during a cluster recovery), so each watch is renewed
//! periodically. Keys above a limit on watches are polled.
//!
//! A key's row is in the current namespace of its database. FLUSHDB gives a database a new namespace, and SWAPDB
//! exchanges those of two databases. So each database with awaited keys has a watch too, which is armed first. When
//! its namespace changes, its keys' watches are armed again.
//!
//! A store with a single writer needs no wake-up watches, because its one server sees every push.

mod arming;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use arming::Arming;

use super::shared::Shared;
use super::waiters::Cursor;
use quoin_base::sparse::Sparse;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context;
use quoin_data::unit::context::Environment;
use quoin_layout::{Id, KeyName, decode_length};
use quoin_store::{Isolation, Store, StoreError, Watch};

/// How often an unwatched key is polled.
const POLL: Duration = Duration::from_millis(500);
/// Limit on polls per second. The interval grows with the number of keys, by whole seconds, so up to twice as many
/// polls are possible.
const POLLS_PER_SECOND_MAX: u64 = 4_000;
/// Maximum age of a watch. It is then renewed, in case it was lost. The actual age is random and at least half of
/// this.
const RENEWAL: Duration = Duration::from_secs(20);
/// Approximate limit on renewals per second, so that idle waiting clients cost next to nothing. With many watches it
/// raises the maximum age above [`RENEWAL`].
const RENEWALS_PER_SECOND_MAX: u64 = 25;
/// After this many consecutive changes that left the key empty, the key is read before its waiters are woken, at most
/// once per [`FRUITLESS_CHANGES_BACKOFF`].
const FRUITLESS_CHANGES_MAX: u32 = 3;
/// See [`FRUITLESS_CHANGES_MAX`].
const FRUITLESS_CHANGES_BACKOFF: Duration = Duration::from_millis(4);
/// How long the watch waits, before it reads a key again, for a wake-up to take the key's contents.
const WAKE_UP_MAX: Duration = Duration::from_millis(20);
/// How long a key stays watched after its last client has left. Clients often come back.
const LINGER: Duration = Duration::from_secs(5);
/// Pause before retrying a watch after a retryable error.
const RETRY_SOON: Duration = Duration::from_millis(10);
/// Pause before retrying a watch after any other error.
const RETRY: Duration = Duration::from_millis(500);

/// The wake-up watches of one server.
pub(super) struct WakeWatches {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    shared: Arc<Shared>,
    /// Arms the watches.
    arming: Arming,
    /// How many keys may be watched at once. Further keys are polled.
    watches_max: usize,
    /// Number of watched keys.
    watched: Cell<usize>,
    /// Number of polled keys.
    polled: Cell<usize>,
}

/// Publishes a database's current namespace to the tasks of its keys. `None` until it is known.
type CurrentNamespace = watch::Sender<Option<Id>>;

/// Increments a counter for as long as it exists.
struct Counted<'c>(&'c Cell<usize>);

impl<'c> Counted<'c> {
    fn new(count: &'c Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// A watch that is armed in the store. It counts as one of the server's open watches.
struct ArmedWatch<'c> {
    /// The row's value when the watch was armed.
    value: Option<Bytes>,
    /// Resolves when the row has changed.
    fired: Watch,
    open_watches: &'c AtomicUsize,
}

impl Drop for ArmedWatch<'_> {
    fn drop(&mut self) {
        self.open_watches.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A key's length row at its latest read.
struct Observation<'c> {
    /// The namespace of the database at that time.
    namespace: Id,
    value: Option<Bytes>,
    /// A watch for the next change of this value. `None` if the key is polled.
    watch: Option<ArmedWatch<'c>>,
    /// Whether the key is empty and the watch notices anything added to it.
    is_quiet: bool,
    /// Counts the key as watched or polled.
    _counted: Counted<'c>,
}

impl WakeWatches {
    pub(super) fn new(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        shared: Arc<Shared>,
        watches_max: usize,
    ) -> Self {
        Self {
            store,
            environment,
            shared,
            arming: Arming::default(),
            watches_max,
            watched: Cell::new(0),
            polled: Cell::new(0),
        }
    }

    /// Runs until `stop` resolves.
    pub(super) async fn run(self, mut stop: oneshot::Receiver<()>) {
        // One task runs for each awaited key.
        let mut followed: HashSet<ClientKey> = HashSet::new();
        let mut databases: HashMap<u32, Rc<CurrentNamespace>> = HashMap::new();
        let mut tasks: FuturesUnordered<LocalBoxFuture<'_, Ended>> = FuturesUnordered::new();
        let mut arming = pin!(self.arming.serve(&*self.store));
        loop {
            let unfollowed: Vec<ClientKey> = tokio::select! {
                _ = &mut stop => return,
                never = &mut arming => match never {},
                unfollowed = self.shared.waiters.wait_keys_unfollowed() => unfollowed,
                Some(ended) = tasks.next() => match ended {
                    Ended::Key(key) => {
                        followed.remove(&key);
                        followed.shrink_if_sparse();
                        // A client may have come while the task was ending.
                        vec![key]
                    }
                    Ended::Database(database, current_namespace) => {
                        if current_namespace.receiver_count() == 0 {
                            databases.remove(&database);
                        } else {
                            tasks.push(Box::pin(self.watch_database(database, current_namespace)));
                        }
                        Vec::new()
                    }
                },
            };
            for key in unfollowed {
                if followed.contains(&key) || !self.shared.waiters.is_awaited(&key) {
                    continue;
                }
                let current_namespace = databases.entry(key.database).or_insert_with(|| {
                    let current_namespace = Rc::new(watch::Sender::new(None));
                    let sender = Rc::clone(&current_namespace);
                    tasks.push(Box::pin(self.watch_database(key.database, sender)));
                    current_namespace
                });
                followed.insert(key.clone());
                tasks.push(Box::pin(self.watch_key(key, current_namespace.subscribe())));
            }
        }
    }

    /// The task of one key. It requests a wake-up of the key whenever it may have data, and ends after no client has
    /// waited for it for [`LINGER`].
    async fn watch_key(
        &self,
        key: ClientKey,
        mut current_namespace: watch::Receiver<Option<Id>>,
    ) -> Ended {
        let waiters = &self.shared.waiters;
        let changed_here = waiters.follow(&key);
        let mut last_awaited = Instant::now();
        // The namespace and the row's value at the latest observation. `None` makes the next one count as a change.
        let mut last_seen: Option<(Id, Option<Bytes>)> = None;
        // Another server may push and feed its own waiter at once, so the key is empty again when this server is
        // notified. This can happen repeatedly.
        let mut fruitless_changes = 0_u32;
        // Whether the watch has fired for another server's change since the latest observation.
        let mut has_fired = false;
        loop {
            if fruitless_changes >= FRUITLESS_CHANGES_MAX {
                // A busy key may change with every commit, so limit how often it is read.
                tokio::time::sleep(FRUITLESS_CHANGES_BACKOFF).await;
            }
            waiters.begin_look(&key);
            let observation = match self.observe(&key, &mut current_namespace).await {
                Ok(observation) => observation,
                Err(error) => {
                    tracing::debug!(%error, "a key that clients wait for cannot be watched");
                    waiters.end_look(&key, false, false);
                    pause_after(&error).await;
                    last_seen = None;
                    if self.is_forgotten(&key, &mut last_awaited) {
                        return Ended::Key(key);
                    }
                    continue;
                }
            };
            // A length row that cannot be decoded does not count as empty. The wake-up's batch then logs the
            // unreadable row (length or metadata) and wakes no client.
            let is_empty = matches!(decode_length(observation.value.as_ref()), Ok(0));
            let is_gone = observation.value.is_none();
            // The row also holds a counter of changes, so a change gives another value even if the length is the same
            // again. See docs/understand/decisions/009-length-counts-changes.md. A key that is removed loses its
            // counter. It may have existed since the latest observation, and clients that began to wait meanwhile do
            // not know that it is gone again.
            let seen = Some((observation.namespace, observation.value));
            let has_changed = last_seen != seen || is_gone;
            let looks_again = waiters.end_look(&key, !is_empty, observation.is_quiet);
            fruitless_changes = match is_empty {
                true => fruitless_changes + u32::from(has_fired),
                false => 0,
            };
            has_fired = false;
            // If a key is empty or gone, only clients that need it are woken.
            let is_needed = || !self.shared.waiters.types_needed(&key).is_empty();
            if has_changed && (!is_empty || is_needed()) {
                self.request_wake_up(&key);
            }
            last_seen = seen;
            if looks_again {
                tokio::time::sleep(FRUITLESS_CHANGES_BACKOFF).await;
                if self.is_forgotten(&key, &mut last_awaited) {
                    return Ended::Key(key);
                }
                continue;
            }
            let mut watch = observation.watch;
            let renewed_at = Instant::now()
                + match &watch {
                    Some(_) => self.renewal_delay(),
                    None => self.poll_pause(),
                };
            loop {
                let is_watched = watch.is_some();
                let until = renewed_at.min(Instant::now() + LINGER);
                tokio::select! {
                    fired = watch_fired(watch.as_mut()) => {
                        let is_own = waiters.watch_fired(&key);
                        has_fired = fired.is_ok() && !is_own;
                        // The key may have been removed and created again, with the same counter.
                        last_seen = None;
                        match fired {
                            // The batch that changed the key served its waiters, or they are woken after the next
                            // read.
                            Ok(()) if is_own => {}
                            // It was empty and has changed, so it very likely has data now. Wake without reading. The
                            // next read comes when the wake-up has taken the data.
                            Ok(()) if is_empty && fruitless_changes < FRUITLESS_CHANGES_MAX => {
                                self.wake_up(&key, &changed_here).await;
                            }
                            Ok(()) => {}
                            Err(error) => pause_after(&error).await,
                        }
                        break;
                    }
                    () = tokio::time::sleep_until(until) => {
                        if until < renewed_at && !self.is_forgotten(&key, &mut last_awaited) {
                            continue;
                        }
                        // A renewal wakes the waiters even if the value is unchanged, in case an earlier wake-up saw
                        // the data and passed the waiters over.
                        if is_watched {
                            last_seen = None;
                        }
                        break;
                    }
                    Ok(()) = current_namespace.changed() => {
                        waiters.end_look(&key, false, false);
                        last_seen = None;
                        break;
                    }
                }
            }
            if self.is_forgotten(&key, &mut last_awaited) {
                return Ended::Key(key);
            }
        }
    }

    /// Whether no client has waited for a key for [`LINGER`]. The key is then no longer followed.
    fn is_forgotten(&self, key: &ClientKey, last_awaited: &mut Instant) -> bool {
        let waiters = &self.shared.waiters;
        if waiters.was_awaited(key) {
            *last_awaited = Instant::now();
            return false;
        }
        last_awaited.elapsed() >= LINGER && waiters.forget_if_unawaited(key)
    }

    /// Asks the write lane to wake the waiters of a key, if it still has any.
    fn request_wake_up(&self, key: &ClientKey) {
        let waiters = &self.shared.waiters;
        waiters.schedule_wake_up(key.clone(), Cursor::START);
    }

    /// Asks the write lane to wake the waiters of a key, if it still has any. Waits briefly until a batch has
    /// committed a change of the key.
    async fn wake_up(&self, key: &ClientKey, changed_here: &Notify) {
        if self.shared.waiters.is_awaited(key) {
            // Discards earlier notifications.
            let _ = changed_here.notified().now_or_never();
            self.request_wake_up(key);
            let _ = tokio::time::timeout(WAKE_UP_MAX, changed_here.notified()).await;
        }
    }

    /// Reads a key's length row. Also arms a watch, unless there are too many: on the length row, or on the metadata
    /// if neither row exists.
    async fn observe(
        &self,
        key: &ClientKey,
        current_namespace: &mut watch::Receiver<Option<Id>>,
    ) -> Result<Observation<'_>, StoreError> {
        let namespace = match current_namespace.wait_for(Option::is_some).await {
            Ok(namespace) => *namespace,
            Err(_) => None,
        };
        let Some(namespace) = namespace else {
            // Unreachable: the sender outlives its key tasks.
            return std::future::pending().await;
        };
        let layout = &self.environment.layout;
        let meta_key = layout.meta_key(namespace, &KeyName::new(&key.key));
        let length_key = layout.length_key(&meta_key);
        if self.watched.get() >= self.watches_max {
            let counted = Counted::new(&self.polled);
            let transaction = self.store.begin_read()?;
            return Ok(Observation {
                namespace,
                value: transaction.get(&length_key, Isolation::Snapshot).await?,
                watch: None,
                is_quiet: false,
                _counted: counted,
            });
        }
        let counted = Counted::new(&self.watched);
        let mut watch = self.arm(&length_key).await?;
        let value = watch.value.take();
        let mut is_quiet = value.is_some() && matches!(decode_length(value.as_ref()), Ok(0));
        if value.is_none() {
            // There is no key, or its value is stored in its metadata. Creating a key always writes its metadata.
            let of_metadata = self.arm(&meta_key).await?;
            if of_metadata.value.is_none() {
                watch = of_metadata;
                is_quiet = true;
            }
        }
        Ok(Observation {
            namespace,
            value,
            watch: Some(watch),
            is_quiet,
            _counted: counted,
        })
    }

    /// Reads a row and arms a watch of it.
    async fn arm(&self, row: &[u8]) -> Result<ArmedWatch<'_>, StoreError> {
        let watched = self.arming.arm(row).await?;
        let open_watches = &self.shared.open_watches;
        open_watches.fetch_add(1, Ordering::SeqCst);
        Ok(ArmedWatch {
            value: watched.value,
            fired: watched.changed,
            open_watches,
        })
    }

    /// Time until a watch is renewed. It is randomised to spread out renewals.
    fn renewal_delay(&self) -> Duration {
        let cycle_s = self.watched.get() as u64 / RENEWALS_PER_SECOND_MAX;
        let longest = RENEWAL.max(Duration::from_secs(cycle_s));
        let spread_ms = longest.as_millis() as u64 / 2;
        let jitter_ms = self.environment.random.below(spread_ms.max(1));
        longest.saturating_sub(Duration::from_millis(jitter_ms))
    }

    fn poll_pause(&self) -> Duration {
        let cycle_s = self.polled.get() as u64 / POLLS_PER_SECOND_MAX;
        POLL.max(Duration::from_secs(cycle_s))
    }

    /// Publishes the database's current namespace until no task watches any of its keys.
    async fn watch_database(
        &self,
        database: u32,
        current_namespace: Rc<CurrentNamespace>,
    ) -> Ended {
        let row = self.environment.layout.database_key(database);
        while current_namespace.receiver_count() > 0 {
            let watch = match self.arm(&row).await {
                Ok(watch) => watch,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            };
            let mut watch = match context::current_namespace(database, watch.value.as_ref()) {
                Ok(namespace) => {
                    current_namespace
                        .send_if_modified(|current| current.replace(namespace) != Some(namespace));
                    watch
                }
                Err(error) => {
                    tracing::error!(%error, database, "a database's row cannot be read");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            tokio::select! {
                fired = watch_fired(Some(&mut watch)) => {
                    if let Err(error) = fired {
                        pause_after(&error).await;
                    }
                }
                () = tokio::time::sleep(self.renewal_delay()) => {}
                () = current_namespace.closed() => {}
            }
        }
        Ended::Database(database, current_namespace)
    }
}

/// Waits until the watched row changes. Never returns if there is no watch.
async fn watch_fired(watch: Option<&mut ArmedWatch<'_>>) -> Result<(), StoreError> {
    match watch {
        Some(watch) => (&mut watch.fired).await,
        None => std::future::pending().await,
    }
}

async fn pause_after(error: &StoreError) {
    let pause = if error.is_retryable() {
        RETRY_SOON
    } else {
        RETRY
    };
    tokio::time::sleep(pause).await;
}

/// A task that has ended.
enum Ended {
    /// The task of a key. No client waits for the key any more.
    Key(ClientKey),
    /// The task of a database. No task watched any key of the database when it ended.
    Database(u32, Rc<CurrentNamespace>),
}
