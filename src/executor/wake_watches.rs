//! Wake watches: how clients that wait learn of what other servers put somewhere.
//!
//! For each key that clients wait for, however many, the server watches one row of the store: the
//! key's length, which every push changes without a conflict. When it has changed, a wake-up of the
//! key is scheduled. Between a client's first look and the arming of the watch something may have
//! come, so each key is looked at again after its watch is armed, and for each client that joins.
//! Watches can be lost (a cluster that recovers), so each key is looked at now and then. Above a
//! limit on watches, keys are polled.
//!
//! Which row that is depends on what the key's database shows. So the database is watched too, and
//! first: when it changes after a key's row was looked up, the key's watch is armed again.
//!
//! A store with a single writer needs no wake watches: its one server sees every push.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, oneshot, watch};

use super::shared::Shared;
use super::waiters::Cursor;
use crate::layout::{Id, KeyName, decode_length};
use crate::sparse::Sparse;
use crate::store::{Isolation, Store, StoreError, Watch};
use crate::types::Environment;
use crate::types::context::shown_namespace;
use crate::types::key::ClientKey;

/// How often a key is polled that is not watched.
const POLL: Duration = Duration::from_millis(500);
/// Polls per second. With more keys each is polled more rarely.
const POLLS_PER_SECOND_MAX: u64 = 4_000;
/// After what time a watch is renewed, in case it was lost.
const RENEWAL: Duration = Duration::from_secs(20);
/// Renewals per second. With more watches each is renewed more rarely, so that clients which only
/// wait cost next to nothing.
const RENEWALS_PER_SECOND_MAX: u64 = 25;
/// Times in a row that an awaited key was found empty after it had changed, after which it is looked
/// at before its waiters are woken, and not more often than [`REST`] allows.
const CHANGES_IN_VAIN_MAX: u32 = 3;
/// The pause before such a look.
const REST: Duration = Duration::from_millis(4);
/// How long a key stays watched that no client waits for any more: clients come back.
const LINGER: Duration = Duration::from_secs(5);
/// Pause before a watch is tried again that the store asks to try again.
const RETRY_SOON: Duration = Duration::from_millis(10);
/// Pause after a watch that failed.
const RETRY: Duration = Duration::from_millis(500);

/// The wake watches of one server.
pub(super) struct WakeWatches {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    shared: Arc<Shared>,
    /// Keys watched at once. Further ones are polled.
    watches_max: usize,
    /// Keys that are watched.
    watched: Cell<usize>,
    /// Keys that are polled.
    polled: Cell<usize>,
}

/// The namespace that a database shows. `None` until it is known.
type Shown = watch::Sender<Option<Id>>;

/// Counts one while it lives.
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

/// A watch of the store, counted in the executor's figures.
struct Armed<'c> {
    value: Option<Bytes>,
    changed: Watch,
    open: &'c AtomicUsize,
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A key's row as it was last seen.
struct Looked<'c> {
    value: Option<Bytes>,
    /// Its next change. Without it the key is polled.
    armed: Option<Armed<'c>>,
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
            watches_max,
            watched: Cell::new(0),
            polled: Cell::new(0),
        }
    }

    /// Runs until `stop` resolves.
    pub(super) async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut joined: HashMap<ClientKey, Rc<Notify>> = HashMap::new();
        let mut databases: HashMap<u32, Rc<Shown>> = HashMap::new();
        let mut watching: FuturesUnordered<LocalBoxFuture<'_, Ended>> = FuturesUnordered::new();
        loop {
            let changed: Vec<ClientKey> = tokio::select! {
                _ = &mut stop => return,
                changed = self.shared.waiters.wait_changed() => changed,
                Some(ended) = watching.next() => match ended {
                    Ended::Key(key) => {
                        joined.remove(&key);
                        joined.shrink_if_sparse();
                        // A client may have come while it was ending.
                        let is_awaited = self.shared.waiters.is_awaited(&key);
                        Vec::from_iter(is_awaited.then_some(key))
                    }
                    Ended::Database(database, shown) => {
                        if shown.receiver_count() == 0 {
                            databases.remove(&database);
                        } else {
                            watching.push(Box::pin(self.watch_database(database, shown)));
                        }
                        Vec::new()
                    }
                },
            };
            for key in changed {
                if let Some(joined) = joined.get(&key) {
                    joined.notify_one();
                    continue;
                }
                if !self.shared.waiters.is_awaited(&key) {
                    continue;
                }
                let shown = databases.entry(key.database).or_insert_with(|| {
                    let shown = Rc::new(watch::Sender::new(None));
                    let database = self.watch_database(key.database, Rc::clone(&shown));
                    watching.push(Box::pin(database));
                    shown
                });
                let waiters_changed = Rc::new(Notify::new());
                joined.insert(key.clone(), Rc::clone(&waiters_changed));
                watching.push(Box::pin(self.watch_key(
                    key,
                    waiters_changed,
                    shown.subscribe(),
                )));
            }
        }
    }

    /// Schedules a wake-up of a key whenever it may have something, until no client has waited for it
    /// for a while. `waiters_changed`: other clients wait for it than before.
    async fn watch_key(
        &self,
        key: ClientKey,
        waiters_changed: Rc<Notify>,
        mut shown: watch::Receiver<Option<Id>>,
    ) -> Ended {
        let mut last_value: Option<Option<Bytes>> = None;
        // What another server puts there it may give to its own waiters: then the key is empty again
        // when this server hears of it, time after time.
        let mut has_changed = false;
        let mut in_vain = 0_u32;
        loop {
            if in_vain >= CHANGES_IN_VAIN_MAX {
                // It may change with every commit of every server.
                tokio::time::sleep(REST).await;
            }
            let looked = match self.look(&key, &mut shown).await {
                Ok(looked) => looked,
                Err(error) => {
                    tracing::debug!(%error, "a key that clients wait for cannot be watched");
                    pause_after(&error).await;
                    last_value = None;
                    continue;
                }
            };
            let is_changed = last_value.as_ref() != Some(&looked.value);
            // What cannot be read, the commands of the waiters will tell.
            let is_empty = matches!(decode_length(looked.value.as_ref()), Ok(0));
            in_vain = match is_empty {
                true => in_vain + u32::from(has_changed),
                false => 0,
            };
            has_changed = false;
            if is_changed && !is_empty {
                self.wake_up(&key);
            }
            last_value = Some(looked.value);
            let mut armed = looked.armed;
            loop {
                let pause = match &armed {
                    _ if !self.shared.waiters.is_awaited(&key) => LINGER,
                    Some(_) => self.renewal(),
                    None => self.poll_pause(),
                };
                let is_watched = armed.is_some();
                tokio::select! {
                    changed = wait_changed(armed.as_mut()) => {
                        has_changed = changed.is_ok();
                        match changed {
                            // It has something most likely: there is no need to look first.
                            Ok(()) if is_empty && in_vain < CHANGES_IN_VAIN_MAX => {
                                self.wake_up(&key);
                            }
                            Ok(()) => {}
                            Err(error) => pause_after(&error).await,
                        }
                        break;
                    }
                    () = tokio::time::sleep(pause) => {
                        // The waiters of a watched key are woken all the same, in case that what it
                        // has was seen and passed over.
                        if is_watched {
                            last_value = None;
                        }
                        break;
                    }
                    Ok(()) = shown.changed() => {
                        last_value = None;
                        break;
                    }
                    () = waiters_changed.notified() => self.wake_up(&key),
                }
            }
            if !self.shared.waiters.is_awaited(&key) {
                return Ended::Key(key);
            }
        }
    }

    fn wake_up(&self, key: &ClientKey) {
        let waiters = &self.shared.waiters;
        waiters.schedule_wake_up(key.clone(), Cursor::START);
    }

    /// Reads a key's length row and watches it, or above the limit only reads it.
    async fn look(
        &self,
        key: &ClientKey,
        shown: &mut watch::Receiver<Option<Id>>,
    ) -> Result<Looked<'_>, StoreError> {
        let namespace = match shown.wait_for(Option::is_some).await {
            Ok(shown) => *shown,
            Err(_) => None,
        };
        let Some(namespace) = namespace else {
            // Never: the database is watched while one of its keys is.
            return std::future::pending().await;
        };
        let layout = &self.environment.layout;
        let length_key = layout.length_key(&layout.meta_key(namespace, &KeyName::new(&key.key)));
        if self.watched.get() >= self.watches_max {
            let counted = Counted::new(&self.polled);
            let transaction = self.store.begin_read()?;
            return Ok(Looked {
                value: transaction.get(&length_key, Isolation::Snapshot).await?,
                armed: None,
                _counted: counted,
            });
        }
        let counted = Counted::new(&self.watched);
        let mut armed = self.arm(&length_key).await?;
        Ok(Looked {
            value: armed.value.take(),
            armed: Some(armed),
            _counted: counted,
        })
    }

    async fn arm(&self, row: &[u8]) -> Result<Armed<'_>, StoreError> {
        let watched = self.store.watch(row).await?;
        let open = &self.shared.open_watches;
        open.fetch_add(1, Ordering::SeqCst);
        Ok(Armed {
            value: watched.value,
            changed: watched.changed,
            open,
        })
    }

    /// When a watch is renewed: at different times for different keys.
    fn renewal(&self) -> Duration {
        let all_take_s = self.watched.get() as u64 / RENEWALS_PER_SECOND_MAX;
        let longest = RENEWAL.max(Duration::from_secs(all_take_s));
        let spread_ms = longest.as_millis() as u64 / 2;
        let earlier_ms = self.environment.random.below(spread_ms.max(1));
        longest.saturating_sub(Duration::from_millis(earlier_ms))
    }

    fn poll_pause(&self) -> Duration {
        let all_take_s = self.polled.get() as u64 / POLLS_PER_SECOND_MAX;
        POLL.max(Duration::from_secs(all_take_s))
    }

    /// Tells which namespace a database shows, until no client waits for any of its keys.
    async fn watch_database(&self, database: u32, shown: Rc<Shown>) -> Ended {
        let row = self.environment.layout.database_key(database);
        while shown.receiver_count() > 0 {
            let armed = match self.arm(&row).await {
                Ok(armed) => armed,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            };
            let mut armed = match shown_namespace(database, armed.value.as_ref()) {
                Ok(namespace) => {
                    shown.send_if_modified(|shown| shown.replace(namespace) != Some(namespace));
                    armed
                }
                Err(error) => {
                    tracing::error!(%error, database, "a database's row cannot be read");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            tokio::select! {
                changed = wait_changed(Some(&mut armed)) => {
                    if let Err(error) = changed {
                        pause_after(&error).await;
                    }
                }
                () = tokio::time::sleep(self.renewal()) => {}
                () = shown.closed() => {}
            }
        }
        Ended::Database(database, shown)
    }
}

async fn wait_changed(armed: Option<&mut Armed<'_>>) -> Result<(), StoreError> {
    match armed {
        Some(armed) => (&mut armed.changed).await,
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

enum Ended {
    /// No client waits for this key any more.
    Key(ClientKey),
    /// No client waits for any key of this database any more.
    Database(u32, Rc<Shown>),
}
