//! What a server concludes from the rows of others, and several servers on one store.

use std::time::Duration;

use super::*;
use quoin_base::clock::ManualClock;
use quoin_base::random::SeededRandom;
use quoin_data::cluster::roster::{read_rows, remove, write_own};
use quoin_data::unit::context::Environment;
use quoin_data::unit::startup;
use quoin_layout::{Layout, encode_choice};
use quoin_store::Store;
use quoin_store::faults::OptimisticStore;
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

const OWN: u64 = 5;

fn row(number: u64) -> ServerRow {
    ServerRow {
        ip: format!("10.0.0.{number}"),
        port: 6379,
        ..ServerRow::default()
    }
}

/// The rows of servers, and an observer that reads them once a second.
struct Scene {
    observer: Observer,
    rows: RosterRows,
    now: Instant,
}

impl Scene {
    fn of(others: &[u64]) -> Self {
        let servers = others.iter().map(|number| (*number, row(*number)));
        Self {
            observer: Observer::new(OWN),
            rows: RosterRows {
                servers: servers.collect(),
                ..RosterRows::default()
            },
            now: Instant::now(),
        }
    }

    fn add(&mut self, instance: u64, row: ServerRow) {
        self.rows.servers.push((instance, row));
        self.rows.servers.sort_by_key(|(instance, _)| *instance);
    }

    fn remove(&mut self, instance: u64) {
        self.rows.servers.retain(|(other, _)| *other != instance);
    }

    /// Lets a second pass, in which these servers beat. Returns the live servers.
    fn second(&mut self, beating: &[u64]) -> Vec<u64> {
        self.passes(1000, beating)
    }

    fn passes(&mut self, time_ms: u64, beating: &[u64]) -> Vec<u64> {
        self.now += Duration::from_millis(time_ms);
        for (instance, row) in &mut self.rows.servers {
            row.beat += u64::from(beating.contains(instance));
        }
        self.observe()
    }

    fn observe(&mut self) -> Vec<u64> {
        let roster = self.observer.observe(&self.rows, &row(OWN), self.now);
        let servers = roster.servers().iter();
        servers.map(|server| server.instance).collect()
    }
}

#[tokio::test]
async fn a_row_that_was_there_first_counts_once_its_beat_changes() {
    let mut scene = Scene::of(&[1, 2]);
    assert_eq!(scene.observe(), [OWN]);
    assert!(!scene.observer.is_settled);
    assert_eq!(scene.second(&[2]), [2, OWN]);
    assert!(!scene.observer.is_settled);
    // Server 1 was already dead.
    assert_eq!(scene.second(&[2]), [2, OWN]);
    assert!(scene.observer.is_settled);
    assert_eq!(scene.second(&[2]), [2, OWN]);
}

#[tokio::test]
async fn a_server_alone_knows_it_at_once() {
    let mut scene = Scene::of(&[]);
    assert_eq!(scene.observe(), [OWN]);
    assert!(scene.observer.is_settled);
}

#[tokio::test]
async fn who_joins_later_counts_at_once_and_who_removes_its_row_no_more() {
    let mut scene = Scene::of(&[]);
    scene.observe();
    scene.add(6, row(6));
    assert_eq!(scene.second(&[]), [OWN, 6]);
    scene.remove(6);
    assert_eq!(scene.second(&[]), [OWN]);
}

#[tokio::test]
async fn a_server_that_is_silent_for_three_seconds_is_dead_until_it_beats_again() {
    let mut scene = Scene::of(&[1]);
    scene.observe();
    assert_eq!(scene.second(&[1]), [1, OWN]);
    for _ in 0..2 {
        assert_eq!(scene.second(&[]), [1, OWN]);
    }
    assert_eq!(scene.second(&[]), [OWN]);
    assert_eq!(scene.second(&[1]), [1, OWN]);
}

#[tokio::test]
async fn reads_in_quick_succession_kill_nobody() {
    let mut scene = Scene::of(&[1]);
    scene.observe();
    assert_eq!(scene.second(&[1]), [1, OWN]);
    // As after SENTINEL FAILOVER.
    for _ in 0..10 {
        assert_eq!(scene.passes(10, &[]), [1, OWN]);
    }
    assert_eq!(scene.second(&[1]), [1, OWN]);
}

#[tokio::test]
async fn nobody_is_dead_because_the_store_did_not_answer() {
    let mut scene = Scene::of(&[1]);
    scene.observe();
    assert_eq!(scene.second(&[1]), [1, OWN]);
    // No server could read or beat for a minute.
    assert_eq!(scene.passes(61_000, &[]), [1, OWN]);
    let remains = scene.observer.remains(&scene.rows, scene.now);
    assert_eq!(remains, Remains::default());
    assert_eq!(scene.second(&[1]), [1, OWN]);
}

#[tokio::test]
async fn a_restarted_server_replaces_its_earlier_start_at_once() {
    let mut scene = Scene::of(&[1]);
    scene.observe();
    assert_eq!(scene.second(&[1]), [1, OWN]);
    scene.add(9, row(1));
    assert_eq!(scene.second(&[]), [OWN, 9]);
}

#[tokio::test]
async fn a_live_server_at_the_own_address_is_noticed() {
    let mut scene = Scene::of(&[]);
    scene.add(1, row(OWN));
    scene.observe();
    assert!(!scene.observer.has_double(&row(OWN)));
    scene.second(&[1]);
    assert!(scene.observer.has_double(&row(OWN)));
    scene.second(&[]);
    assert!(!scene.observer.has_double(&row(OWN)));
}

#[tokio::test]
async fn rows_of_the_long_dead_and_their_choices_are_removed() {
    let mut scene = Scene::of(&[1]);
    scene.rows.choices = vec![
        (b"dead".to_vec(), 1),
        (b"gone".to_vec(), 2),
        (b"own".to_vec(), OWN),
    ];
    scene.observe();
    let remains = scene.observer.remains(&scene.rows, scene.now);
    assert_eq!(remains.servers, []);
    assert_eq!(remains.choices, [(b"gone".to_vec(), 2)]);
    for _ in 0..61 {
        scene.second(&[]);
    }
    let remains = scene.observer.remains(&scene.rows, scene.now);
    assert_eq!(remains.servers, [(1, row(1))]);
    // An unreadable row may belong to that server.
    scene.rows.unreadable = 1;
    let remains = scene.observer.remains(&scene.rows, scene.now);
    assert_eq!(remains.choices, []);
}

#[test]
fn the_chosen_server_is_master_while_it_lives() {
    let servers = |instances: &[u64]| {
        let servers = instances.iter().map(|instance| LiveServer {
            instance: *instance,
            row: row(*instance),
        });
        servers.collect()
    };
    let roster = Roster {
        servers: servers(&[1, 2, 3]),
        ..Roster::default()
    };
    let best = roster.master_of(b"mymaster").unwrap().instance;
    let next = roster.successor_of(b"mymaster").unwrap().instance;
    assert_ne!(next, best);
    let chosen = Roster {
        choices: BTreeMap::from([(b"mymaster".to_vec(), next)]),
        ..roster.clone()
    };
    assert_eq!(chosen.master_of(b"mymaster").unwrap().instance, next);
    assert_eq!(chosen.master_of(b"other"), roster.master_of(b"other"));
    let others: Vec<u64> = [1, 2, 3].into_iter().filter(|one| *one != next).collect();
    let without = Roster {
        servers: servers(&others),
        ..chosen
    };
    assert_eq!(without.master_of(b"mymaster").unwrap().instance, best);
    let alone = Roster::of_one(1, row(1));
    assert_eq!(alone.successor_of(b"mymaster"), None);
    assert_eq!(alone.without_own().master_of(b"mymaster"), None);
}

struct Cluster {
    store: Arc<OptimisticStore<EmbeddedStore>>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        Self {
            store: Arc::new(OptimisticStore::new(store)),
            _folder: folder,
        }
    }

    async fn environment(store: &dyn Store) -> Arc<Environment> {
        let clock = Arc::new(ManualClock::at(0));
        let random = Arc::new(SeededRandom::new(1));
        let prepared = startup::prepare(store, Layout::new("test"), clock, random);
        Arc::new(prepared.await.unwrap())
    }

    async fn join(&self, number: u64) -> Membership {
        let environment = Self::environment(&*self.store).await;
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let membership =
            Membership::start(store, environment, row(number), Sightings::default()).unwrap();
        membership.begin();
        membership
    }

    async fn rows(&self) -> RosterRows {
        let transaction = self.store.begin_read().unwrap();
        let layout = Layout::new("test");
        read_rows(&*transaction, &layout).await.unwrap()
    }
}

fn addresses(membership: &Membership) -> Vec<String> {
    let roster = membership.roster();
    let servers = roster.iter().flat_map(|roster| roster.servers());
    servers.map(|server| server.row.ip.clone()).collect()
}

async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn three_servers_see_each_other_and_one_that_leaves_is_gone_at_once() {
    let cluster = Cluster::new();
    let mut servers = Vec::new();
    for number in 1..=3 {
        servers.push(cluster.join(number).await);
    }
    let all = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    for server in &servers {
        server.settled().await;
        wait_until("all are seen", || addresses(server) == all).await;
    }
    let masters: Vec<_> = servers
        .iter()
        .map(|server| {
            let roster = server.roster().unwrap();
            roster.master_of(b"mymaster").unwrap().row.ip.clone()
        })
        .collect();
    assert!(masters.iter().all(|one| *one == masters[0]), "{masters:?}");
    let first = servers.remove(0);
    first.leave().await;
    assert_eq!(addresses(&first), all[1..]);
    assert_eq!(cluster.rows().await.servers.len(), 2);
    first.join();
    // Much less than the silence after which a server counts as dead.
    let started = Instant::now();
    for server in &servers {
        wait_until("it has left", || addresses(server) == all[1..]).await;
    }
    assert!(started.elapsed() < SERVER_DEAD_AFTER);
}

#[tokio::test]
async fn a_server_that_cannot_reach_the_store_knows_no_roster() {
    let cluster = Cluster::new();
    let server = cluster.join(1).await;
    server.settled().await;
    assert!(server.roster().is_some());
    cluster.store.pause(true);
    wait_until("it is cut off", || server.roster().is_none()).await;
    cluster.store.pause(false);
    wait_until("it is back", || server.roster().is_some()).await;
}

#[tokio::test]
async fn a_server_whose_row_was_removed_joins_again() {
    let cluster = Cluster::new();
    let servers = [cluster.join(1).await, cluster.join(2).await];
    let both = ["10.0.0.1", "10.0.0.2"];
    for server in &servers {
        wait_until("both are seen", || addresses(server) == both).await;
    }
    let instance = servers[0].roster().unwrap().servers()[0].instance;
    let transaction = cluster.store.begin_write().unwrap();
    remove(&*transaction, &Layout::new("test"), instance);
    transaction.commit().await.unwrap();
    wait_until("it must learn which servers are alive", || {
        servers[0].roster().is_none()
    })
    .await;
    for server in &servers {
        wait_until("both are seen again", || addresses(server) == both).await;
    }
}

#[tokio::test]
async fn a_choice_is_seen_after_a_refresh() {
    let cluster = Cluster::new();
    let servers = [cluster.join(1).await, cluster.join(2).await];
    for server in &servers {
        wait_until("both are seen", || addresses(server).len() == 2).await;
    }
    let master = |server: &Membership| {
        let roster = server.roster()?;
        roster.master_of(b"mymaster").map(|one| one.instance)
    };
    let next = servers[0].roster().unwrap();
    let next = next.successor_of(b"mymaster").unwrap().instance;
    let transaction = cluster.store.begin_write().unwrap();
    let key = Layout::new("test").choice_key(b"mymaster");
    transaction.set(&key, &encode_choice(next));
    transaction.commit().await.unwrap();
    servers[0].refresh();
    for server in &servers {
        wait_until("the choice is seen", || master(server) == Some(next)).await;
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_hides_no_other() {
    let cluster = Cluster::new();
    let layout = Layout::new("test");
    let transaction = cluster.store.begin_write().unwrap();
    transaction.set(&layout.server_key(90), b"\xffnewer");
    write_own(&*transaction, &layout, 91, &row(9));
    transaction.commit().await.unwrap();
    let rows = cluster.rows().await;
    assert_eq!(rows.unreadable, 1);
    assert_eq!(rows.servers, [(91, row(9))]);
}

#[tokio::test]
async fn on_a_store_with_one_server_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let store = Arc::new(store);
    let environment = Cluster::environment(&*store).await;
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let server = Membership::start(shared, environment, row(1), Sightings::default()).unwrap();
    server.begin();
    server.settled().await;
    assert_eq!(addresses(&server), ["10.0.0.1"]);
    let transaction = store.begin_read().unwrap();
    let rows = read_rows(&*transaction, &Layout::new("test"))
        .await
        .unwrap();
    assert_eq!(rows, RosterRows::default());
    server.leave().await;
    assert_eq!(server.roster().unwrap().master_of(b"mymaster"), None);
    server.join();
}
