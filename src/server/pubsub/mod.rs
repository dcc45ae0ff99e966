//! Publish and subscribe: who is subscribed to what, and what waits for them.
//!
//! A publish puts the message into the mailbox of each subscriber ([`mailbox`]) and waits for
//! none; a connection empties its mailbox into its output when it has nothing else to do, and
//! before and after its commands, so that a client sees what was published in order.

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::{PoisonError, atomic::Ordering};

use bytes::Bytes;

use super::buffers::BufferMemory;
use super::clients::{ClientRecord, ClientRegistry};
use super::connection_commands::describe_client;
use super::disconnections::Disconnections;
use crate::clock::Clock;
use crate::config::RuntimeConfig;
use crate::types::signals::{ChannelKind, Message, Subscribers};

pub mod mailbox;
pub mod subscriptions;
mod table;

#[cfg(test)]
mod tests;

pub use mailbox::Mailbox;
pub use subscriptions::{Scope, Subscriptions};

use mailbox::{Frame, Pushed};
use table::Table;

/// Who is subscribed to what on this server.
pub struct PubSub {
    table: RwLock<Table>,
    config: Arc<RuntimeConfig>,
    clock: Arc<dyn Clock>,
    memory: Arc<BufferMemory>,
    disconnections: Arc<Disconnections>,
}

impl PubSub {
    /// Nobody is subscribed to anything. Messages that wait count in `memory`.
    pub fn new(
        config: Arc<RuntimeConfig>,
        clock: Arc<dyn Clock>,
        memory: Arc<BufferMemory>,
        disconnections: Arc<Disconnections>,
    ) -> Self {
        Self {
            table: RwLock::default(),
            config,
            clock,
            memory,
            disconnections,
        }
    }

    /// Subscribes a client, and answers to how many names of this kind it is subscribed, as its
    /// reply tells it: channels and patterns count together.
    pub fn subscribe(
        &self,
        client: &Arc<ClientRecord>,
        subscriptions: &mut Subscriptions,
        scope: Scope,
        name: &[u8],
    ) -> usize {
        // A copy: the argument may keep a whole request in memory.
        let name = Bytes::copy_from_slice(name);
        if subscriptions.insert(scope, name.clone()) {
            self.write().insert(scope, name, client);
            subscriptions.show(client);
        }
        subscriptions.count(scope)
    }

    /// Ends a client's subscription if there is one, and answers as [`Self::subscribe`].
    pub fn unsubscribe(
        &self,
        client: &Arc<ClientRecord>,
        subscriptions: &mut Subscriptions,
        scope: Scope,
        name: &[u8],
    ) -> usize {
        if subscriptions.remove(scope, name) {
            self.write().remove(scope, name, client);
            subscriptions.show(client);
        }
        subscriptions.count(scope)
    }

    /// Ends all of a client's subscriptions.
    pub fn unsubscribe_all(&self, client: &Arc<ClientRecord>, subscriptions: &mut Subscriptions) {
        if subscriptions.is_empty() {
            return;
        }
        let mut table = self.write();
        for scope in [Scope::Channel, Scope::Pattern, Scope::Shard] {
            for name in subscriptions.take(scope) {
                table.remove(scope, &name, client);
            }
        }
        drop(table);
        subscriptions.show(client);
    }

    /// The channels that have subscribers and match a pattern.
    pub fn channels(&self, kind: ChannelKind, pattern: Option<&[u8]>) -> Vec<Bytes> {
        self.read().channels(kind, pattern)
    }

    /// How many clients are subscribed to a channel, not counting patterns.
    pub fn channel_subscribers(&self, kind: ChannelKind, channel: &[u8]) -> usize {
        self.read().subscribers(kind, channel).len()
    }

    /// How many different channels have subscribers.
    pub fn channel_count(&self, kind: ChannelKind) -> usize {
        self.read().channel_count(kind)
    }

    /// How many different patterns have subscribers.
    pub fn pattern_count(&self) -> usize {
        self.read().pattern_count()
    }

    /// Disconnects clients for which more than the soft limit has waited for too long.
    pub fn close_overdue(&self, clients: &ClientRegistry) {
        let limit = self.config.subscriber_limit();
        if limit.soft_bytes == 0 || self.read().is_empty() {
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
            .output_buffer(|| describe_client(client, now_ms));
        client.kill();
    }

    fn push(&self, client: &ClientRecord, frame: &Frame) {
        let limit = self.config.subscriber_limit();
        let pushed = client
            .mailbox
            .push(frame.clone(), &limit, self.clock.now_ms());
        if pushed == Pushed::Overflowed {
            self.close(client);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscribers for PubSub {
    fn count(&self, kind: ChannelKind, channel: &[u8]) -> usize {
        let table = self.read();
        let by_pattern: usize = table
            .matching(kind, channel)
            .map(|(_, clients)| clients.len())
            .sum();
        table.subscribers(kind, channel).len() + by_pattern
    }

    fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    fn deliver(&self, message: &Message) {
        let table = self.read();
        let clients = table.subscribers(message.kind, &message.channel);
        if !clients.is_empty() {
            let frame = Frame::message(message, &self.memory);
            for client in clients {
                self.push(client, &frame);
            }
        }
        for (pattern, clients) in table.matching(message.kind, &message.channel) {
            let frame = Frame::pattern_message(pattern, message, &self.memory);
            for client in clients {
                self.push(client, &frame);
            }
        }
    }
}

impl ClientRecord {
    /// To how many names of this kind the client is subscribed.
    pub fn subscribed(&self, scope: Scope) -> usize {
        self.subscribed
            .get(scope as usize)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Whether the client is subscribed to anything: Redis's class `pubsub`.
    pub fn is_subscriber(&self) -> bool {
        self.subscribed
            .iter()
            .any(|count| count.load(Ordering::Relaxed) != 0)
    }
}
