//! The state of one connection.

use std::sync::Arc;

use crate::wire::encode::Protocol;

use super::ServerState;
use super::clients::ClientRecord;
use super::pubsub::Subscriptions;
use super::transaction::{OpenTransaction, WatchState};
use crate::executor::WatchedKey;
use crate::executor::watchers::Touched;

/// CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// Every command is answered.
    #[default]
    On,
    /// None is.
    Off,
    /// The command after this one is not answered, then all are again.
    SkipNext,
    /// This one is not answered.
    Skip,
}

/// The state of one connection that its commands read and change.
pub struct Session {
    /// Its record in the registry.
    pub client: Arc<ClientRecord>,
    /// RESP2, or RESP3 after HELLO 3.
    pub protocol: Protocol,
    /// The database that SELECT chose.
    pub database: u32,
    /// Whether a password was given, or none is needed.
    pub is_authenticated: bool,
    /// What the client is subscribed to.
    pub subscriptions: Subscriptions,
    /// Whether commands are answered.
    pub reply_mode: ReplyMode,
    /// The connection ends when the replies so far are written.
    pub is_closing: bool,
    /// The commands since MULTI.
    pub transaction: Option<OpenTransaction>,
    /// The keys that EXEC depends on.
    pub watch: WatchState,
    /// The command that is carried out is one of EXEC's, and must not wait for anything.
    pub is_in_exec: bool,
}

impl Session {
    /// The state of a new connection.
    pub fn new(client: Arc<ClientRecord>, is_authenticated: bool) -> Self {
        Self {
            client,
            protocol: Protocol::Resp2,
            database: 0,
            is_authenticated,
            subscriptions: Subscriptions::default(),
            reply_mode: ReplyMode::On,
            is_closing: false,
            transaction: None,
            watch: WatchState::default(),
            is_in_exec: false,
        }
    }

    /// Whether the client may only do what concerns its subscriptions: it has some, and its
    /// protocol cannot tell messages from replies.
    pub fn is_confined(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscriptions.is_empty()
    }

    /// Forgets the commands since MULTI, and the watched keys.
    pub fn discard(&mut self, state: &ServerState) {
        self.transaction = None;
        self.client.details().queued_commands = None;
        self.unwatch(state);
    }

    /// Ends the watching of keys, and answers what was watched.
    pub fn unwatch(&mut self, state: &ServerState) -> (Vec<WatchedKey>, Touched) {
        self.client.details().watched = None;
        self.watch.end(state.executor.watchers())
    }

    /// Tells other clients (CLIENT LIST) that keys are watched.
    pub fn note_watching(&self) {
        self.client.details().watched = Some(self.watch.touched());
    }

    /// Lets a CLIENT REPLY SKIP that was among the commands of an EXEC hold from the next command on.
    pub fn skip_next(&mut self) {
        if self.reply_mode == ReplyMode::SkipNext {
            self.reply_mode = ReplyMode::Skip;
        }
    }

    /// Whether the command that comes next is answered; counts a SKIP down.
    pub fn take_reply_mode(&mut self) -> bool {
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
