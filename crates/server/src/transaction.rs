//! A connection's MULTI and WATCH.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use quoin_base::limits::{TRANSACTION_COMMANDS_MAX, TRANSACTION_QUEUE_BYTES_MAX};
use quoin_data::command::row::ConnectionCommand;
use quoin_data::command::row::Row;
use quoin_data::keyspace::key::ClientKey;
use quoin_engine::WatchedKey;
use quoin_engine::watchers::{Touched, Watchers};

/// About what a watched key takes beyond the bytes of its name, here and in the table of all.
const WATCHED_KEY_BYTES: usize = 300;

/// What executes a command between MULTI and EXEC.
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
    /// What executes it.
    pub(super) kind: CommandKind,
    /// Its row, or that of its subcommand.
    pub(super) row: &'static Row,
    /// Its arguments, the command's name first.
    pub(super) arguments: Vec<Bytes>,
    /// Why EXEC does not run it, if that is so: the error line.
    pub(super) refusal: Option<String>,
}

/// What a client has queued since MULTI.
#[derive(Default)]
pub(super) struct OpenTransaction {
    /// The commands.
    pub(super) commands: Vec<TransactionCommand>,
    /// A command was refused, so EXEC will be.
    pub(super) is_aborted: bool,
    bytes: usize,
}

impl OpenTransaction {
    /// Queues a command. False, and the transaction is aborted, if there are too many.
    pub(super) fn queue(&mut self, command: TransactionCommand, held_bytes: usize) -> bool {
        let held_bytes = held_bytes.saturating_add(size_of::<TransactionCommand>());
        self.bytes = self.bytes.saturating_add(held_bytes);
        let has_room = self.commands.len() < TRANSACTION_COMMANDS_MAX
            && self.bytes <= TRANSACTION_QUEUE_BYTES_MAX;
        if has_room {
            // EXEC will run none of them, so they need not be kept.
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

    /// Begins to note changes of keys. Returns those that were not watched before.
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
                // A copy: the argument may keep a whole request in memory.
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

    /// Ends the watching. Returns what was watched.
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
