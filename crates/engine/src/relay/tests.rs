//! Two servers on one store.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::{Call, Executor, ExecutorOptions, Outcome, Wait, Waiter};
use quoin_base::clock::ManualClock;
use quoin_base::limits::TRACKED_NAMES_BYTES_MAX;
use quoin_base::random::SeededRandom;
use quoin_data::command::access::KeyLocks;
use quoin_data::command::call::Invocation;
use quoin_data::unit::host::Trackers;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};
use quoin_data::unit::startup;
use quoin_layout::Layout;
use quoin_resp::reply::Reply;
use quoin_store::faults::OptimisticStore;
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

/// A subscriber that records what is published.
#[derive(Default)]
struct Listener {
    is_away: AtomicBool,
    received: Mutex<Vec<String>>,
    /// Where it checks for news before it receives a message.
    news: std::sync::OnceLock<Arc<Shared>>,
}

impl Subscribers for Listener {
    fn count(&self, _kind: ChannelKind, _channel: &[u8]) -> usize {
        1
    }

    fn deliver(&self, message: &Message) {
        let text = format!(
            "{:?} {}",
            message.kind,
            String::from_utf8_lossy(&message.payload)
        );
        self.received.lock().unwrap().push(text);
        if let Some(shared) = self.news.get() {
            shared.relay.has_news.store(false, Ordering::Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        self.is_away.load(Ordering::SeqCst)
    }
}

impl Listener {
    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    async fn wait_for(&self, count: usize) -> Vec<String> {
        for _ in 0..1000 {
            if self.received().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.received()
    }
}

struct Server {
    executor: Executor,
    listener: Arc<Listener>,
    /// Clients that track keys. None until [`Tracker::begin`].
    tracker: Arc<Tracker>,
}

impl Server {
    async fn start(store: &Arc<dyn Store>) -> Self {
        let clock = Arc::new(ManualClock::at(0));
        let random = Arc::new(SeededRandom::new(1));
        let environment = startup::prepare(&**store, Layout::new("test"), clock, random);
        let mut environment = environment.await.unwrap();
        let listener = Arc::new(Listener::default());
        let subscribers = Arc::clone(&listener) as Arc<dyn Subscribers>;
        environment.subscribers = Some(subscribers);
        let tracker = Arc::<Tracker>::default();
        tracker.is_away.store(true, Ordering::SeqCst);
        environment.trackers = Some(Arc::clone(&tracker) as Arc<dyn Trackers>);
        let options = ExecutorOptions::default();
        let executor = Executor::start(Arc::clone(store), environment, options);
        Self {
            executor: executor.unwrap(),
            listener,
            tracker,
        }
    }

    async fn set(&self, keys: &[&str]) {
        let pairs = keys
            .iter()
            .flat_map(|key| [key.to_string(), "1".to_owned()]);
        let words = std::iter::once("MSET".to_owned()).chain(pairs);
        let Ok(invocation) = Invocation::resolve(0, words.map(Bytes::from).collect()) else {
            panic!("MSET is no command");
        };
        let call = Call::command(invocation, true);
        let finished = self.executor.submit(vec![call]).await.unwrap();
        assert_eq!(finished.replies, [Reply::OK]);
    }

    /// Runs a command. If it blocks, the client waits until the returned value is dropped.
    async fn run(&self, line: &str) -> Option<Wait> {
        let words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
        let Ok(invocation) = Invocation::resolve(0, words.collect()) else {
            panic!("{line}");
        };
        let mut call = Call::command(invocation.clone(), true);
        let waits = invocation.row.waits;
        let spec = waits.and_then(|waits| waits(&invocation.arguments, 0).ok().unwrap());
        let wait =
            spec.map(|spec| Wait::new(self.executor.waiters(), Waiter::new(invocation, spec)));
        call.waiter = wait.as_ref().map(Wait::waiter);
        let finished = self.executor.submit(vec![call]).await.unwrap();
        finished.is_parked.then_some(wait).flatten()
    }

    async fn publish(&self, command: &str, payload: impl Into<Bytes>) {
        let arguments = vec![
            Bytes::from(command.to_owned()),
            Bytes::from("c"),
            payload.into(),
        ];
        let Ok(invocation) = Invocation::resolve(0, arguments) else {
            panic!("{command} is no command");
        };
        let call = Call::command(invocation, true);
        assert_eq!(call.access.locks, KeyLocks::Nothing);
        let finished = self.executor.submit(vec![call]).await.unwrap();
        let reply = finished.replies.into_iter().next().unwrap();
        assert_eq!(reply, Reply::Integer(1));
    }
}

fn on_a_cluster<F: Future<Output = ()>>(test: impl FnOnce(Arc<dyn Store>) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(OptimisticStore::new(store));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test(store));
}

#[test]
fn a_message_reaches_subscribers_of_all_servers_once_and_in_order() {
    on_a_cluster(|store| async move {
        let one = Server::start(&store).await;
        let two = Server::start(&store).await;
        two.publish("publish", "before").await;
        one.executor.begin_subscribing().await;
        two.executor.begin_subscribing().await;
        one.publish("publish", "a").await;
        one.publish("spublish", "b").await;
        one.publish("publish", "c").await;
        let expected = ["Global a", "Shard b", "Global c"];
        assert_eq!(one.listener.received(), expected);
        let received = two.listener.wait_for(4).await;
        assert_eq!(received[0], "Global before");
        assert_eq!(received[1..], expected);
        two.publish("publish", "d").await;
        assert_eq!(one.listener.wait_for(4).await[3], "Global d");
        assert_eq!(two.listener.received().len(), 5);
    });
}

#[test]
fn a_message_of_several_rows_arrives_whole() {
    on_a_cluster(|store| async move {
        let one = Server::start(&store).await;
        let two = Server::start(&store).await;
        two.executor.begin_subscribing().await;
        let payload = "x".repeat(8_000_000);
        one.publish("publish", payload.clone()).await;
        one.publish("publish", "end").await;
        let received = two.listener.wait_for(2).await;
        assert_eq!(received[0].len(), "Global ".len() + payload.len());
        assert_eq!(received[1], "Global end");
    });
}

#[test]
fn a_server_whose_subscribers_have_left_stops_following_the_log_and_begins_again() {
    on_a_cluster(|store| async move {
        let one = Server::start(&store).await;
        let two = Server::start(&store).await;
        two.executor.begin_subscribing().await;
        two.listener.is_away.store(true, Ordering::SeqCst);
        one.publish("publish", "a").await;
        let following = &two.executor.shared.relay.is_following;
        let mut changed = following.subscribe();
        let stopped = changed.wait_for(|follows| !follows);
        tokio::time::timeout(Duration::from_secs(30), stopped)
            .await
            .unwrap()
            .unwrap();
        one.publish("publish", "missed").await;
        let before = two.listener.received().len();
        two.listener.is_away.store(false, Ordering::SeqCst);
        two.executor.begin_subscribing().await;
        one.publish("publish", "b").await;
        let received = two.listener.wait_for(before + 1).await;
        assert_eq!(received[before..], ["Global b"]);
    });
}

async fn rows(store: &dyn Store) -> usize {
    let range = Layout::new("test").messages();
    let query = quoin_store::RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: 1000,
        reverse: false,
        isolation: quoin_store::Isolation::Snapshot,
    };
    let transaction = store.begin_read().unwrap();
    transaction.get_range(query).await.unwrap().len()
}

#[test]
fn a_server_that_starts_clears_what_one_that_was_killed_has_left() {
    on_a_cluster(|store| async move {
        let killed = Server::start(&store).await;
        killed.publish("publish", "a").await;
        let started = Server::start(&store).await;
        let mut relay = Relay::new(
            Arc::clone(&store),
            Arc::clone(started.executor.environment()),
            Arc::clone(&started.executor.shared),
        );
        for expected in [1, 0] {
            relay.clearing.next = Instant::now();
            relay.maintain_when_due().await;
            assert_eq!(rows(&*store).await, expected);
        }
    });
}

#[test]
fn the_log_is_cleared_up_to_where_it_was_an_interval_ago() {
    on_a_cluster(|store| async move {
        let one = Server::start(&store).await;
        let (environment, shared) = (one.executor.environment(), &one.executor.shared);
        let mut relay = Relay::new(
            Arc::clone(&store),
            Arc::clone(environment),
            Arc::clone(shared),
        );
        for expected in [1, 1, 0] {
            if expected == 1 {
                one.publish("publish", "a").await;
            }
            relay.clear().await.unwrap();
            assert_eq!(rows(&*store).await, expected);
        }
        assert_eq!(relay.clearing.last_seen, None);
        assert!(shared.relay.has_news.load(Ordering::Relaxed));
    });
}

#[test]
fn messages_stay_for_an_interval_however_long_the_store_takes_to_answer() {
    on_a_cluster(|store| async move {
        let one = Server::start(&store).await;
        one.publish("publish", "a").await;
        let mut relay = Relay::new(
            Arc::clone(&store),
            Arc::clone(one.executor.environment()),
            Arc::clone(&one.executor.shared),
        );
        relay.clearing.next = Instant::now();
        let mut clearing = Box::pin(relay.maintain_when_due());
        // The first read is pending on this kind of store.
        assert!(futures_util::poll!(&mut clearing).is_pending());
        std::thread::sleep(Duration::from_millis(20));
        let resumed = Instant::now();
        clearing.await;
        assert!(relay.clearing.last_seen.is_some());
        assert!(relay.clearing.next >= resumed + RELAY_CLEAR_INTERVAL);
    });
}

/// Clients that track keys. Records what is reported to them.
#[derive(Default)]
struct Tracker {
    is_away: AtomicBool,
    told: Mutex<Vec<Change>>,
}

impl Trackers for Tracker {
    fn is_any(&self) -> bool {
        !self.is_away.load(Ordering::SeqCst)
    }

    fn open_window(&self) -> u64 {
        0
    }

    fn close_window(&self, _: u64) {}

    fn note(&self, changes: &[Change], _: Option<u64>) {
        self.told.lock().unwrap().extend_from_slice(changes);
    }
}

impl Tracker {
    async fn begin(server: &Server) -> Arc<Self> {
        server.tracker.is_away.store(false, Ordering::SeqCst);
        server.executor.begin_tracking().await.unwrap();
        Arc::clone(&server.tracker)
    }

    fn told(&self) -> Vec<Change> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

async fn marks(store: &dyn Store) -> Vec<u64> {
    let transaction = store.begin_read().unwrap();
    let layout = Layout::new("test");
    let marks = change_marks::other_marks(&*transaction, &layout, u64::MAX);
    let marks = marks.await.unwrap().into_iter();
    marks.map(|mark| mark.instance).collect()
}

fn relay_of(server: &Server, store: &Arc<dyn Store>) -> Relay {
    let environment = Arc::clone(server.executor.environment());
    Relay::new(
        Arc::clone(store),
        environment,
        Arc::clone(&server.executor.shared),
    )
}

#[test]
fn a_server_is_marked_while_its_clients_track_keys() {
    on_a_cluster(|store| async move {
        let server = Server::start(&store).await;
        server.listener.is_away.store(true, Ordering::SeqCst);
        let instance = server.executor.environment().ids.instance();
        assert!(marks(&*store).await.is_empty());
        let tracker = Tracker::begin(&server).await;
        assert_eq!(marks(&*store).await, [instance]);
        let mut relay = relay_of(&server, &store);
        relay.maintain_own_mark().await.unwrap();
        assert_eq!(marks(&*store).await, [instance]);
        assert_eq!(tracker.told(), []);
        tracker.is_away.store(true, Ordering::SeqCst);
        relay.maintain_own_mark().await.unwrap();
        assert!(marks(&*store).await.is_empty());
        tracker.is_away.store(false, Ordering::SeqCst);
        server.executor.begin_tracking().await.unwrap();
        assert_eq!(marks(&*store).await, [instance]);
    });
}

#[test]
fn a_mark_without_signs_of_life_is_removed_and_its_server_forgets_everything() {
    on_a_cluster(|store| async move {
        let silent = Server::start(&store).await;
        let other = Server::start(&store).await;
        let instance = silent.executor.environment().ids.instance();
        let tracker = Tracker::begin(&silent).await;
        let mut relay = relay_of(&other, &store);
        let long_ago = Instant::now().checked_sub(CHANGE_MARK_DEAD_AFTER).unwrap();
        let age = |relay: &mut Relay| {
            relay.silent_marks.get_mut(&instance).unwrap().1 = long_ago;
        };
        relay.clear_dead_marks().await.unwrap();
        age(&mut relay);
        // The server beats just in time.
        relay_of(&silent, &store).maintain_own_mark().await.unwrap();
        relay.clear_dead_marks().await.unwrap();
        assert_eq!(marks(&*store).await, [instance]);
        age(&mut relay);
        relay.clear_dead_marks().await.unwrap();
        assert!(marks(&*store).await.is_empty());
        assert_eq!(tracker.told(), []);
        relay_of(&silent, &store).maintain_own_mark().await.unwrap();
        assert_eq!(marks(&*store).await, [instance]);
        assert_eq!(tracker.told(), [Change::AllKeys]);
    });
}

#[test]
fn keys_that_a_server_changes_are_in_the_log_while_others_track_keys() {
    on_a_cluster(|store| async move {
        let [one, two] = [Server::start(&store).await, Server::start(&store).await];
        one.set(&["before"]).await;
        assert_eq!(rows(&*store).await, 0);
        let own = Tracker::begin(&one).await;
        one.set(&["own"]).await;
        assert_eq!(rows(&*store).await, 0);
        let tracker = Tracker::begin(&two).await;
        own.told();
        one.set(&["a", "b"]).await;
        let long: Vec<String> = (0..8).map(|key| key.to_string().repeat(40_000)).collect();
        assert!(long.concat().len() > TRACKED_NAMES_BYTES_MAX);
        one.set(&long.iter().map(String::as_str).collect::<Vec<_>>())
            .await;
        let told = async {
            while tracker.told.lock().unwrap().len() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tracker.told()
        };
        let told = tokio::time::timeout(Duration::from_secs(30), told).await;
        let names = ["a", "b"].map(|name| Change::Unwatched(name.into()));
        let expected = [&names[..], &[Change::AllKeys]].concat();
        assert_eq!(told.unwrap(), expected);
        assert_eq!(own.told().len(), 2 + long.len());
    });
}

#[test]
fn keys_that_a_server_makes_ready_are_in_the_log_while_clients_of_others_wait() {
    on_a_cluster(|store| async move {
        let [one, two] = [Server::start(&store).await, Server::start(&store).await];
        one.listener.is_away.store(true, Ordering::SeqCst);
        two.listener.is_away.store(true, Ordering::SeqCst);
        one.run("LPUSH before x").await;
        assert_eq!(rows(&*store).await, 0);
        let own = one.run("BLPOP own 0").await.unwrap();
        let mut wait = two.run("BLPOP queue 0").await.unwrap();
        let both = [&one, &two].map(|server| server.executor.environment().ids.instance());
        while marks(&*store).await != both {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Commands that make nothing ready, and one whose element goes to a client of the same
        // server.
        one.run("SET key x").await;
        one.run("SADD set x").await;
        one.run("LPUSH own x").await;
        assert_eq!(rows(&*store).await, 0);
        one.run("LPUSH other x").await;
        assert_eq!(rows(&*store).await, 1);
        one.run("LPUSH queue x").await;
        assert_eq!(rows(&*store).await, 2);
        let outcome = tokio::time::timeout(Duration::from_secs(10), wait.outcome());
        assert!(matches!(outcome.await, Ok(Outcome::Replied(_))));
        drop(own);
    });
}

#[test]
fn a_server_is_marked_while_its_clients_wait() {
    on_a_cluster(|store| async move {
        let server = Server::start(&store).await;
        server.listener.is_away.store(true, Ordering::SeqCst);
        let instance = server.executor.environment().ids.instance();
        let wait = server.run("BLPOP queue 0").await.unwrap();
        while marks(&*store).await != [instance] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Another relay replaces the server's own, so that one must have begun.
        while server.executor.waiters().log_reader().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut relay = relay_of(&server, &store);
        for _ in 0..3 {
            relay.maintain_own_mark().await.unwrap();
            assert_eq!(marks(&*store).await, [instance]);
        }
        drop(wait);
        // Twice, because clients often come back and one call is not enough.
        relay.maintain_own_mark().await.unwrap();
        relay.maintain_own_mark().await.unwrap();
        assert!(marks(&*store).await.is_empty());
        let _wait = server.run("BLPOP queue 0").await.unwrap();
        while marks(&*store).await != [instance] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn clients_of_a_server_that_was_taken_for_dead_are_woken() {
    on_a_cluster(|store| async move {
        let [one, two] = [Server::start(&store).await, Server::start(&store).await];
        two.listener.is_away.store(true, Ordering::SeqCst);
        let mut wait = two.run("BLPOP queue 0").await.unwrap();
        let instance = two.executor.environment().ids.instance();
        while marks(&*store).await != [instance] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let transaction = store.begin_write().unwrap();
        let layout = Layout::new("test");
        change_marks::set_mark(&*transaction, &layout, instance, Wanted::Nothing);
        transaction.commit().await.unwrap();
        one.run("LPUSH queue x").await;
        assert_eq!(rows(&*store).await, 0);
        relay_of(&two, &store).maintain_own_mark().await.unwrap();
        assert_eq!(marks(&*store).await, [instance]);
        let outcome = tokio::time::timeout(Duration::from_secs(10), wait.outcome());
        assert!(matches!(outcome.await, Ok(Outcome::Replied(_))));
    });
}

#[test]
fn a_reader_learns_that_the_log_was_cleared_before_it_has_read_all() {
    on_a_cluster(|store| async move {
        let [one, two] = [Server::start(&store).await, Server::start(&store).await];
        let environment = two.executor.environment();
        let layout = &environment.layout;
        let start = async || {
            let transaction = store.begin_read().unwrap();
            LogReader::start(&*transaction, environment).await.unwrap()
        };
        let read = async |reader: &mut LogReader| {
            let transaction = store.begin_read().unwrap();
            let news = reader.read(&*transaction, layout, 100).await.unwrap();
            (news.messages.len(), news.changes)
        };
        let clear = async || {
            let transaction = store.begin_write().unwrap();
            let last = last_message_key(&*transaction, layout).await.unwrap();
            clear_messages(&*transaction, layout, &last.unwrap())
                .await
                .unwrap();
            transaction.commit().await.unwrap();
        };
        let (mut quick, mut slow) = (start().await, start().await);
        one.publish("publish", "a").await;
        assert_eq!(read(&mut quick).await, (1, vec![]));
        clear().await;
        one.publish("publish", "b").await;
        assert_eq!(read(&mut quick).await, (1, vec![]));
        assert_eq!(read(&mut slow).await, (1, vec![Change::AllKeys]));
        assert_eq!(read(&mut slow).await, (0, vec![]));
        clear().await;
        let mut late = start().await;
        assert_eq!(read(&mut late).await, (0, vec![]));
        assert_eq!(read(&mut quick).await, (0, vec![]));
    });
}

#[test]
fn a_log_that_was_looked_at_just_before_a_commit_is_cleared_all_the_same() {
    on_a_cluster(|store| async move {
        let one = Server::start(&store).await;
        let shared = Arc::clone(&one.executor.shared);
        assert!(one.listener.news.set(Arc::clone(&shared)).is_ok());
        one.publish("publish", "a").await;
        assert_eq!(one.listener.received(), ["Global a"]);
        assert!(shared.relay.has_news.load(Ordering::Relaxed));
    });
}
