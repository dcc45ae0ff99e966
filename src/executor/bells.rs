//! Bells: how clients that wait hear of what other servers put somewhere.
//!
//! For each key that somebody waits for, however many, the server watches one row of the store:
//! the key's length, which every push changes without a conflict. When it has changed, the write
//! lane is nudged to run the commands of those who wait. Between a client's first look and the
//! arming of the watch something may have come, so each key is looked at again after its watch is
//! armed, and for each client that joins. Watches can be lost (a cluster that recovers, a change
//! back to the same value); so each is renewed now and then. Beyond a bound on watches, keys are
//! polled.
//!
//! A store with a single writer needs no bells: its one server sees every push.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, LocalBoxFuture, pending, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, oneshot};

use super::Shared;
use crate::layout::{KeyName, decode_length};
use crate::limits::{BELL_LINGER, BELL_POLL, BELL_RENEWAL, BELL_RETRY, BELL_WATCHES_MAX};
use crate::store::{Isolation, Store, StoreError, Watch};
use crate::types::context::NamespaceCache;
use crate::types::signals::ClientKey;
use crate::types::{Environment, ReadContext};

/// Rings for one server.
pub(super) struct Bells {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    shared: Arc<Shared>,
    /// Watches that are armed.
    watches: Cell<usize>,
}

/// What the bells of a server tell one of them.
#[derive(Default)]
struct Cord {
    pulled: Notify,
    /// The database may show other keys than when the watch was armed.
    must_rearm: Cell<bool>,
}

impl Cord {
    fn pull(&self) {
        self.pulled.notify_one();
    }
}

/// A row as it was when its watch was armed.
struct Armed {
    length: i64,
    value: Option<Bytes>,
    watch: Option<Watch>,
}

enum Woken {
    /// The row may have changed, or it is time to look again.
    Rung,
    /// Somebody joined those who wait, or the database was exchanged.
    Pulled,
}

impl Bells {
    pub(super) fn new(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            store,
            environment,
            shared,
            watches: Cell::new(0),
        }
    }

    /// Serves until `stop` resolves.
    pub(super) async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut cords: HashMap<ClientKey, Rc<Cord>> = HashMap::new();
        let mut databases: HashMap<u32, ()> = HashMap::new();
        let mut ringing: FuturesUnordered<LocalBoxFuture<'_, Ended>> = FuturesUnordered::new();
        loop {
            tokio::select! {
                _ = &mut stop => return,
                arrived = self.shared.waiters.wait_arrived() => {
                    for key in arrived {
                        if databases.insert(key.database, ()).is_none() {
                            ringing.push(Box::pin(self.watch_database(key.database)));
                        }
                        match cords.get(&key) {
                            Some(cord) => cord.pull(),
                            None => {
                                let cord = Rc::new(Cord::default());
                                cords.insert(key.clone(), Rc::clone(&cord));
                                ringing.push(Box::pin(self.ring(key, cord)));
                            }
                        }
                    }
                }
                Some(ended) = ringing.next() => match ended {
                    Ended::Key(key) if self.shared.waiters.is_awaited(&key) => {
                        // Somebody came while it was ending.
                        let cord = Rc::new(Cord::default());
                        cords.insert(key.clone(), Rc::clone(&cord));
                        ringing.push(Box::pin(self.ring(key, cord)));
                    }
                    Ended::Key(key) => drop(cords.remove(&key)),
                    Ended::Database(database) => {
                        for (key, cord) in &cords {
                            if key.database == database {
                                cord.must_rearm.set(true);
                                cord.pull();
                            }
                        }
                        ringing.push(Box::pin(self.watch_database(database)));
                    }
                },
            }
        }
    }

    /// Nudges a key whenever it may have something, until nobody has waited for it for a while.
    async fn ring(&self, key: ClientKey, cord: Rc<Cord>) -> Ended {
        let mut last_value: Option<Option<Bytes>> = None;
        loop {
            cord.must_rearm.set(false);
            let armed = match self.arm(&key).await {
                Ok(armed) => armed,
                Err(error) => {
                    tracing::debug!(%error, "a key that is waited for cannot be watched");
                    tokio::time::sleep(BELL_RETRY).await;
                    last_value = None;
                    continue;
                }
            };
            let is_watched = armed.watch.is_some();
            let is_changed = last_value.as_ref() != Some(&armed.value);
            last_value = Some(armed.value);
            if is_changed && armed.length != 0 {
                self.shared.waiters.nudge([key.clone()]);
            }
            let mut watch = armed.watch;
            loop {
                let is_awaited = self.shared.waiters.is_awaited(&key);
                let pause = match (is_awaited, is_watched) {
                    (false, _) => BELL_LINGER,
                    (true, true) => BELL_RENEWAL,
                    (true, false) => BELL_POLL,
                };
                match self.sleep(&cord, &mut watch, pause).await {
                    Woken::Rung if !self.shared.waiters.is_awaited(&key) => {
                        self.count_watches(if is_watched { -1 } else { 0 });
                        return Ended::Key(key);
                    }
                    Woken::Rung => break,
                    Woken::Pulled if cord.must_rearm.get() => {
                        last_value = None;
                        break;
                    }
                    Woken::Pulled => self.shared.waiters.nudge([key.clone()]),
                }
            }
            self.count_watches(if is_watched { -1 } else { 0 });
        }
    }

    async fn sleep(&self, cord: &Cord, watch: &mut Option<Watch>, pause: Duration) -> Woken {
        let changed = async {
            match watch {
                // A watch that failed is renewed like one that has fired, but not at once.
                Some(watch) => {
                    if watch.await.is_err() {
                        tokio::time::sleep(BELL_RETRY).await;
                    }
                }
                None => pending().await,
            }
        };
        tokio::select! {
            () = changed => Woken::Rung,
            () = tokio::time::sleep(pause) => Woken::Rung,
            () = cord.pulled.notified() => Woken::Pulled,
        }
    }

    fn count_watches(&self, by: isize) {
        self.watches
            .set(self.watches.get().saturating_add_signed(by));
    }

    /// Watches a key's length, or beyond the bound only reads it.
    async fn arm(&self, key: &ClientKey) -> Result<Armed, StoreError> {
        let length_key = {
            let transaction = self.store.begin_read()?;
            let namespaces = NamespaceCache::default();
            let now_ms = self.environment.clock.now_ms();
            let context = ReadContext::new(
                &*transaction,
                &self.environment,
                &namespaces,
                now_ms,
                key.database,
            );
            let layout = context.layout();
            let namespace = context.namespace().await?;
            let meta_key = layout.meta_key(namespace, &KeyName::new(&key.key));
            let length_key = layout.length_key(&meta_key);
            if self.watches.get() >= BELL_WATCHES_MAX {
                let value = transaction.get(&length_key, Isolation::Snapshot).await?;
                return Ok(Armed {
                    length: decode_length(value.as_ref())?,
                    value,
                    watch: None,
                });
            }
            length_key
        };
        self.count_watches(1);
        let watched = match self.store.watch(&length_key).await {
            Ok(watched) => watched,
            Err(error) => {
                self.count_watches(-1);
                return Err(error);
            }
        };
        Ok(Armed {
            length: decode_length(watched.value.as_ref())?,
            value: watched.value,
            watch: Some(watched.changed),
        })
    }

    /// Resolves when a database may show another namespace than before, or now and then.
    async fn watch_database(&self, database: u32) -> Ended {
        let row = self.environment.layout.database_key(database);
        match self.store.watch(&row).await {
            Ok(watched) => {
                let renewal = Box::pin(tokio::time::sleep(BELL_RENEWAL));
                if let Either::Left((Err(_), _)) = select(watched.changed, renewal).await {
                    tokio::time::sleep(BELL_RETRY).await;
                }
            }
            Err(_) => tokio::time::sleep(BELL_RETRY).await,
        }
        Ended::Database(database)
    }
}

enum Ended {
    /// Nobody waits for this key any more.
    Key(ClientKey),
    /// The keys of this database are to be looked up again.
    Database(u32),
}
