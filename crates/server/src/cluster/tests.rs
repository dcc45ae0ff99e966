//! Slots, and several servers on one store with clients of their cluster ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;

use super::*;
use crate::fleet::{Client, Fleet, TestServer, wait_until};
use quoin_layout::ServerRow;

fn roster(numbers: &[u64]) -> Vec<LiveServer> {
    let server = |number: &u64| LiveServer {
        instance: *number,
        row: ServerRow {
            ip: format!("10.0.0.{number}"),
            port: 6379,
            cluster_port: 7000,
            ..ServerRow::default()
        },
    };
    numbers.iter().map(server).collect()
}

/// The number of the server of each block.
fn owners(numbers: &[u64]) -> Vec<u64> {
    let servers = roster(numbers);
    let owners = owners_of_blocks(servers.iter());
    let owners = owners.iter().map(|place| numbers[usize::from(*place)]);
    owners.collect()
}

fn counts(owners: &[u64]) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for owner in owners {
        *counts.entry(*owner).or_default() += 1;
    }
    counts
}

#[test]
fn slots_are_those_of_redis() {
    for (key, slot) in [
        ("", 0),
        ("a", 15495),
        ("123456789", 12739),
        ("{a}b", 15495),
        ("x{a}y{b}", 15495),
    ] {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
    assert_eq!(slot_of(b"{}a"), SUMS.checksum(b"{}a") % SLOTS);
    assert_eq!(slot_of(b"{a"), SUMS.checksum(b"{a") % SLOTS);
}

#[test]
fn keys_of_one_slot_have_it() {
    let all = |keys: &[&'static str]| {
        let keys: Vec<Bytes> = keys
            .iter()
            .map(|key| Bytes::from_static(key.as_bytes()))
            .collect();
        slot_of_all(keys.iter())
    };
    assert_eq!(all(&[]), None);
    assert_eq!(all(&["a", "x{a}"]), Some(15495));
    assert_eq!(all(&["a", "b"]), None);
}

#[test]
fn every_server_has_about_an_even_share() {
    for count in 1..=256 {
        let numbers: Vec<u64> = (1..=count).collect();
        let counts = counts(&owners(&numbers));
        let share = BLOCKS.div_ceil(numbers.len());
        let most = share + share.div_ceil(EXTRA_SHARE);
        assert!(counts.values().all(|blocks| *blocks <= most), "{counts:?}");
        if count <= 16 {
            let least = counts.values().min().copied().unwrap_or(0);
            assert!(least >= share / 2, "{counts:?}");
            assert_eq!(counts.len(), numbers.len());
        }
    }
}

#[test]
fn few_blocks_move_apart_from_those_of_the_server_that_left() {
    for count in 2..=8 {
        let all: Vec<u64> = (1..=count).collect();
        let before = owners(&all);
        for left in 1..=count {
            let live: Vec<u64> = all.iter().copied().filter(|one| *one != left).collect();
            let after = owners(&live);
            let moved = before.iter().zip(&after);
            let moved = moved.filter(|(before, after)| **before != left && before != after);
            assert!(moved.count() <= BLOCKS / 20, "{left} of {count}");
        }
    }
}

/// Clients of the cluster ports.
async fn connect_all(servers: &[TestServer]) -> Vec<Client> {
    let mut clients = Vec::new();
    for server in servers {
        clients.push(Client::connect(server.cluster_port()).await);
    }
    clients
}

/// A key that the other one of two servers owns.
fn key_of(server: &TestServer) -> String {
    let view = server.state.cluster.view(&server.state.membership, false);
    let view = view.unwrap();
    let own = view.own().unwrap().clone();
    let mut keys = (0..).map(|number| format!("key{number}"));
    let is_own = |key: &String| {
        let slot = slot_of(key.as_bytes());
        view.slots()
            .any(|(node, first, last)| *node == own && (first..=last).contains(&slot))
    };
    keys.find(is_own).unwrap()
}

async fn let_views_settle(servers: &[TestServer]) {
    for server in servers {
        server.state.cluster.view(&server.state.membership, false);
    }
    tokio::time::sleep(SETTLED_AFTER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_servers_tell_the_same_of_all_slots() {
    let fleet = Fleet::new();
    let servers: [TestServer; 3] = fleet.start_all().await;
    let mut clients = connect_all(&servers).await;
    for command in ["CLUSTER SLOTS", "CLUSTER SHARDS"] {
        let mut told = BTreeSet::new();
        for client in &mut clients {
            told.insert(client.run(command).await);
        }
        assert_eq!(told.len(), 1, "{told:?}");
    }
    let view = servers[0]
        .state
        .cluster
        .view(&servers[0].state.membership, false);
    let view = view.unwrap();
    let mut next = 0;
    for (_, first, last) in view.slots() {
        assert_eq!(first, next);
        next = last + 1;
    }
    assert_eq!(next, SLOTS);
    for (server, client) in servers.iter().zip(&mut clients) {
        let nodes = client.run("CLUSTER NODES").await;
        let own: Vec<&str> = nodes
            .lines()
            .filter(|line| line.contains("myself"))
            .collect();
        assert_eq!(own.len(), 1, "{nodes}");
        let port = server.cluster_port();
        assert!(own[0].contains(&format!(" 127.0.0.1:{port}@")), "{nodes}");
        assert!(own[0].starts_with(&server.state.run_id), "{nodes}");
        let id = client.run("CLUSTER MYID").await;
        assert_eq!(id, format!("$40\r\n{}\r\n", server.state.run_id));
    }
    let other = &servers[1].state.run_id;
    assert_eq!(
        clients[0].run(&format!("CLUSTER REPLICAS {other}")).await,
        "*0\r\n"
    );
    assert!(
        clients[0]
            .run("CLUSTER INFO")
            .await
            .contains("cluster_known_nodes:3")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_sent_to_the_owner_once_and_then_served() {
    let fleet = Fleet::new();
    let servers: [TestServer; 2] = fleet.start_all().await;
    let mut clients = connect_all(&servers).await;
    let key = key_of(&servers[1]);
    let set = format!("SET {key} 1");
    // The nodes are new, so other servers may not know them yet.
    assert_eq!(clients[0].run(&set).await, "+OK\r\n");
    let_views_settle(&servers).await;
    let slot = slot_of(key.as_bytes());
    let port = servers[1].cluster_port();
    let moved = format!("-MOVED {slot} 127.0.0.1:{port}\r\n");
    assert_eq!(clients[1].run(&set).await, "+OK\r\n");
    assert_eq!(clients[0].run(&set).await, moved);
    assert_eq!(clients[0].run(&set).await, "+OK\r\n");
    assert_eq!(clients[0].run(&format!("GET {key}")).await, "$1\r\n1\r\n");
    // The main port knows no slots.
    let mut plain = Client::connect(servers[0].port()).await;
    assert_eq!(plain.run(&set).await, "+OK\r\n");
    let other = connect_all(&servers[..1]).await.remove(0);
    let mut other = other;
    let within = format!("MULTI\r\n{set}\r\nEXEC");
    assert_eq!(other.run(&within).await, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    assert_eq!(
        other.run(&format!("WATCH {key}\r\n{set}\r\nUNWATCH")).await,
        "+OK\r\n+OK\r\n+OK\r\n"
    );
    let other_key = key_of(&servers[0]);
    assert_eq!(
        other.run(&format!("MSET {key} 1 {other_key} 2")).await,
        "+OK\r\n"
    );
    let twice = format!("RPUSH {{{key}}}list a\r\nRPUSH {{{key}}}list b");
    assert_eq!(other.run(&twice).await, moved.repeat(2));
    assert_eq!(other.run(&twice).await, ":1\r\n:2\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_add_up_is_answered_once() {
    let fleet = Fleet::new();
    let servers: [TestServer; 3] = fleet.start_all().await;
    let mut clients = connect_all(&servers).await;
    assert_eq!(clients[0].run("MSET a 1 b 2 c 3").await, "+OK\r\n");
    for (place, client) in clients.iter_mut().enumerate() {
        let is_first = place == 0;
        let [count, keys] = match is_first {
            true => [":3\r\n", "*3\r\n"],
            false => [":0\r\n", "*0\r\n"],
        };
        assert_eq!(client.run("DBSIZE").await, count);
        assert!(client.run("KEYS *").await.starts_with(keys));
        let scanned = client.run("SCAN 0 COUNT 100").await;
        assert!(
            scanned.starts_with(&format!("*2\r\n$1\r\n0\r\n{keys}")),
            "{scanned}"
        );
        assert_eq!(client.run("SCAN x").await, "-ERR invalid cursor\r\n");
        assert_ne!(client.run("RANDOMKEY").await, "$-1\r\n");
        assert_eq!(
            client.run("MULTI\r\nDBSIZE\r\nEXEC").await,
            "+OK\r\n+QUEUED\r\n*1\r\n:3\r\n"
        );
        assert_eq!(client.run("CLUSTER COUNTKEYSINSLOT 15495").await, ":1\r\n");
        assert_eq!(
            client.run("CLUSTER GETKEYSINSLOT 15495 5").await,
            "*1\r\n$1\r\na\r\n"
        );
    }
    for server in &servers {
        let mut plain = Client::connect(server.port()).await;
        assert_eq!(plain.run("DBSIZE").await, ":3\r\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_send_to_all_does_no_harm() {
    let fleet = Fleet::new();
    let servers: [TestServer; 2] = fleet.start_all().await;
    let mut clients = connect_all(&servers).await;
    let code = |result: u8| {
        let code = format!(
            "#!lua name=lib\\nredis.register_function('f', function() return {result} end)"
        );
        format!("FUNCTION LOAD \"{code}\"")
    };
    for client in &mut clients {
        assert_eq!(client.run(&code(1)).await, "$3\r\nlib\r\n");
    }
    let refused = clients[0].run(&code(2)).await;
    assert_eq!(refused, "-ERR Library 'lib' already exists\r\n");
    let mut plain = Client::connect(servers[1].port()).await;
    let refused = plain.run(&code(1)).await;
    assert_eq!(refused, "-ERR Library 'lib' already exists\r\n");
    for client in &mut clients {
        assert_eq!(client.run("FUNCTION DELETE lib").await, "+OK\r\n");
    }
    assert_eq!(
        plain.run("FUNCTION DELETE lib").await,
        "-ERR Library not found\r\n"
    );
    for client in &mut clients {
        let loaded = client.run("SCRIPT LOAD \"return 1\"").await;
        assert_eq!(
            loaded,
            "$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n"
        );
        assert_eq!(client.run("FLUSHALL").await, "+OK\r\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_has_no_slots_and_one_that_is_cut_off_says_so() {
    let fleet = Fleet::new();
    let mut servers: [TestServer; 2] = fleet.start_all().await;
    let mut clients = connect_all(&servers).await;
    servers[1].cut_off();
    wait_until("the other has all slots", async || {
        let slots = clients[0].run("CLUSTER SLOTS").await;
        slots.starts_with("*1\r\n*3\r\n:0\r\n:16383\r\n")
    })
    .await;
    let down = "-CLUSTERDOWN The cluster is down\r\n";
    for command in ["CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES"] {
        assert_eq!(clients[1].run(command).await, down);
    }
    let info = clients[1].run("CLUSTER INFO").await;
    assert!(info.contains("cluster_state:fail\r\n"), "{info}");
    servers[1].kill().await;
    // One node answers like Redis.
    assert_eq!(
        clients[0].run("FUNCTION DELETE lib").await,
        "-ERR Library not found\r\n"
    );
    assert_eq!(clients[0].run("DBSIZE").await, ":0\r\n");
}

/// What a task has pushed, and the longest time between two replies.
struct Pushed {
    acknowledged: Vec<u64>,
    longest: Duration,
}

async fn push_until(
    stop: Arc<AtomicBool>,
    list: String,
    mut connection: ClusterConnection,
) -> Pushed {
    let mut pushed = Pushed {
        acknowledged: Vec::new(),
        longest: Duration::ZERO,
    };
    let mut last = Instant::now();
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let mut command = redis::cmd("RPUSH");
        command.arg(&list).arg(number);
        match command.query_async::<u64>(&mut connection).await {
            Ok(_) => {
                pushed.longest = pushed.longest.max(last.elapsed());
                last = Instant::now();
                pushed.acknowledged.push(number);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    pushed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_cluster_loses_no_acknowledged_push_when_a_server_dies() {
    let fleet = Fleet::new();
    let mut servers: [TestServer; 3] = fleet.start_all().await;
    let url = |server: &TestServer| format!("redis://127.0.0.1:{}", server.cluster_port());
    // By default, this client doubles its wait with every attempt, up to 11 minutes, and counts a
    // reconnection as an attempt: its wait would say little about the servers.
    let client = ClusterClient::builder(servers.iter().map(url));
    let client = client.min_retry_wait(100).max_retry_wait(500);
    let client = client.build().unwrap();
    let connection = client.get_async_connection().await.unwrap();
    let_views_settle(&servers).await;
    // Keys of each server.
    let keys: Vec<String> = servers.iter().map(key_of).collect();
    let lists = (0..9).map(|number| format!("{{{}}}{number}", keys[number % keys.len()]));
    let stop = Arc::new(AtomicBool::new(false));
    let pushing = lists.clone().map(|list| {
        let (stop, connection) = (Arc::clone(&stop), connection.clone());
        tokio::spawn(push_until(stop, list, connection))
    });
    let pushing: Vec<_> = pushing.collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    servers[1].kill().await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    stop.store(true, Ordering::SeqCst);
    let plain = format!("redis://127.0.0.1:{}", servers[0].port());
    let plain = redis::Client::open(plain).unwrap();
    let mut plain = plain.get_multiplexed_async_connection().await.unwrap();
    for (list, pushed) in lists.zip(pushing) {
        let Pushed {
            acknowledged,
            longest,
        } = pushed.await.unwrap();
        let mut command = redis::cmd("LRANGE");
        command.arg(&list).arg(0).arg(-1);
        let there: Vec<u64> = command.query_async(&mut plain).await.unwrap();
        let there: BTreeSet<u64> = there.into_iter().collect();
        let lost = acknowledged.iter().filter(|number| !there.contains(number));
        assert_eq!(lost.count(), 0, "{list}");
        println!(
            "{list}: {} pushes, longest wait {longest:?}",
            acknowledged.len()
        );
        assert!(longest < Duration::from_secs(7), "{list}: {longest:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_cluster_finds_a_server_that_has_joined() {
    let fleet = Fleet::new();
    let servers: [TestServer; 2] = fleet.start_all().await;
    let url = |server: &TestServer| format!("redis://127.0.0.1:{}", server.cluster_port());
    let client = ClusterClient::new(servers.iter().map(url)).unwrap();
    let mut connection = client.get_async_connection().await.unwrap();
    let joining = fleet.start().await;
    wait_until("it has a client", async || {
        for number in 0..50 {
            let mut command = redis::cmd("SET");
            command.arg(format!("key{number}")).arg(number);
            let set: redis::RedisResult<()> = command.query_async(&mut connection).await;
            set.unwrap();
        }
        joining.state.statistics.connections_received.get() > 0
    })
    .await;
}
