//! Publish and subscribe: the subscriptions of this server, and the delivery of messages.
//!
//! A publish puts the message into the mailbox of each subscriber and does not wait. A connection moves
//! the messages of its mailbox to its output when it is idle, and before and after its commands. So a
//! client sees messages in the order in which they were published.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use crate::clients::{ClientRecord, Delivery, Frame, Scope, Subscriptions};
use quoin_base::glob;
use quoin_base::glob::{Case, Glob};
use quoin_base::sparse::Sparse;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};

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

    /// Disconnects each subscriber with a subscription to a name for which `loses` is true.
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

/// Sorted by number, for binary search.
type Clients = Vec<Arc<ClientRecord>>;

/// All subscriptions of a server. A name without subscribers is removed.
#[derive(Default)]
pub(super) struct Table {
    channels: HashMap<Bytes, Clients>,
    shards: HashMap<Bytes, Clients>,
    patterns: BTreeMap<Bytes, Clients>,
}

impl Table {
    /// Returns the stored name, which all subscribers share.
    pub(super) fn insert(
        &mut self,
        scope: Scope,
        name: &[u8],
        client: &Arc<ClientRecord>,
    ) -> Bytes {
        let known = match scope {
            Scope::Channel => self.channels.get_key_value(name),
            Scope::Shard => self.shards.get_key_value(name),
            Scope::Pattern => self.patterns.get_key_value(name),
        };
        // Copied, because the argument may keep a whole request in memory.
        let kept = known.map_or_else(|| Bytes::copy_from_slice(name), |(name, _)| name.clone());
        let name = kept.clone();
        let clients = match scope {
            Scope::Channel => self.channels.entry(name).or_default(),
            Scope::Shard => self.shards.entry(name).or_default(),
            Scope::Pattern => self.patterns.entry(name).or_default(),
        };
        if let Err(at) = clients.binary_search_by_key(&client.id, |other| other.id) {
            if clients.is_empty() {
                // Most channels have one subscriber.
                clients.reserve_exact(1);
            }
            clients.insert(at, Arc::clone(client));
        }
        kept
    }

    pub(super) fn remove(&mut self, scope: Scope, name: &[u8], client: &ClientRecord) {
        match scope {
            Scope::Channel => remove_from_channels(&mut self.channels, name, client),
            Scope::Shard => remove_from_channels(&mut self.shards, name, client),
            Scope::Pattern => {
                if let Some(clients) = self.patterns.get_mut(name)
                    && take_out(clients, client)
                {
                    self.patterns.remove(name);
                }
            }
        }
    }

    fn by_channel(&self, kind: ChannelKind) -> &HashMap<Bytes, Clients> {
        match kind {
            ChannelKind::Global => &self.channels,
            ChannelKind::Shard => &self.shards,
        }
    }

    pub(super) fn subscribers(&self, kind: ChannelKind, channel: &[u8]) -> &[Arc<ClientRecord>] {
        self.by_channel(kind)
            .get(channel)
            .map_or(&[], Vec::as_slice)
    }

    /// The patterns that a channel matches, with their subscribers. Shard channels match none.
    pub(super) fn matching<'t>(
        &'t self,
        kind: ChannelKind,
        channel: &'t [u8],
    ) -> impl Iterator<Item = (&'t Bytes, &'t [Arc<ClientRecord>])> {
        let patterns = (kind == ChannelKind::Global).then_some(&self.patterns);
        patterns
            .into_iter()
            .flatten()
            .filter(move |(pattern, _)| glob::matches(pattern, channel, Case::Sensitive))
            .map(|(pattern, clients)| (pattern, clients.as_slice()))
    }

    /// All names with their subscribers.
    pub(super) fn all(&self) -> impl Iterator<Item = (Scope, &Bytes, &[Arc<ClientRecord>])> {
        let channels = self.channels.iter().map(|one| (Scope::Channel, one));
        let shards = self.shards.iter().map(|one| (Scope::Shard, one));
        let patterns = self.patterns.iter().map(|one| (Scope::Pattern, one));
        let all = channels.chain(shards).chain(patterns);
        all.map(|(scope, (name, clients))| (scope, name, clients.as_slice()))
    }

    pub(super) fn channels(&self, kind: ChannelKind, pattern: Option<&[u8]>) -> Vec<Bytes> {
        let pattern = pattern.map(|pattern| Glob::new(pattern, Case::Sensitive));
        let is_asked_for = |channel: &&Bytes| {
            let pattern = pattern.as_ref();
            pattern.is_none_or(|pattern| pattern.matches(channel))
        };
        self.by_channel(kind)
            .keys()
            .filter(is_asked_for)
            .cloned()
            .collect()
    }

    pub(super) fn channel_count(&self, kind: ChannelKind) -> usize {
        self.by_channel(kind).len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.shards.is_empty() && self.patterns.is_empty()
    }

    pub(super) fn pattern_count(&self) -> usize {
        self.patterns.len()
    }
}

fn remove_from_channels(
    channels: &mut HashMap<Bytes, Clients>,
    name: &[u8],
    client: &ClientRecord,
) {
    if let Some(clients) = channels.get_mut(name)
        && take_out(clients, client)
    {
        channels.remove(name);
        channels.shrink_if_sparse();
    }
}

/// Removes a client. Returns whether no client is left.
fn take_out(clients: &mut Clients, client: &ClientRecord) -> bool {
    if let Ok(at) = clients.binary_search_by_key(&client.id, |other| other.id) {
        clients.remove(at);
    }
    clients.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientRegistry;
    use quoin_base::clock::ManualClock;
    use quoin_config::{LoadedSettings, RuntimeConfig};
    use quoin_resp::wire::encode::Protocol;

    struct Scene {
        pubsub: PubSub,
        clients: ClientRegistry,
    }

    impl Scene {
        fn new() -> Self {
            let config = Arc::new(RuntimeConfig::new(LoadedSettings::defaults()));
            let clock = Arc::new(ManualClock::at(0));
            let clients = ClientRegistry::default();
            let memory = Arc::clone(clients.memory());
            let delivery = Delivery::new(config, clock, memory, Arc::default());
            Self {
                pubsub: PubSub::new(Arc::new(delivery)),
                clients,
            }
        }

        fn client(&self) -> (Arc<ClientRecord>, Subscriptions) {
            (self.clients.client_for_test(), Subscriptions::default())
        }

        fn publish(&self, kind: ChannelKind, channel: &'static str) {
            self.pubsub.deliver(&Message {
                kind,
                channel: Bytes::from(channel),
                payload: Bytes::from("m"),
            });
        }
    }

    fn received(client: &ClientRecord) -> String {
        let mut output = bytes::BytesMut::new();
        let mailbox = &client.mailbox;
        mailbox.take(&mut output, (Protocol::Resp2, true), usize::MAX, usize::MAX);
        let text = String::from_utf8(output.to_vec()).unwrap();
        let words = text
            .split("\r\n")
            .filter(|word| !word.starts_with(['*', '$']));
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    #[test]
    fn a_message_reaches_subscribers_of_the_channel_and_then_of_matching_patterns() {
        let scene = Scene::new();
        let (client, mut subscriptions) = scene.client();
        for (scope, name) in [
            (Scope::Pattern, "n*"),
            (Scope::Channel, "news"),
            (Scope::Pattern, "x*"),
            (Scope::Shard, "news"),
        ] {
            scene
                .pubsub
                .subscribe(&client, &mut subscriptions, scope, name.as_bytes());
        }
        assert_eq!(scene.pubsub.count(ChannelKind::Global, b"news"), 2);
        scene.publish(ChannelKind::Global, "news");
        assert_eq!(received(&client), "message news m pmessage n* news m");
        assert_eq!(scene.pubsub.count(ChannelKind::Shard, b"news"), 1);
        scene.publish(ChannelKind::Shard, "news");
        assert_eq!(received(&client), "smessage news m");
    }

    #[test]
    fn counts_are_of_channels_and_patterns_together_and_of_shard_channels_apart() {
        let scene = Scene::new();
        let (client, mut all) = scene.client();
        let mut add = |scope, name: &str| {
            let pubsub = &scene.pubsub;
            pubsub.subscribe(&client, &mut all, scope, name.as_bytes())
        };
        assert_eq!(add(Scope::Channel, "a"), 1);
        assert_eq!(add(Scope::Channel, "a"), 1);
        assert_eq!(add(Scope::Pattern, "a"), 2);
        assert_eq!(add(Scope::Shard, "a"), 1);
        assert_eq!(client.subscribed(Scope::Channel), 1);
        assert!(client.is_subscriber());
        let left = scene
            .pubsub
            .unsubscribe(&client, &mut all, Scope::Channel, b"a");
        assert_eq!(left, 1);
        assert_eq!(scene.pubsub.channel_count(ChannelKind::Global), 0);
    }

    #[test]
    fn who_has_left_leaves_nothing_behind() {
        let scene = Scene::new();
        let (client, mut subscriptions) = scene.client();
        let (other, mut of_other) = scene.client();
        for scope in [Scope::Channel, Scope::Pattern, Scope::Shard] {
            let pubsub = &scene.pubsub;
            pubsub.subscribe(&client, &mut subscriptions, scope, b"a");
            pubsub.subscribe(&other, &mut of_other, scope, b"a");
        }
        scene.pubsub.unsubscribe_all(&client, &mut subscriptions);
        assert_eq!(scene.pubsub.count(ChannelKind::Global, b"a"), 2);
        assert!(!client.is_subscriber());
        scene.pubsub.unsubscribe_all(&other, &mut of_other);
        assert_eq!(scene.pubsub.channel_count(ChannelKind::Global), 0);
        assert_eq!(scene.pubsub.channel_count(ChannelKind::Shard), 0);
        assert_eq!(scene.pubsub.pattern_count(), 0);
    }

    #[test]
    fn who_does_not_read_is_disconnected_at_the_hard_limit() {
        let scene = Scene::new();
        let (client, mut subscriptions) = scene.client();
        let pubsub = &scene.pubsub;
        pubsub.subscribe(&client, &mut subscriptions, Scope::Channel, b"a");
        let payload = Bytes::from(vec![b'x'; 8 * 1024 * 1024]);
        for number in 0..4 {
            assert!(!client.is_killed(), "{number}");
            pubsub.deliver(&Message {
                kind: ChannelKind::Global,
                channel: Bytes::from("a"),
                payload: payload.clone(),
            });
        }
        assert!(client.is_killed());
        assert_eq!(client.mailbox.waiting(), (0, 0));
    }
}
