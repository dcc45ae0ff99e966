//! All connected clients, and the delivery of messages to them.

mod listing;
mod mailbox;
mod record;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::addresses::Endpoint;
use crate::warnings::Disconnections;
use quoin_acl::User;
use quoin_base::clock::Clock;
use quoin_config::RuntimeConfig;

pub(super) use listing::{cut, describe, flags_of, put_line};
pub(super) use mailbox::{BufferMemory, Frame, Pushed};
pub(super) use record::{
    ClientRecord, NO_COMMAND, Scope, Subscriptions, TrackingMode, Unblock, WaitsFor,
};

/// All connected clients.
#[derive(Debug, Default)]
pub(crate) struct ClientRegistry {
    next_id: AtomicU64,
    clients: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
    /// Number of clients. Read without the lock.
    count: AtomicUsize,
    memory: Arc<BufferMemory>,
    is_exhausted: AtomicBool,
}

impl ClientRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientRecord>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client with this user. `None` if there are `maxclients` already.
    pub(crate) fn register(
        &self,
        address: Endpoint,
        local_address: Endpoint,
        file_descriptor: i32,
        now_ms: i64,
        maxclients: usize,
        user: &Arc<User>,
    ) -> Option<Arc<ClientRecord>> {
        let mut clients = self.lock();
        if clients.len() >= maxclients {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let memory = Arc::clone(&self.memory);
        let record = Arc::new(ClientRecord::new(
            id,
            address,
            local_address,
            file_descriptor,
            now_ms,
            memory,
            Arc::clone(user),
        ));
        clients.insert(id, Arc::clone(&record));
        self.count.store(clients.len(), Ordering::Relaxed);
        tracing::debug!("client {id} connected from {}", record.address);
        Some(record)
    }

    /// Forgets a client that is gone.
    pub(crate) fn remove(&self, id: u64) {
        let removed = {
            let mut clients = self.lock();
            let removed = clients.remove(&id);
            self.count.store(clients.len(), Ordering::Relaxed);
            removed
        };
        if let Some(client) = removed {
            self.note_held(&client, 0);
            tracing::debug!("client {id} at {} disconnected", client.address);
        }
    }

    /// The number of clients.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The memory that all clients take.
    pub(crate) fn memory(&self) -> &Arc<BufferMemory> {
        &self.memory
    }

    /// Notes how much memory a client takes, without messages.
    pub(crate) fn note_held(&self, client: &ClientRecord, bytes: usize) {
        // An evicted client no longer counts while it still exists. Otherwise others would be
        // evicted in its place.
        let bytes = match client.is_evicted.load(Ordering::SeqCst) {
            true => 0,
            false => bytes,
        };
        let before = client.held_bytes.swap(bytes, Ordering::SeqCst);
        self.memory.replace(before, bytes);
    }

    /// Evicts clients until the remaining ones use at most `target_bytes`. Clients that have not
    /// authenticated go first, then those that hold the most. CLIENT NO-EVICT protects a client.
    /// `report` is called before each eviction. Returns false if it was not enough.
    pub(crate) fn evict(&self, target_bytes: usize, mut report: impl FnMut(&ClientRecord)) -> bool {
        let clients = self.all().into_iter();
        let mut candidates: Vec<_> = clients
            .filter(|client| !client.is_evicted.load(Ordering::SeqCst))
            .map(|client| (client.memory_bytes(), client))
            .filter(|(bytes, client)| *bytes > 0 && !client.details().no_evict)
            .collect();
        candidates.sort_by_key(|(bytes, client)| {
            let is_trusted = client.is_trusted.load(Ordering::Relaxed);
            (is_trusted, Reverse(*bytes))
        });
        for (_, client) in candidates {
            if self.memory.bytes() <= target_bytes {
                break;
            }
            // Another thread may be evicting it.
            if client.is_evicted.swap(true, Ordering::SeqCst) {
                continue;
            }
            report(&client);
            self.note_held(&client, 0);
            client.mailbox.close();
            client.kill();
        }
        let is_enough = self.memory.bytes() <= target_bytes;
        self.is_exhausted.store(!is_enough, Ordering::Relaxed);
        is_enough
    }

    /// Whether the last [`Self::evict`] was not enough.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::Relaxed)
    }

    /// The client with this number.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<ClientRecord>> {
        self.lock().get(&id).cloned()
    }

    /// Disconnects clients that were idle for longer than the setting `timeout`. A client that does
    /// not read its replies is idle, too.
    pub(crate) fn close_idle(&self, timeout_s: u32, now_ms: i64) {
        if timeout_s == 0 {
            return;
        }
        let timeout_ms = i64::from(timeout_s) * 1_000;
        for client in self.all() {
            if client.is_idle(timeout_ms, now_ms) {
                tracing::debug!(
                    "client {} was idle for longer than the setting timeout",
                    client.id
                );
                client.kill();
            }
        }
    }

    /// All clients, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<ClientRecord>> {
        self.lock().values().cloned().collect()
    }
}

/// A client's slot in `maxclients`. It is freed when this value is dropped, even if the client's
/// task panics.
pub(crate) struct Place {
    client: Arc<ClientRecord>,
    clients: Arc<ClientRegistry>,
}

impl Place {
    /// The slot of a registered client.
    pub(crate) fn new(client: Arc<ClientRecord>, clients: &Arc<ClientRegistry>) -> Self {
        Self {
            client,
            clients: Arc::clone(clients),
        }
    }

    /// The client.
    pub(crate) fn client(&self) -> &Arc<ClientRecord> {
        &self.client
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.remove(self.client.id);
    }
}

/// Puts messages into mailboxes.
pub(super) struct Delivery {
    config: Arc<RuntimeConfig>,
    clock: Arc<dyn Clock>,
    memory: Arc<BufferMemory>,
    disconnections: Arc<Disconnections>,
}

impl Delivery {
    /// Messages that wait count in `memory`.
    pub(super) fn new(
        config: Arc<RuntimeConfig>,
        clock: Arc<dyn Clock>,
        memory: Arc<BufferMemory>,
        disconnections: Arc<Disconnections>,
    ) -> Self {
        Self {
            config,
            clock,
            memory,
            disconnections,
        }
    }

    /// The memory that messages count in.
    pub(super) fn memory(&self) -> &Arc<BufferMemory> {
        &self.memory
    }

    /// Puts a message into a client's mailbox. Disconnects the client if that exceeds
    /// `client-output-buffer-limit pubsub`.
    pub(super) fn push(&self, client: &ClientRecord, frame: &Frame) {
        let limit = self.config.live.output_limits().subscriber;
        let pushed = client
            .mailbox
            .push(frame.clone(), &limit, self.clock.now_ms());
        if pushed == Pushed::Overflowed {
            self.close(client);
        }
    }

    /// Disconnects clients whose waiting messages have exceeded the soft limit for too long.
    pub(super) fn close_overdue(&self, clients: &ClientRegistry) {
        let limit = self.config.live.output_limits().subscriber;
        if limit.soft_bytes == 0 {
            return;
        }
        let now_ms = self.clock.now_ms();
        for client in clients.all() {
            if client.mailbox.is_overdue(&limit, now_ms) {
                self.close(&client);
            }
        }
    }

    fn close(&self, client: &ClientRecord) {
        let now_ms = self.clock.now_ms();
        self.disconnections
            .output_buffer(|| describe(client, now_ms));
        client.kill();
    }
}

#[cfg(test)]
impl ClientRegistry {
    /// Adds a client.
    pub(crate) fn client_for_test(&self) -> Arc<ClientRecord> {
        let address = Endpoint::Tcp(([127, 0, 0, 1], 1).into());
        let user = User::for_test();
        let client = self.register(address.clone(), address, 0, 0, 100, &user);
        client.unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(registry: &ClientRegistry, bytes: usize, is_trusted: bool) -> Arc<ClientRecord> {
        let client = registry.client_for_test();
        client.is_trusted.store(is_trusted, Ordering::Relaxed);
        registry.note_held(&client, bytes);
        client
    }

    fn evicted(registry: &ClientRegistry, target_bytes: usize) -> (Vec<u64>, bool) {
        let mut evicted = Vec::new();
        let is_enough = registry.evict(target_bytes, |client| evicted.push(client.id));
        (evicted, is_enough)
    }

    #[test]
    fn the_largest_are_evicted_until_the_others_have_room() {
        let registry = ClientRegistry::default();
        let [small, large, middle] = [10, 100, 50].map(|bytes| client(&registry, bytes, true));
        assert_eq!(registry.memory().bytes(), 160);
        assert_eq!(evicted(&registry, 60), (vec![large.id], true));
        assert!(large.is_killed() && !small.is_killed() && !middle.is_killed());
        assert_eq!(registry.memory().bytes(), 60);
        // What it still holds no longer counts.
        registry.note_held(&large, 200);
        assert_eq!(evicted(&registry, 60), (vec![], true));
        registry.remove(large.id);
        registry.remove(middle.id);
        assert_eq!(registry.memory().bytes(), 10);
    }

    #[test]
    fn those_who_have_not_authenticated_go_first() {
        let registry = ClientRegistry::default();
        let trusted = client(&registry, 100, true);
        let strangers = [10, 20].map(|bytes| client(&registry, bytes, false));
        let order = vec![strangers[1].id, strangers[0].id, trusted.id];
        assert_eq!(evicted(&registry, 0), (order, true));
    }

    #[test]
    fn those_with_no_evict_stay() {
        let registry = ClientRegistry::default();
        let spared = client(&registry, 100, true);
        spared.details().no_evict = true;
        let other = client(&registry, 10, true);
        assert_eq!(evicted(&registry, 50), (vec![other.id], false));
        assert!(registry.is_exhausted());
        assert!(!spared.is_killed());
    }

    #[tokio::test]
    async fn a_client_whose_task_panics_gives_its_place_back() {
        let clients = Arc::<ClientRegistry>::default();
        let place = Place::new(clients.client_for_test(), &clients);
        assert_eq!(clients.count(), 1);
        let serving = tokio::spawn(async move {
            let _place = place;
            panic!("on purpose");
        });
        assert!(serving.await.unwrap_err().is_panic());
        assert_eq!(clients.count(), 0);
    }
}
