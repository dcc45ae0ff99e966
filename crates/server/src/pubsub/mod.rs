//! Publish and subscribe: the subscriptions of this server, and the delivery of messages.
//!
//! A publish puts the message into the mailbox of each subscriber and waits for none. A connection
//! moves the messages of its mailbox to its output when it is idle, and before and after its commands.
//! So a client sees messages in the order in which they were published.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::clients::{ClientRecord, Frame, Scope, Subscriptions};
use super::delivery::Delivery;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};

mod table;

#[cfg(test)]
mod tests;

use table::Table;

/// All subscriptions of this server.
pub(super) struct PubSub {
    table: RwLock<Table>,
    delivery: Arc<Delivery>,
}

impl PubSub {
    /// Without subscriptions.
    pub(super) fn new(delivery: Arc<Delivery>) -> Self {
        Self {
            table: RwLock::default(),
            delivery,
        }
    }

    /// Subscribes a client. Returns the number of its subscriptions as its reply gives it: channels and
    /// patterns count together.
    pub(super) fn subscribe(
        &self,
        client: &Arc<ClientRecord>,
        subscriptions: &mut Subscriptions,
        scope: Scope,
        name: &[u8],
    ) -> usize {
        if !subscriptions.names(scope).contains(name) {
            let name = self.write().insert(scope, name, client);
            subscriptions.insert(scope, name);
            client.show_subscriptions(subscriptions);
        }
        subscriptions.count(scope)
    }

    /// Ends a client's subscription if there is one. Returns the same as [`Self::subscribe`].
    pub(super) fn unsubscribe(
        &self,
        client: &Arc<ClientRecord>,
        subscriptions: &mut Subscriptions,
        scope: Scope,
        name: &[u8],
    ) -> usize {
        if subscriptions.remove(scope, name) {
            self.write().remove(scope, name, client);
            client.show_subscriptions(subscriptions);
        }
        subscriptions.count(scope)
    }

    /// Ends all of a client's subscriptions.
    pub(super) fn unsubscribe_all(
        &self,
        client: &Arc<ClientRecord>,
        subscriptions: &mut Subscriptions,
    ) {
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
        client.show_subscriptions(subscriptions);
    }

    /// Disconnects the subscribers for which `loses` says so of a name that they are subscribed to.
    pub(super) fn disconnect(&self, loses: impl Fn(Scope, &[u8], &ClientRecord) -> bool) {
        for (scope, name, clients) in self.read().all() {
            for client in clients.iter().filter(|client| loses(scope, name, client)) {
                client.kill();
            }
        }
    }

    /// The channels that have subscribers and match a pattern.
    pub(super) fn channels(&self, kind: ChannelKind, pattern: Option<&[u8]>) -> Vec<Bytes> {
        self.read().channels(kind, pattern)
    }

    /// The number of clients that are subscribed to a channel, not counting patterns.
    pub(super) fn channel_subscribers(&self, kind: ChannelKind, channel: &[u8]) -> usize {
        self.read().subscribers(kind, channel).len()
    }

    /// The number of channels that have subscribers.
    pub(super) fn channel_count(&self, kind: ChannelKind) -> usize {
        self.read().channel_count(kind)
    }

    /// The number of patterns that have subscribers.
    pub(super) fn pattern_count(&self) -> usize {
        self.read().pattern_count()
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
            let frame = Frame::message(message, self.delivery.memory());
            for client in clients {
                self.delivery.push(client, &frame);
            }
        }
        for (pattern, clients) in table.matching(message.kind, &message.channel) {
            let frame = Frame::pattern_message(pattern, message, self.delivery.memory());
            for client in clients {
                self.delivery.push(client, &frame);
            }
        }
    }
}
