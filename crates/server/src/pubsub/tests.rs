//! Tests of who hears what.

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
        let address = crate::endpoint::Endpoint::Tcp(([127, 0, 0, 1], 1).into());
        let client = self
            .clients
            .register(
                address.clone(),
                address,
                0,
                0,
                100,
                &quoin_acl::User::for_test(),
            )
            .unwrap();
        (client, Subscriptions::default())
    }

    fn publish(&self, kind: ChannelKind, channel: &'static str) {
        self.pubsub.deliver(&Message {
            kind,
            channel: Bytes::from(channel),
            payload: Bytes::from("m"),
        });
    }
}

fn heard(client: &ClientRecord) -> String {
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
    assert_eq!(heard(&client), "message news m pmessage n* news m");
    assert_eq!(scene.pubsub.count(ChannelKind::Shard, b"news"), 1);
    scene.publish(ChannelKind::Shard, "news");
    assert_eq!(heard(&client), "smessage news m");
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
