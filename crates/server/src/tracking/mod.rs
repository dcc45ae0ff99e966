//! CLIENT TRACKING: notifies clients that cache values of changed keys.
//!
//! The executor reports which keys were read and changed, after the commit and before the replies
//! ([`quoin_data::unit::host`]). Like those of PUBLISH, messages go into the mailboxes of clients.
//! If a client tracks keys, its connection writes them after the replies of the running commands,
//! so that an invalidation never comes before the reply that it invalidates.

mod recent;
mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::clients::{ClientRecord, ClientRegistry, Delivery, Frame, TrackingMode};
use crate::tracking::table::{Broadcast, Table, TrackingCounts};
use quoin_base::limits::TRACKED_KEYS_BYTES_MAX;
use quoin_base::random::Random;
use quoin_config::RuntimeConfig;
use quoin_data::unit::host::{Change, Trackers};

/// Number of keys forgotten in one tick of the server if there are too many.
const FORGOTTEN_PER_TICK_MAX: usize = 10_000;

/// The clients of this server that track keys, and what they track.
pub(super) struct Tracking {
    table: Mutex<Table>,
    /// Whether there is any such client. Other clients pay only for reading this flag.
    is_any: AtomicBool,
    delivery: Arc<Delivery>,
    clients: Arc<ClientRegistry>,
    config: Arc<RuntimeConfig>,
    random: Arc<dyn Random>,
}

impl Tracking {
    /// Without clients that track keys.
    pub(super) fn new(
        delivery: Arc<Delivery>,
        clients: Arc<ClientRegistry>,
        config: Arc<RuntimeConfig>,
        random: Arc<dyn Random>,
    ) -> Self {
        Self {
            table: Mutex::default(),
            is_any: AtomicBool::new(false),
            delivery,
            clients,
            config,
            random,
        }
    }

    /// Begins to track keys for a client, or changes its mode. Prefixes are added to existing ones.
    pub(super) fn enable(
        &self,
        client: &Arc<ClientRecord>,
        mode: TrackingMode,
        prefixes: &[Bytes],
    ) {
        client.note_invalidations();
        if let Some(redirect) = self.clients.find(mode.redirect) {
            redirect.note_invalidations();
        }
        let mut table = self.lock();
        table.add_client(client, mode, prefixes);
        let mut details = client.details();
        details.tracking = Some(mode);
        details.has_broken_redirect = false;
        self.is_any.store(true, Ordering::SeqCst);
    }

    /// Stops tracking keys for a client.
    pub(super) fn disable(&self, client: &ClientRecord) {
        if !client.gets_invalidations() {
            return;
        }
        let mut table = self.lock();
        table.remove_client(client.id);
        let mut details = client.details();
        details.tracking = None;
        details.has_broken_redirect = false;
        self.is_any.store(!table.is_empty(), Ordering::SeqCst);
    }

    /// The prefixes of a client, in order.
    pub(super) fn prefixes(&self, client: &ClientRecord) -> Vec<Bytes> {
        self.lock().prefixes_of(client.id)
    }

    /// Figures for INFO.
    pub(super) fn counts(&self) -> TrackingCounts {
        self.lock().counts()
    }

    /// Invalidates everything that a client has cached.
    pub(super) fn invalidate_all_of(&self, client: &ClientRecord) {
        let mut table = self.lock();
        self.send(&mut table, client.id, &self.frame(None));
    }

    /// Forgets random keys while there are too many, as if they had changed.
    pub(super) fn forget_surplus(&self) {
        if self.is_any() {
            self.forget_some(&mut self.lock(), FORGOTTEN_PER_TICK_MAX);
        }
    }

    fn forget_some(&self, table: &mut Table, count_max: usize) {
        let keys_max = match self.config.live.tracking_table_max_keys() {
            0 => usize::MAX,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        };
        for _ in 0..count_max {
            let keys = &table.keys;
            if keys.len() <= keys_max && keys.bytes() <= TRACKED_KEYS_BYTES_MAX {
                return;
            }
            let place = self.random.below(keys.len() as u64);
            let place = usize::try_from(place).unwrap_or(0);
            let Some(key) = keys.name_at(place).cloned() else {
                return;
            };
            self.invalidate(table, &key, 0);
        }
    }

    /// Notifies the clients that have read a key that `client` has changed.
    fn invalidate(&self, table: &mut Table, key: &Bytes, client: u64) {
        let readers = table.keys.forget(key);
        if readers.is_empty() {
            return;
        }
        let frame = self.frame(Some(&[key]));
        for reader in readers {
            if table.is_notified_of(reader, client) {
                self.send(table, reader, &frame);
            }
        }
    }

    fn invalidate_all(&self, table: &mut Table) {
        let frame = self.frame(None);
        for client in table.client_ids() {
            self.send(table, client, &frame);
        }
        table.keys.clear();
        table.recent.note_all();
    }

    /// Handles a read of a key. `is_outdated`: others have changed it since the read.
    fn read(&self, table: &mut Table, key: &Bytes, client: u64, is_outdated: bool) {
        if !is_outdated {
            table.remember(key, client);
        } else if table.is_notified_of(client, 0) {
            self.send(table, client, &self.frame(Some(&[key])));
        }
    }

    /// Sends the changed keys to each client with matching prefixes, one message for each prefix.
    fn send_broadcasts(&self, table: &mut Table, broadcasts: BTreeMap<Bytes, Broadcast>) {
        for (prefix, keys) in broadcasts {
            let all: Vec<&Bytes> = keys.keys().collect();
            let for_all = self.frame(Some(&all));
            for client in table.clients_of(&prefix) {
                if !table.is_noloop(client) {
                    self.send(table, client, &for_all);
                    continue;
                }
                let others = keys.iter().filter(|(_, last)| **last != client);
                let others: Vec<&Bytes> = others.map(|(key, _)| key).collect();
                if !others.is_empty() {
                    self.send(table, client, &self.frame(Some(&others)));
                }
            }
        }
    }

    fn frame(&self, keys: Option<&[&Bytes]>) -> Frame {
        Frame::invalidation(keys, self.delivery.memory())
    }

    /// Sends an invalidation to a client, or to the client that it redirects them to (Redis:
    /// `sendTrackingMessage`).
    fn send(&self, table: &mut Table, client: u64, frame: &Frame) {
        let Some((record, mode)) = table.client(client) else {
            return;
        };
        if mode.redirect == 0 {
            if record.details().protocol > 2 {
                self.delivery.push(record, frame);
            }
            return;
        }
        match self.clients.find(mode.redirect) {
            Some(redirect) => {
                let is_subscriber = redirect.is_subscriber();
                if redirect.details().protocol > 2 || is_subscriber {
                    self.delivery.push(&redirect, &frame.redirected());
                }
            }
            None => {
                let protocol = {
                    let mut details = record.details();
                    details.has_broken_redirect = true;
                    details.protocol
                };
                if protocol > 2 {
                    let frame = Frame::broken_redirect(mode.redirect, self.delivery.memory());
                    self.delivery.push(record, &frame);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trackers for Tracking {
    fn is_any(&self) -> bool {
        self.is_any.load(Ordering::SeqCst)
    }

    fn open_window(&self) -> u64 {
        self.lock().recent.open()
    }

    fn close_window(&self, window: u64) {
        self.lock().recent.close(window);
    }

    fn note(&self, changes: &[Change], window: Option<u64>) {
        let mut table = self.lock();
        let table = &mut *table;
        // Before these changes are noted: a read includes the changes before it.
        let outdated = table.outdated_reads(changes, window);
        let mut broadcasts = BTreeMap::new();
        let mut knows_nothing = false;
        for (at, change) in changes.iter().enumerate() {
            // FLUSHALL is a flush of each database.
            let knew_nothing = knows_nothing;
            knows_nothing = match change {
                Change::AllKeys => true,
                Change::OnlyWatched(_) => knew_nothing,
                _ => false,
            };
            match change {
                Change::Read { key, client } => {
                    self.read(table, key, *client, outdated.contains(&at));
                }
                Change::AllKeys if knew_nothing => {}
                Change::AllKeys => self.invalidate_all(table),
                Change::Key { key, client } => {
                    table.note_change(&key.key, *client, &mut broadcasts);
                    self.invalidate(table, &key.key, *client);
                }
                Change::Unwatched(key) => {
                    table.note_change(key, 0, &mut broadcasts);
                    self.invalidate(table, key, 0);
                }
                Change::OnlyWatched(_) => {}
            }
        }
        self.forget_some(table, changes.len());
        self.send_broadcasts(table, broadcasts);
    }
}
