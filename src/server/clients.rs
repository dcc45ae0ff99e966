//! Who is connected: the records behind CLIENT LIST and CLIENT KILL.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::buffers::BufferMemory;
use super::pubsub::Mailbox;
use crate::executor::watchers::Touched;

/// One connected client, as others see it.
#[derive(Debug)]
pub struct ClientRecord {
    /// Its number, never given twice by one server start.
    pub id: u64,
    /// Its address.
    pub address: SocketAddr,
    /// The address that it connected to.
    pub local_address: SocketAddr,
    /// Its socket's number in this process.
    pub file_descriptor: i32,
    /// When it connected, in milliseconds since the Unix epoch.
    pub connected_ms: i64,
    /// When it last sent or took something, in milliseconds since the Unix epoch.
    pub last_interaction_ms: AtomicI64,
    last_command: AtomicUsize,
    /// Bytes that wait in its query buffer, those of the command that is carried out included.
    pub input_bytes: AtomicUsize,
    /// Bytes that its query buffer has room for beyond those.
    pub input_free_bytes: AtomicUsize,
    /// Bytes of arguments of commands that wait or are under way, and of a request that is not whole.
    pub argument_bytes: AtomicUsize,
    /// Bytes of what it has queued since MULTI.
    pub transaction_bytes: AtomicUsize,
    /// Bytes that its buffer of replies has room for.
    pub output_bytes: AtomicUsize,
    /// Bytes of replies that wait to be written to it.
    pub output_unsent_bytes: AtomicUsize,
    /// Memory that its buffers take, but for messages.
    held_bytes: AtomicUsize,
    is_evicted: AtomicBool,
    /// Whether it has authenticated.
    pub is_trusted: AtomicBool,
    /// To how many channels, patterns and shard channels it is subscribed.
    pub(super) subscribed: [AtomicUsize; 3],
    /// Messages that wait to be written to it.
    pub mailbox: Mailbox,
    /// What it calls itself and does.
    details: Mutex<ClientDetails>,
    is_killed: AtomicBool,
    killed: Notify,
    block: AtomicU8,
    unblocked: Notify,
    is_awaited: AtomicBool,
}

/// [`ClientRecord::shown_command`] of a client that has sent none.
pub const NO_COMMAND: usize = usize::MAX;

/// How a blocked client is woken by CLIENT UNBLOCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unblock {
    /// As if its time were up.
    Timeout,
    /// With an error.
    Error,
}

const NOT_BLOCKED: u8 = 0;
const BLOCKED: u8 = 1;
const PAUSED: u8 = 4;
const UNBLOCKED_TIMEOUT: u8 = 2;
const UNBLOCKED_ERROR: u8 = 3;

/// The part of a record that the client's own commands change.
#[derive(Debug, Clone, Default)]
pub struct ClientDetails {
    /// CLIENT SETNAME.
    pub name: String,
    /// CLIENT SETINFO LIB-NAME.
    pub library_name: String,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: String,
    /// SELECT.
    pub database: u32,
    /// HELLO: 2 or 3.
    pub protocol: u8,
    /// CLIENT NO-EVICT.
    pub no_evict: bool,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// How many commands it has queued since MULTI.
    pub queued_commands: Option<i32>,
    /// It watches keys, and here stands whether one of them has changed.
    pub watched: Option<Touched>,
}

impl ClientRecord {
    /// The details, for reading or changing.
    pub fn details(&self) -> MutexGuard<'_, ClientDetails> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a command as its last one, by its id. One that blocks is shown
    /// when it does ([`Self::enter_block`]) or has ended, as if it took no time until then: a
    /// client that is seen at it is blocked.
    pub fn show_command(&self, command_id: usize) {
        self.last_command.store(command_id, Ordering::Release);
    }

    /// Its last command; [`NO_COMMAND`] before the first.
    pub fn shown_command(&self) -> usize {
        self.last_command.load(Ordering::Acquire)
    }

    /// Notes that bytes came from it or went to it.
    pub fn note_interaction(&self, now_ms: i64) {
        self.last_interaction_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Marks that the server waits for the client, to send something or to take it, until the answer
    /// is dropped.
    pub fn await_client(&self) -> Awaited<'_> {
        self.is_awaited.store(true, Ordering::SeqCst);
        Awaited { client: self }
    }

    /// Whether the setting `timeout` is over: the server waits for the client, and nothing came or
    /// went for longer. Subscribers have nothing to say (Redis: `clientsCronHandleTimeout`).
    fn is_idle(&self, timeout_ms: i64, now_ms: i64) -> bool {
        let idle_ms = now_ms.saturating_sub(self.last_interaction_ms.load(Ordering::Relaxed));
        idle_ms > timeout_ms && self.is_awaited.load(Ordering::SeqCst) && !self.is_subscriber()
    }

    /// Memory that its buffers take, messages that wait for it included, as if they waited for
    /// nobody else.
    pub fn memory_bytes(&self) -> usize {
        let messages = usize::try_from(self.mailbox.waiting().1).unwrap_or(usize::MAX);
        self.held_bytes
            .load(Ordering::Relaxed)
            .saturating_add(messages)
    }

    /// Ends the client's connection, after the command that it is at.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
        self.killed.notify_one();
    }

    /// Whether [`Self::kill`] was called.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }

    /// Waits for [`Self::kill`].
    pub async fn wait_killed(&self) {
        while !self.is_killed() {
            self.killed.notified().await;
        }
    }

    /// Whether the client waits in a command that blocks.
    pub fn is_blocked(&self) -> bool {
        matches!(self.block.load(Ordering::SeqCst), BLOCKED | PAUSED)
    }

    /// Marks the client as blocked until the answer is dropped.
    pub fn enter_block(&self) -> Blocked<'_> {
        self.block.store(BLOCKED, Ordering::SeqCst);
        Blocked { client: self }
    }

    /// Marks the client as held back by CLIENT PAUSE until the answer is dropped. It counts as
    /// blocked, but CLIENT UNBLOCK does not wake it.
    pub fn enter_pause(&self) -> Blocked<'_> {
        self.block.store(PAUSED, Ordering::SeqCst);
        Blocked { client: self }
    }

    /// CLIENT UNBLOCK: wakes the client if it is blocked, and says whether it was.
    pub fn unblock(&self, how: Unblock) -> bool {
        let to = match how {
            Unblock::Timeout => UNBLOCKED_TIMEOUT,
            Unblock::Error => UNBLOCKED_ERROR,
        };
        let was_blocked = self
            .block
            .compare_exchange(BLOCKED, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if was_blocked {
            self.unblocked.notify_one();
        }
        was_blocked
    }
}

/// A client that the server waits for.
#[derive(Debug)]
pub struct Awaited<'c> {
    client: &'c ClientRecord,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.client.is_awaited.store(false, Ordering::SeqCst);
    }
}

/// A client that waits in a command that blocks.
#[derive(Debug)]
pub struct Blocked<'c> {
    client: &'c ClientRecord,
}

impl Blocked<'_> {
    /// Waits for CLIENT UNBLOCK.
    pub async fn wait_unblocked(&self) -> Unblock {
        loop {
            match self.client.block.load(Ordering::SeqCst) {
                UNBLOCKED_TIMEOUT => return Unblock::Timeout,
                UNBLOCKED_ERROR => return Unblock::Error,
                _ => self.client.unblocked.notified().await,
            }
        }
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        self.client.block.store(NOT_BLOCKED, Ordering::SeqCst);
    }
}

/// All connected clients.
#[derive(Debug, Default)]
pub struct ClientRegistry {
    next_id: AtomicU64,
    clients: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
    memory: Arc<BufferMemory>,
    is_exhausted: AtomicBool,
}

impl ClientRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientRecord>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client, unless there are `maxclients` already.
    pub fn register(
        &self,
        address: SocketAddr,
        local_address: SocketAddr,
        file_descriptor: i32,
        now_ms: i64,
        maxclients: usize,
    ) -> Option<Arc<ClientRecord>> {
        let mut clients = self.lock();
        if clients.len() >= maxclients {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let record = Arc::new(ClientRecord {
            id,
            address,
            local_address,
            file_descriptor,
            connected_ms: now_ms,
            last_interaction_ms: AtomicI64::new(now_ms),
            details: Mutex::new(ClientDetails {
                protocol: 2,
                ..ClientDetails::default()
            }),
            last_command: AtomicUsize::new(NO_COMMAND),
            input_bytes: AtomicUsize::new(0),
            input_free_bytes: AtomicUsize::new(0),
            argument_bytes: AtomicUsize::new(0),
            transaction_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            output_unsent_bytes: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
            is_evicted: AtomicBool::new(false),
            is_trusted: AtomicBool::new(false),
            subscribed: Default::default(),
            mailbox: Mailbox::new(Arc::clone(&self.memory)),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
            block: AtomicU8::new(NOT_BLOCKED),
            unblocked: Notify::new(),
            is_awaited: AtomicBool::new(false),
        });
        clients.insert(id, Arc::clone(&record));
        tracing::debug!("client {id} connected from {address}");
        Some(record)
    }

    /// Forgets a client that is gone.
    pub fn remove(&self, id: u64) {
        let removed = self.lock().remove(&id);
        if let Some(client) = removed {
            self.note_held(&client, 0);
            tracing::debug!("client {id} at {} is gone", client.address);
        }
    }

    /// How much memory the buffers of all clients take.
    pub fn memory(&self) -> &Arc<BufferMemory> {
        &self.memory
    }

    /// Notes how much memory a client's buffers take, but for messages.
    pub fn note_held(&self, client: &ClientRecord, bytes: usize) {
        // What an evicted client holds until it is gone does not count: others would have to go
        // for it.
        let bytes = match client.is_evicted.load(Ordering::SeqCst) {
            true => 0,
            false => bytes,
        };
        let before = client.held_bytes.swap(bytes, Ordering::SeqCst);
        self.memory.replace(before, bytes);
    }

    /// Evicts clients until the buffers of the others take no more than so many bytes: those that
    /// have not authenticated first, then those with the most, none with CLIENT NO-EVICT. Tells of
    /// each before. False where it is not enough.
    pub fn evict(&self, target_bytes: usize, mut tell: impl FnMut(&ClientRecord)) -> bool {
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
            // Another thread may be at it.
            if client.is_evicted.swap(true, Ordering::SeqCst) {
                continue;
            }
            tell(&client);
            self.note_held(&client, 0);
            client.mailbox.close();
            client.kill();
        }
        let is_enough = self.memory.bytes() <= target_bytes;
        self.is_exhausted.store(!is_enough, Ordering::Relaxed);
        is_enough
    }

    /// Whether the last [`Self::evict`] was not enough.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::Relaxed)
    }

    /// The client of this number.
    pub fn find(&self, id: u64) -> Option<Arc<ClientRecord>> {
        self.lock().get(&id).cloned()
    }

    /// How many clients there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Disconnects clients that were idle for longer than the setting `timeout`, which also holds for
    /// those that do not read their replies.
    pub fn close_idle(&self, timeout_s: u32, now_ms: i64) {
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
    pub fn all(&self) -> Vec<Arc<ClientRecord>> {
        self.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(registry: &ClientRegistry, bytes: usize, is_trusted: bool) -> Arc<ClientRecord> {
        let address = ([127, 0, 0, 1], 1).into();
        let client = registry.register(address, address, 0, 0, 100).unwrap();
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
        // What it still holds for a moment counts no more.
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
}
