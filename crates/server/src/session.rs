//! The state of one connection that its commands read and change: user, protocol, database, MULTI, WATCH.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::addresses::Face;
use crate::clients::{ClientRecord, Subscriptions, TrackingMode};
use quoin_acl::{User, Users};
use quoin_base::limits::{TRANSACTION_COMMANDS_MAX, TRANSACTION_QUEUE_BYTES_MAX};
use quoin_data::command::row::{ConnectionCommand, Row};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::host::Origin;
use quoin_engine::WatchedKey;
use quoin_engine::watchers::{Touched, Watchers};
use quoin_resp::wire::encode::Protocol;

/// CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReplyMode {
    /// Every command is answered.
    #[default]
    On,
    /// No command is answered.
    Off,
    /// The next command gets no reply, the one after it does.
    SkipNext,
    /// This command gets no reply, the next one does.
    Skip,
}

/// The handshake of a link ([`crate::links::handshake`]).
#[derive(Debug, Default)]
pub(super) enum LinkStage {
    /// It has not begun.
    #[default]
    Unproven,
    /// The nonces of the other server and of this one have been exchanged.
    Asked([Bytes; 2]),
    /// The other server shares the store. Frames follow.
    Proven,
}

/// The state of one connection that its commands read and change.
pub(super) struct Session {
    /// Its record in the registry.
    pub(super) client: Arc<ClientRecord>,
    /// The kind of port that the client uses.
    pub(super) face: Face,
    /// RESP2, or RESP3 after HELLO 3.
    pub(super) protocol: Protocol,
    /// The database that SELECT chose.
    pub(super) database: u32,
    /// The user that the client is.
    pub(super) user: Arc<User>,
    /// Whether the client gave a password, or none was needed when it connected.
    pub(super) is_authenticated: bool,
    /// The client's subscriptions.
    pub(super) subscriptions: Subscriptions,
    /// Whether commands are answered.
    pub(super) reply_mode: ReplyMode,
    /// Whether the connection ends once the replies so far are written.
    pub(super) is_closing: bool,
    /// The commands since MULTI.
    pub(super) transaction: Option<OpenTransaction>,
    /// The watched keys.
    pub(super) watch: WatchState,
    /// The current command runs within EXEC and must not wait.
    pub(super) is_in_exec: bool,
    /// Time that the current command has waited. It does not count as its run time.
    pub(super) waited: Duration,
    /// How it tracks keys, if it does.
    pub(super) tracking: Option<TrackingMode>,
    /// The memory that its prefixes take.
    pub(super) prefix_bytes: usize,
    /// How far another server has proved that it shares the store.
    pub(super) link: LinkStage,
    /// Whether CLIENT CACHING came right before the current command or transaction.
    pub(super) is_caching: bool,
}

impl Session {
    /// The state of a new connection.
    pub(super) fn new(client: Arc<ClientRecord>, face: Face) -> Self {
        let user = client.user();
        let is_authenticated = user.definition().admits_all();
        Self {
            client,
            face,
            user,
            protocol: Protocol::Resp2,
            database: 0,
            is_authenticated,
            subscriptions: Subscriptions::default(),
            reply_mode: ReplyMode::On,
            is_closing: false,
            transaction: None,
            watch: WatchState::default(),
            is_in_exec: false,
            waited: Duration::ZERO,
            tracking: None,
            prefix_bytes: 0,
            link: LinkStage::Unproven,
            is_caching: false,
        }
    }

    /// Whether the client talks to a Redis Sentinel.
    pub(super) fn is_on_sentinel(&self) -> bool {
        matches!(self.face, Face::Sentinel { .. })
    }

    /// Whether the client talks to a node of a Redis Cluster.
    pub(super) fn is_on_cluster(&self) -> bool {
        matches!(self.face, Face::Cluster { .. })
    }

    /// Whether the client wants ports for TLS, on a port that shows servers.
    pub(super) fn speaks_tls(&self) -> bool {
        match self.face {
            Face::Data => false,
            Face::Sentinel { speaks_tls } | Face::Cluster { speaks_tls } => speaks_tls,
        }
    }

    /// Whether the client may send commands that need authentication: it has authenticated, or no client
    /// must.
    pub(super) fn is_allowed(&self, users: &Users) -> bool {
        self.is_authenticated || !users.requires_authentication()
    }

    /// Changes the client's user.
    pub(super) fn set_user(&mut self, user: Arc<User>, is_authenticated: bool) {
        self.client.set_user(Arc::clone(&user));
        self.user = user;
        self.is_authenticated = is_authenticated;
    }

    /// Whether the client may only send commands for subscribers: it has subscriptions, and its
    /// protocol cannot tell messages from replies.
    pub(super) fn is_confined(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscriptions.is_empty()
    }

    /// Whether the client may get messages that are not replies.
    pub(super) fn gets_messages(&self) -> bool {
        self.is_listener() || self.client.gets_invalidations()
    }

    /// Whether the output limit of subscribers applies to the client: it has subscriptions or monitors.
    pub(super) fn is_listener(&self) -> bool {
        !self.subscriptions.is_empty() || self.client.is_monitor()
    }

    /// The memory that it takes, apart from the commands since MULTI.
    pub(super) fn held_bytes(&self) -> usize {
        let prefixes = match self.tracking {
            Some(_) => self.prefix_bytes,
            None => 0,
        };
        self.subscriptions.held_bytes()
            + self.watch.held_bytes()
            + prefixes
            + self.client.attribute_bytes()
    }

    /// The origin of its commands: the client, whether it tracks what they read, and whether other servers may run them.
    pub(super) fn origin(&self) -> Origin {
        let tracking = self.tracking;
        Origin {
            client: self.client.id,
            lacks_named_keys: false,
            repeats: false,
            tracks: tracking.is_some_and(|mode| mode.remembers(self.is_caching)),
            forwarded_as: (tracking.is_none() && !self.gets_messages()).then_some(self.protocol),
        }
    }

    /// Ends the effect of CLIENT CACHING, which lasts for one command or transaction, unless a
    /// transaction is open.
    pub(super) fn end_caching(&mut self) {
        if self.transaction.is_none() {
            self.is_caching = false;
        }
    }

    /// Forgets the commands since MULTI, and the watched keys.
    pub(super) fn discard(&mut self, watchers: &Watchers) {
        self.transaction = None;
        self.client.details().queued_commands = None;
        self.unwatch(watchers);
    }

    /// Stops watching keys. Returns what was watched.
    pub(super) fn unwatch(&mut self, watchers: &Watchers) -> (Vec<WatchedKey>, Touched) {
        {
            let mut details = self.client.details();
            (details.watched, details.watched_keys) = (None, 0);
        }
        self.watch.end(watchers)
    }

    /// Shows in CLIENT LIST that the client watches keys.
    pub(super) fn note_watching(&self) {
        let mut details = self.client.details();
        details.watched = Some(self.watch.touched());
        details.watched_keys = self.watch.len();
    }

    /// After EXEC: applies a CLIENT REPLY SKIP among its commands to the next command.
    pub(super) fn skip_next(&mut self) {
        if self.reply_mode == ReplyMode::SkipNext {
            self.reply_mode = ReplyMode::Skip;
        }
    }

    /// Whether the current command is answered. Advances SKIP.
    pub(super) fn take_reply_mode(&mut self) -> bool {
        match self.reply_mode {
            ReplyMode::On => true,
            ReplyMode::Off => false,
            ReplyMode::SkipNext => {
                self.reply_mode = ReplyMode::Skip;
                false
            }
            ReplyMode::Skip => {
                self.reply_mode = ReplyMode::On;
                false
            }
        }
    }
}

/// Approximate memory of a watched key beyond its name, here and in the table of all watched keys.
const WATCHED_KEY_BYTES: usize = 300;

/// The executor of a command between MULTI and EXEC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
    /// The executor.
    Data,
    /// The connection, since it needs no data.
    Pure,
    /// The server.
    Connection(ConnectionCommand),
}

/// A command between MULTI and EXEC.
pub(super) struct TransactionCommand {
    /// Its executor.
    pub(super) kind: CommandKind,
    /// Its row, or that of its subcommand.
    pub(super) row: &'static Row,
    /// Its arguments, the command's name first.
    pub(super) arguments: Vec<Bytes>,
    /// The error line if EXEC does not run it.
    pub(super) refusal: Option<String>,
}

/// The commands of a client since MULTI.
#[derive(Default)]
pub(super) struct OpenTransaction {
    /// The commands.
    pub(super) commands: Vec<TransactionCommand>,
    /// A command was refused, so EXEC will be refused.
    pub(super) is_aborted: bool,
    bytes: usize,
}

impl OpenTransaction {
    /// Queues a command. If there are too many, returns false and aborts the transaction.
    pub(super) fn queue(&mut self, command: TransactionCommand, held_bytes: usize) -> bool {
        let held_bytes = held_bytes.saturating_add(size_of::<TransactionCommand>());
        self.bytes = self.bytes.saturating_add(held_bytes);
        let has_room = self.commands.len() < TRANSACTION_COMMANDS_MAX
            && self.bytes <= TRANSACTION_QUEUE_BYTES_MAX;
        if has_room {
            // EXEC will run none of them, so they are not stored.
            if !self.is_aborted {
                self.commands.push(command);
            }
        } else {
            self.abort();
        }
        has_room
    }

    /// Bytes that the commands take.
    pub(super) fn held_bytes(&self) -> usize {
        match self.commands.is_empty() {
            true => 0,
            false => self.bytes,
        }
    }

    /// Makes EXEC fail.
    pub(super) fn abort(&mut self) {
        self.is_aborted = true;
        self.commands = Vec::new();
    }
}

/// The keys that a client watches.
#[derive(Debug, Default)]
pub(super) struct WatchState {
    keys: Vec<WatchedKey>,
    known: HashSet<ClientKey>,
    touched: Touched,
    name_bytes: usize,
}

impl WatchState {
    /// The number of watched keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The memory that they take.
    pub(super) fn held_bytes(&self) -> usize {
        self.name_bytes + self.known.len() * WATCHED_KEY_BYTES
    }

    /// Whether this server has seen one of the keys change.
    pub(super) fn touched(&self) -> Touched {
        Arc::clone(&self.touched)
    }

    /// Begins to record changes of keys. Returns the keys that were not watched before.
    pub(super) fn begin(
        &mut self,
        database: u32,
        keys: &[Bytes],
        watchers: &Watchers,
    ) -> Vec<ClientKey> {
        let mut new: Vec<ClientKey> = Vec::new();
        for key in keys {
            let key = ClientKey {
                database,
                // Copied, because the argument may keep a whole request in memory.
                key: Bytes::copy_from_slice(key),
            };
            if self.known.insert(key.clone()) {
                self.name_bytes += key.key.len();
                watchers.watch(key.clone(), &self.touched);
                new.push(key);
            }
        }
        new
    }

    /// Adds the fingerprints of keys that [`Self::begin`] returned.
    pub(super) fn add(&mut self, keys: impl IntoIterator<Item = WatchedKey>) {
        self.keys.extend(keys);
    }

    /// Stops watching. Returns what was watched.
    pub(super) fn end(&mut self, watchers: &Watchers) -> (Vec<WatchedKey>, Touched) {
        let keys = std::mem::take(&mut self.keys);
        let touched = std::mem::take(&mut self.touched);
        self.known = HashSet::new();
        self.name_bytes = 0;
        if !keys.is_empty() {
            watchers.forget(keys.iter().map(|watched| watched.key.clone()), &touched);
        }
        (keys, touched)
    }

    /// Forgets keys whose fingerprints could not be read.
    pub(super) fn give_up(&mut self, keys: Vec<ClientKey>, watchers: &Watchers) {
        for key in &keys {
            self.known.remove(key);
            self.name_bytes -= key.key.len();
        }
        watchers.forget(keys, &self.touched);
    }
}
