//! The state of one connection that its commands read and change.

use std::sync::Arc;
use std::time::Duration;

use quoin_resp::wire::encode::Protocol;

use super::clients::{ClientRecord, Subscriptions, TrackingMode};
use super::transaction::{OpenTransaction, WatchState};
use quoin_acl::{User, Users};
use quoin_data::unit::tracking::Origin;
use quoin_engine::WatchedKey;
use quoin_engine::watchers::{Touched, Watchers};

/// CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReplyMode {
    /// Every command is answered.
    #[default]
    On,
    /// No command is answered.
    Off,
    /// The next command is not answered, the one after it is.
    SkipNext,
    /// This command is not answered, the next one is.
    Skip,
}

/// The state of one connection that its commands read and change.
pub(super) struct Session {
    /// Its record in the registry.
    pub(super) client: Arc<ClientRecord>,
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
    /// The connection ends once the replies so far are written.
    pub(super) is_closing: bool,
    /// The commands since MULTI.
    pub(super) transaction: Option<OpenTransaction>,
    /// The watched keys.
    pub(super) watch: WatchState,
    /// The current command runs within EXEC, and must not wait for anything.
    pub(super) is_in_exec: bool,
    /// How long the current command has waited for others. It does not count as the time that it took.
    pub(super) waited: Duration,
    /// How it tracks keys, if it does.
    pub(super) tracking: Option<TrackingMode>,
    /// The memory that its prefixes take.
    pub(super) prefix_bytes: usize,
    /// CLIENT CACHING came right before the current command or transaction.
    pub(super) is_caching: bool,
}

impl Session {
    /// The state of a new connection.
    pub(super) fn new(client: Arc<ClientRecord>) -> Self {
        let user = client.user();
        let is_authenticated = user.definition().admits_all();
        Self {
            client,
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
            is_caching: false,
        }
    }

    /// Whether the client may send commands that need authentication: it has authenticated, or nobody
    /// has to.
    pub(super) fn is_allowed(&self, users: &Users) -> bool {
        self.is_authenticated || !users.requires_authentication()
    }

    /// Makes the client another user.
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

    /// Whether messages may come for the client that are no replies.
    pub(super) fn hears_messages(&self) -> bool {
        self.is_listener() || self.client.hears_invalidations()
    }

    /// Whether the client is mainly there to get messages: the limit of its output is that of
    /// subscribers.
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

    /// On whose behalf its commands run now.
    pub(super) fn origin(&self) -> Origin {
        let tracking = self.tracking;
        Origin {
            client: self.client.id,
            lacks_named_keys: false,
            tracks: tracking.is_some_and(|mode| mode.remembers(self.is_caching)),
        }
    }

    /// CLIENT CACHING concerns one command or transaction, which has ended unless one is open.
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

    /// Ends the watching of keys. Returns what was watched.
    pub(super) fn unwatch(&mut self, watchers: &Watchers) -> (Vec<WatchedKey>, Touched) {
        self.client.details().watched = None;
        self.watch.end(watchers)
    }

    /// Shows in CLIENT LIST that the client watches keys.
    pub(super) fn note_watching(&self) {
        self.client.details().watched = Some(self.watch.touched());
    }

    /// After EXEC: makes a CLIENT REPLY SKIP among its commands hold for the next command.
    pub(super) fn skip_next(&mut self) {
        if self.reply_mode == ReplyMode::SkipNext {
            self.reply_mode = ReplyMode::Skip;
        }
    }

    /// Whether the current command is answered. Moves a SKIP on.
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
