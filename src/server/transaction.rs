//! A connection's MULTI and WATCH.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::commands::Row;
use crate::commands::row::ConnectionCommand;
use crate::executor::WatchedKey;
use crate::executor::watchers::{Touched, Watchers};
use crate::limits::{TRANSACTION_COMMANDS_MAX, TRANSACTION_QUEUE_BYTES_MAX};
use crate::types::key::ClientKey;

/// Who carries a queued command out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuedKind {
    /// The executor.
    Data,
    /// The server.
    Connection(ConnectionCommand),
}

/// A command between MULTI and EXEC.
pub struct QueuedCommand {
    /// Who carries it out.
    pub kind: QueuedKind,
    /// Its row; of a subcommand that one's.
    pub row: &'static Row,
    /// Its arguments, the command's name first.
    pub arguments: Vec<Bytes>,
}

/// What a client has queued since MULTI.
#[derive(Default)]
pub struct OpenTransaction {
    /// The commands.
    pub commands: Vec<QueuedCommand>,
    /// A command was refused, so EXEC will be.
    pub is_spoilt: bool,
    bytes: usize,
}

impl OpenTransaction {
    /// Queues a command. False, and the transaction is spoilt, where there are too many.
    pub fn queue(&mut self, command: QueuedCommand, held_bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(held_bytes);
        let has_room = self.commands.len() < TRANSACTION_COMMANDS_MAX
            && self.bytes <= TRANSACTION_QUEUE_BYTES_MAX;
        if has_room {
            // What is refused in the end need not be kept until then.
            if !self.is_spoilt {
                self.commands.push(command);
            }
        } else {
            self.spoil();
        }
        has_room
    }

    /// Bytes that the commands take.
    pub fn held_bytes(&self) -> usize {
        match self.commands.is_empty() {
            true => 0,
            false => self.bytes,
        }
    }

    /// Has EXEC refused.
    pub fn spoil(&mut self) {
        self.is_spoilt = true;
        self.commands = Vec::new();
    }
}

/// The keys that a client watches.
#[derive(Debug, Default)]
pub struct WatchState {
    keys: Vec<WatchedKey>,
    known: HashSet<ClientKey>,
    touched: Touched,
}

impl WatchState {
    /// How many keys are watched.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether this server has seen one of the keys change.
    pub fn touched(&self) -> Touched {
        Arc::clone(&self.touched)
    }

    /// Begins to note changes of keys, and answers those that were not watched already.
    pub fn begin(&mut self, database: u32, keys: &[Bytes], watchers: &Watchers) -> Vec<ClientKey> {
        let mut new: Vec<ClientKey> = Vec::new();
        for key in keys {
            let key = ClientKey {
                database,
                key: key.clone(),
            };
            if self.known.insert(key.clone()) {
                watchers.watch(key.clone(), &self.touched);
                new.push(key);
            }
        }
        new
    }

    /// Adds what the store said of keys that [`Self::begin`] answered.
    pub fn add(&mut self, keys: impl IntoIterator<Item = WatchedKey>) {
        self.keys.extend(keys);
    }

    /// Ends the watching, and answers what was watched.
    pub fn end(&mut self, watchers: &Watchers) -> (Vec<WatchedKey>, Touched) {
        let keys = std::mem::take(&mut self.keys);
        let touched = std::mem::take(&mut self.touched);
        self.known.clear();
        if !keys.is_empty() {
            watchers.forget(keys.iter().map(|watched| watched.key.clone()), &touched);
        }
        (keys, touched)
    }

    /// Forgets keys for which [`Self::add`] will not be called.
    pub fn give_up(&mut self, keys: Vec<ClientKey>, watchers: &Watchers) {
        for key in &keys {
            self.known.remove(key);
        }
        watchers.forget(keys, &self.touched);
    }
}
