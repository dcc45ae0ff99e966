//! The record of one client: what other clients (CLIENT LIST, CLIENT KILL) and the server see of
//! it, with its subscriptions and its tracking mode.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::addresses::Endpoint;
use crate::clients::mailbox::{BufferMemory, Mailbox};
use quoin_acl::User;
use quoin_base::limits::DASHBOARD_WAIT_KEYS_MAX;
use quoin_engine::watchers::Touched;

/// One connected client.
#[derive(Debug)]
pub(crate) struct ClientRecord {
    /// Its number, unique until the server restarts.
    pub(crate) id: u64,
    /// Its address.
    pub(crate) address: Endpoint,
    /// The address that it connected to.
    pub(crate) local_address: Endpoint,
    /// The file descriptor of its socket.
    pub(crate) file_descriptor: i32,
    /// When it connected, in milliseconds since the Unix epoch.
    pub(crate) connected_ms: i64,
    /// When it last sent or received something, in milliseconds since the Unix epoch.
    pub(crate) last_interaction_ms: AtomicI64,
    last_command: AtomicUsize,
    /// Bytes in its query buffer, including those of the commands that are running.
    pub(crate) input_bytes: AtomicUsize,
    /// Free room of its query buffer.
    pub(crate) input_free_bytes: AtomicUsize,
    /// Bytes of arguments: of waiting and running commands, and of an incomplete request.
    pub(crate) argument_bytes: AtomicUsize,
    /// Bytes of the commands that it has queued since MULTI.
    pub(crate) transaction_bytes: AtomicUsize,
    /// Capacity of its reply buffer.
    pub(crate) output_bytes: AtomicUsize,
    /// Bytes of replies that it has not taken yet.
    pub(crate) output_unsent_bytes: AtomicUsize,
    /// Memory that it takes, without messages.
    pub(super) held_bytes: AtomicUsize,
    /// Bytes that were read from it.
    pub(crate) read_bytes: AtomicU64,
    /// Bytes that were written to it.
    pub(crate) written_bytes: AtomicU64,
    /// Its commands that were executed.
    pub(crate) commands: AtomicU64,
    attribute_bytes: AtomicUsize,
    pub(super) is_evicted: AtomicBool,
    /// Whether it has authenticated.
    pub(crate) is_trusted: AtomicBool,
    /// The number of its subscriptions, by [`Scope`].
    subscribed: [AtomicUsize; 3],
    is_monitor: AtomicBool,
    gets_invalidations: AtomicBool,
    /// Messages that wait to be written to it.
    pub(crate) mailbox: Mailbox,
    /// Its user.
    user: RwLock<Arc<User>>,
    /// Its details.
    details: Mutex<ClientDetails>,
    is_killed: AtomicBool,
    killed: Notify,
    block: AtomicU8,
    waits_for: Mutex<Option<WaitsFor>>,
    unblocked: Notify,
    is_awaited: AtomicBool,
}

/// [`ClientRecord::shown_command`] of a client that has sent no command.
pub(crate) const NO_COMMAND: usize = usize::MAX;

/// What a blocked client waits for, and since when. CLIENT LIST has no field for it. The dashboard
/// shows it.
#[derive(Debug, Clone)]
pub(crate) struct WaitsFor {
    /// In milliseconds since the Unix epoch.
    pub(crate) since_ms: i64,
    /// The first of its keys.
    pub(crate) keys: Vec<Bytes>,
    /// The number of its keys. 0 if it waits for something else.
    pub(crate) key_count: usize,
    /// Whether CLIENT PAUSE holds it back.
    pub(crate) is_paused: bool,
}

impl WaitsFor {
    /// Any of these keys, from now on. Without keys, something else.
    pub(crate) fn keys(keys: &[Bytes], now_ms: i64) -> Self {
        let first = keys.iter().take(DASHBOARD_WAIT_KEYS_MAX);
        Self {
            since_ms: now_ms,
            keys: first.cloned().collect(),
            key_count: keys.len(),
            is_paused: false,
        }
    }
}

/// How a blocked client is woken by CLIENT UNBLOCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unblock {
    /// As if it had timed out.
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
pub(crate) struct ClientDetails {
    /// CLIENT SETNAME.
    pub(crate) name: String,
    /// CLIENT SETINFO LIB-NAME.
    pub(crate) library_name: String,
    /// CLIENT SETINFO LIB-VER.
    pub(crate) library_version: String,
    /// SELECT.
    pub(crate) database: u32,
    /// HELLO: 2 or 3.
    pub(crate) protocol: u8,
    /// CLIENT NO-EVICT.
    pub(crate) no_evict: bool,
    /// CLIENT NO-TOUCH.
    pub(crate) no_touch: bool,
    /// How many commands it has queued since MULTI.
    pub(crate) queued_commands: Option<i32>,
    /// CLIENT CAPA: the client follows redirections. Quoin sends none.
    pub(crate) follows_redirect: bool,
    /// Whether one of its watched keys has changed. `None` if it watches none.
    pub(crate) watched: Option<Touched>,
    /// How many keys it watches.
    pub(crate) watched_keys: usize,
    /// CLIENT TRACKING.
    pub(crate) tracking: Option<TrackingMode>,
    /// Keys changed while the client to which it redirects invalidations was gone.
    pub(crate) has_broken_redirect: bool,
}

impl ClientRecord {
    /// The record of a client that has just connected. Its messages count in `memory`.
    pub(super) fn new(
        id: u64,
        address: Endpoint,
        local_address: Endpoint,
        file_descriptor: i32,
        now_ms: i64,
        memory: Arc<BufferMemory>,
        user: Arc<User>,
    ) -> Self {
        Self {
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
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            attribute_bytes: AtomicUsize::new(0),
            is_evicted: AtomicBool::new(false),
            is_trusted: AtomicBool::new(false),
            subscribed: Default::default(),
            is_monitor: AtomicBool::new(false),
            gets_invalidations: AtomicBool::new(false),
            mailbox: Mailbox::new(memory),
            user: RwLock::new(user),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
            block: AtomicU8::new(NOT_BLOCKED),
            waits_for: Mutex::new(None),
            unblocked: Notify::new(),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// Its user.
    pub(crate) fn user(&self) -> Arc<User> {
        Arc::clone(&self.user.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes its user.
    pub(crate) fn set_user(&self, user: Arc<User>) {
        *self.user.write().unwrap_or_else(PoisonError::into_inner) = user;
    }

    /// The details, for reading or changing.
    pub(crate) fn details(&self) -> MutexGuard<'_, ClientDetails> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the names that it has given itself.
    pub(crate) fn set_attributes(&self, change: impl FnOnce(&mut ClientDetails)) {
        let mut details = self.details();
        change(&mut details);
        let attributes = [
            &details.name,
            &details.library_name,
            &details.library_version,
        ];
        let bytes = attributes.map(String::len).iter().sum();
        self.attribute_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of the names that it has given itself.
    pub(crate) fn attribute_bytes(&self) -> usize {
        self.attribute_bytes.load(Ordering::Relaxed)
    }

    /// Shows a command as its last one, by its index in the command table. A blocking command is
    /// shown once it blocks ([`Self::enter_block`]) or has ended. So a client that shows a blocking
    /// command is blocked.
    pub(crate) fn show_command(&self, slot: usize) {
        self.last_command.store(slot, Ordering::Release);
    }

    /// Its last command, or [`NO_COMMAND`] before the first.
    pub(crate) fn shown_command(&self) -> usize {
        self.last_command.load(Ordering::Acquire)
    }

    /// Records that bytes were received or sent.
    pub(crate) fn note_interaction(&self, now_ms: i64) {
        self.last_interaction_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Marks that the server waits for the client to send or receive, until the result is dropped.
    pub(crate) fn await_client(&self) -> Awaited<'_> {
        self.is_awaited.store(true, Ordering::SeqCst);
        Awaited { client: self }
    }

    /// Whether the client has been idle for longer than the setting `timeout`: the server waits for
    /// it, and nothing was received or sent. Subscribers and monitors are never idle (Redis:
    /// `clientsCronHandleTimeout`).
    pub(super) fn is_idle(&self, timeout_ms: i64, now_ms: i64) -> bool {
        let idle_ms = now_ms.saturating_sub(self.last_interaction_ms.load(Ordering::Relaxed));
        idle_ms > timeout_ms
            && self.is_awaited.load(Ordering::SeqCst)
            && !self.is_subscriber()
            && !self.is_monitor()
    }

    /// Shows the numbers of its subscriptions, for CLIENT LIST.
    pub(crate) fn show_subscriptions(&self, subscriptions: &Subscriptions) {
        for scope in [Scope::Channel, Scope::Pattern, Scope::Shard] {
            if let Some(count) = self.subscribed.get(scope as usize) {
                count.store(subscriptions.names(scope).len(), Ordering::Relaxed);
            }
        }
    }

    /// Notes whether MONITOR shows it the commands of others.
    pub(crate) fn set_monitor(&self, is_monitor: bool) {
        self.is_monitor.store(is_monitor, Ordering::Release);
    }

    /// Whether MONITOR shows it the commands of others.
    pub(crate) fn is_monitor(&self) -> bool {
        self.is_monitor.load(Ordering::Acquire)
    }

    /// Notes that it may get invalidations.
    pub(crate) fn note_invalidations(&self) {
        self.gets_invalidations.store(true, Ordering::Release);
    }

    /// Whether it may get invalidations.
    pub(crate) fn gets_invalidations(&self) -> bool {
        self.gets_invalidations.load(Ordering::Acquire)
    }

    /// The number of its subscriptions of one kind.
    pub(crate) fn subscribed(&self, scope: Scope) -> usize {
        self.subscribed
            .get(scope as usize)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Whether the client has any subscription: Redis's class `pubsub`.
    pub(crate) fn is_subscriber(&self) -> bool {
        self.subscribed
            .iter()
            .any(|count| count.load(Ordering::Relaxed) != 0)
    }

    /// Its memory, including all waiting messages, even shared ones.
    pub(crate) fn memory_bytes(&self) -> usize {
        let messages = usize::try_from(self.mailbox.waiting().1).unwrap_or(usize::MAX);
        self.held_bytes
            .load(Ordering::Relaxed)
            .saturating_add(messages)
    }

    /// Ends the client's connection after its current command.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
        self.killed.notify_one();
    }

    /// Whether [`Self::kill`] was called.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }

    /// Waits for [`Self::kill`].
    pub(crate) async fn wait_killed(&self) {
        while !self.is_killed() {
            self.killed.notified().await;
        }
    }

    /// Whether the client waits in a command that blocks.
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.block.load(Ordering::SeqCst), BLOCKED | PAUSED)
    }

    /// Marks the client as blocked until the result is dropped.
    pub(crate) fn enter_block(&self, waits_for: WaitsFor) -> Blocked<'_> {
        self.enter(BLOCKED, waits_for)
    }

    /// Marks the client as held back by CLIENT PAUSE until the result is dropped. It counts as
    /// blocked, but CLIENT UNBLOCK does not wake it.
    pub(crate) fn enter_pause(&self, now_ms: i64) -> Blocked<'_> {
        let waits_for = WaitsFor {
            is_paused: true,
            ..WaitsFor::keys(&[], now_ms)
        };
        self.enter(PAUSED, waits_for)
    }

    fn enter(&self, block: u8, waits_for: WaitsFor) -> Blocked<'_> {
        *self.lock_waits_for() = Some(waits_for);
        self.block.store(block, Ordering::SeqCst);
        Blocked { client: self }
    }

    /// What it waits for, if it is blocked.
    pub(crate) fn waits_for(&self) -> Option<WaitsFor> {
        self.lock_waits_for().clone()
    }

    fn lock_waits_for(&self) -> MutexGuard<'_, Option<WaitsFor>> {
        { self.waits_for.lock() }.unwrap_or_else(PoisonError::into_inner)
    }

    /// CLIENT UNBLOCK: wakes the client if it is blocked, and says whether it was.
    pub(crate) fn unblock(&self, how: Unblock) -> bool {
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
pub(crate) struct Awaited<'c> {
    client: &'c ClientRecord,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.client.is_awaited.store(false, Ordering::SeqCst);
    }
}

/// A client that waits in a command that blocks.
#[derive(Debug)]
pub(crate) struct Blocked<'c> {
    client: &'c ClientRecord,
}

impl Blocked<'_> {
    /// Waits for CLIENT UNBLOCK.
    pub(crate) async fn wait_unblocked(&self) -> Unblock {
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
        *self.client.lock_waits_for() = None;
    }
}

/// The kind of a name that a client subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A channel: SUBSCRIBE.
    Channel,
    /// A glob pattern of channels: PSUBSCRIBE.
    Pattern,
    /// A shard channel: SSUBSCRIBE.
    Shard,
}

/// Approximate memory of a subscription beyond its name, here and in the table of all subscriptions.
const ENTRY_BYTES: usize = 200;

/// The subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Bytes>,
    patterns: BTreeSet<Bytes>,
    shards: BTreeSet<Bytes>,
    name_bytes: usize,
}

impl Subscriptions {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty()
    }

    /// The number of subscriptions of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }

    /// The memory that they take.
    pub(crate) fn held_bytes(&self) -> usize {
        self.name_bytes + self.len() * ENTRY_BYTES
    }

    /// Names of one kind.
    pub(crate) fn names(&self, scope: Scope) -> &BTreeSet<Bytes> {
        match scope {
            Scope::Channel => &self.channels,
            Scope::Pattern => &self.patterns,
            Scope::Shard => &self.shards,
        }
    }

    fn names_mut(&mut self, scope: Scope) -> &mut BTreeSet<Bytes> {
        match scope {
            Scope::Channel => &mut self.channels,
            Scope::Pattern => &mut self.patterns,
            Scope::Shard => &mut self.shards,
        }
    }

    /// The number of subscriptions as replies give it: channels and patterns together.
    pub(crate) fn count(&self, scope: Scope) -> usize {
        match scope {
            Scope::Channel | Scope::Pattern => self.channels.len() + self.patterns.len(),
            Scope::Shard => self.shards.len(),
        }
    }

    pub(crate) fn insert(&mut self, scope: Scope, name: Bytes) {
        let bytes = name.len();
        if self.names_mut(scope).insert(name) {
            self.name_bytes += bytes;
        }
    }

    pub(crate) fn remove(&mut self, scope: Scope, name: &[u8]) -> bool {
        let is_removed = self.names_mut(scope).remove(name);
        if is_removed {
            self.name_bytes -= name.len();
        }
        is_removed
    }

    pub(crate) fn take(&mut self, scope: Scope) -> BTreeSet<Bytes> {
        let names = std::mem::take(self.names_mut(scope));
        self.name_bytes -= names.iter().map(Bytes::len).sum::<usize>();
        names
    }
}

/// The options of CLIENT TRACKING ON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TrackingMode {
    /// BCAST: the client gets invalidations of all keys with its prefixes, whatever it reads.
    pub(crate) is_broadcast: bool,
    /// OPTIN: only keys that it reads right after CLIENT CACHING YES.
    pub(crate) is_opt_in: bool,
    /// OPTOUT: all keys except those read right after CLIENT CACHING NO.
    pub(crate) is_opt_out: bool,
    /// NOLOOP: not keys that it changes itself.
    pub(crate) is_noloop: bool,
    /// REDIRECT: the client that gets its invalidations. 0 means none.
    pub(crate) redirect: u64,
}

impl TrackingMode {
    /// Whether the keys that a command reads are remembered. `is_caching`: whether CLIENT CACHING
    /// came right before it.
    pub(crate) fn remembers(self, is_caching: bool) -> bool {
        let is_left_out = match is_caching {
            true => self.is_opt_out,
            false => self.is_opt_in,
        };
        !self.is_broadcast && !is_left_out
    }
}
