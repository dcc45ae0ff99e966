//! Who is connected: the records behind CLIENT LIST and CLIENT KILL.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// One connected client, as others see it.
#[derive(Debug)]
pub struct ClientRecord {
    /// Its number, never given twice by one server start.
    pub id: u64,
    /// Its address.
    pub address: SocketAddr,
    /// The address that it connected to.
    pub local_address: SocketAddr,
    /// When it connected, in milliseconds since the Unix epoch.
    pub connected_ms: i64,
    /// When it last sent a command, in milliseconds since the Unix epoch.
    pub last_interaction_ms: AtomicI64,
    /// What it calls itself and does.
    details: Mutex<ClientDetails>,
    is_killed: AtomicBool,
    killed: Notify,
}

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
    /// The last command, `container|subcommand` in lower case.
    pub last_command: &'static str,
    /// CLIENT NO-EVICT.
    pub no_evict: bool,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// Bytes that wait in its query buffer.
    pub query_buffer_bytes: usize,
}

impl ClientRecord {
    /// The details, for reading or changing.
    pub fn details(&self) -> MutexGuard<'_, ClientDetails> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
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
}

/// All connected clients.
#[derive(Debug, Default)]
pub struct ClientRegistry {
    next_id: AtomicU64,
    clients: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
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
            connected_ms: now_ms,
            last_interaction_ms: AtomicI64::new(now_ms),
            details: Mutex::new(ClientDetails {
                protocol: 2,
                last_command: "NULL",
                ..ClientDetails::default()
            }),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
        });
        clients.insert(id, Arc::clone(&record));
        Some(record)
    }

    /// Forgets a client that is gone.
    pub fn remove(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// How many clients there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// All clients, oldest first.
    pub fn all(&self) -> Vec<Arc<ClientRecord>> {
        self.lock().values().cloned().collect()
    }
}
