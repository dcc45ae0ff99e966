//! What clients of a server see while its cluster is away, and afterwards.

use std::collections::HashMap;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use crate::server::foundationdb::{self, OwnCluster};
use crate::server::{Server, wait_until};

/// Time until the first error: one transaction, and if its commit was in flight, finding out its
/// outcome. Each may have waited for an earlier one.
const FIRST_BOUND: Duration = Duration::from_secs(28);
/// Time until later errors, when the server knows that the cluster is away.
const LATER_BOUND: Duration = Duration::from_secs(9);
/// Time for what does not need the store.
const PROMPT: Duration = Duration::from_secs(2);

/// Commands of every kind. Those of one line share a connection, and the last one gets the error.
const COMMANDS: &[&str] = &[
    "LRANGE list 0 -1",
    "EXISTS list nothing",
    "DBSIZE",
    "SCAN 0",
    "WATCH list",
    "RPUSH list new",
    "LPOP list",
    "LMOVE list other LEFT RIGHT",
    "ZADD set 2 b",
    "ZPOPMIN set",
    "PQ.PUSH queue 1 a",
    "TASK.ADD tasks 1 a",
    "TASK.TAKE tasks",
    "DEL list",
    "PEXPIRE list 1000",
    "FLUSHALL",
    "PUBLISH channel message",
    "BLPOP list 0",
    "BLPOP nothing 0",
    "BLPOP nothing 1",
    "BZPOPMIN nothing 0",
    "MULTI|RPUSH list new|LPOP set|EXEC",
    "MULTI|LRANGE list 0 -1|EXEC",
];

/// A separate cluster with a server on it. `None` if there can be none.
fn start() -> Option<(OwnCluster, Server)> {
    match OwnCluster::start() {
        Ok(cluster) => {
            let file = cluster.file();
            let flags = ["--store", "fdb", "--cluster-file", file.to_str().unwrap()];
            Some((cluster, Server::start_with(&flags)))
        }
        Err(reason) => {
            foundationdb::skip(&reason);
            None
        }
    }
}

/// Runs every command on its own connection, all at the same time. Each gets an error in time that
/// reports the outcome.
fn all_fail(server: &Server, bound: Duration) {
    std::thread::scope(|scope| {
        for line in COMMANDS {
            let mut socket = server.connect();
            scope.spawn(move || {
                let started = Instant::now();
                let replies: Vec<String> = line.split('|').map(|part| socket.run(part)).collect();
                let elapsed = started.elapsed();
                let reply = replies.last().unwrap();
                let is_told = reply.starts_with("-CLUSTERDOWN ") || reply.starts_with("-UNKNOWN ");
                assert!(is_told, "{line}: {reply}");
                assert!(elapsed < bound, "{line}: {elapsed:?}");
                // The connection goes on.
                assert_eq!(socket.run("PING"), "+PONG\r\n", "{line}");
            });
        }
        for line in ["PING", "CONFIG GET port", "CLIENT ID", "COMMAND COUNT"] {
            let started = Instant::now();
            let reply = server.connect().run(line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
            assert!(
                started.elapsed() < PROMPT,
                "{line}: {:?}",
                started.elapsed()
            );
        }
    });
}

fn clients_are_told_and_served_again(away: fn(&mut OwnCluster), back: fn(&mut OwnCluster)) {
    let Some((mut cluster, server)) = start() else {
        return;
    };
    let mut socket = server.connect();
    for number in 0..100 {
        socket.run(&format!("RPUSH list {number}"));
    }
    socket.run("ZADD set 1 a");
    let mut waiting = server.connect();
    waiting.send("BLPOP jobs 0\r\n");
    let mut giving_up = server.connect();
    giving_up.send("BLPOP others 3\r\n");
    wait_until("both wait", || {
        let info = socket.run("INFO clients");
        info.contains("\r\nblocked_clients:2\r\n")
    });

    away(&mut cluster);
    all_fail(&server, FIRST_BOUND);
    assert_eq!(giving_up.reply(), "*-1\r\n");
    // The server knows it now.
    let started = Instant::now();
    let info = server.connect().run("INFO everything");
    assert!(info.contains("\r\nstore_reachable:0\r\n"), "{info}");
    assert!(started.elapsed() < PROMPT);
    all_fail(&server, LATER_BOUND);

    back(&mut cluster);
    let mut socket = server.connect();
    wait_until("pushes are taken again", || {
        socket.run("RPUSH jobs a").starts_with(':')
    });
    assert_eq!(waiting.reply(), "*2\r\n$4\r\njobs\r\n$1\r\na\r\n");
    assert!(
        socket
            .run("INFO quoin")
            .contains("\r\nstore_reachable:1\r\n")
    );
}

#[test]
fn clients_are_told_while_the_cluster_is_held_up_and_served_behind_it() {
    clients_are_told_and_served_again(|cluster| cluster.pause(), |cluster| cluster.resume());
}

#[test]
fn clients_are_told_while_the_cluster_is_gone_and_served_behind_it() {
    clients_are_told_and_served_again(OwnCluster::kill, OwnCluster::revive);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Acknowledged,
    /// The error said that nothing was changed.
    Refused,
    Unknown,
}

const CLIENTS: usize = 5;

/// Pushes one element after another until the time is over, and returns the outcome of each.
fn push(server: &Server, client: usize, until: Instant, told: &Sender<(String, Fate)>) {
    let mut socket = server.connect();
    for number in 0.. {
        if Instant::now() >= until {
            return;
        }
        let element = format!("{client}-{number}");
        let reply = socket.run(&format!("RPUSH list{client} {element}"));
        let fate = match reply.split(' ').next().unwrap() {
            "-CLUSTERDOWN" | "-TRYAGAIN" => Fate::Refused,
            "-UNKNOWN" => Fate::Unknown,
            _ if reply.starts_with(':') => Fate::Acknowledged,
            _ => panic!("{reply}"),
        };
        told.send((element, fate)).unwrap();
    }
}

#[test]
fn what_is_acknowledged_is_there_and_what_is_refused_is_not() {
    let Some((mut cluster, server)) = start() else {
        return;
    };
    let (tell, told) = mpsc::channel();
    let until = Instant::now() + Duration::from_secs(24);
    std::thread::scope(|scope| {
        let client = |client| {
            let (server, tell) = (&server, tell.clone());
            scope.spawn(move || push(server, client, until, &tell));
        };
        (1..CLIENTS).for_each(client);
        std::thread::sleep(Duration::from_secs(1));
        // Too short to be noticed.
        cluster.pause();
        std::thread::sleep(Duration::from_secs(1));
        cluster.resume();
        std::thread::sleep(Duration::from_secs(1));
        cluster.kill();
        cluster.revive();
        std::thread::sleep(Duration::from_secs(3));
        // Longer than a transaction may take.
        cluster.kill();
        std::thread::sleep(Duration::from_secs(1));
        // Operations in progress may still succeed, but this one cannot begin.
        client(0);
        std::thread::sleep(Duration::from_secs(12));
        cluster.revive();
    });
    drop(tell);
    let fates: Vec<(String, Fate)> = told.iter().collect();
    let mut socket = server.connect();
    let mut found: HashMap<String, usize> = HashMap::new();
    for client in 0..CLIENTS {
        let mut list = String::new();
        wait_until("the list can be read", || {
            list = socket.run(&format!("LRANGE list{client} 0 -1"));
            !list.starts_with('-')
        });
        for element in list.split("\r\n").skip(2).step_by(2) {
            *found.entry(element.to_owned()).or_default() += 1;
        }
    }
    let mut counts: HashMap<Fate, usize> = HashMap::new();
    for (element, fate) in &fates {
        let times = found.remove(element.as_str()).unwrap_or(0);
        let expected = match fate {
            Fate::Acknowledged => 1..=1,
            Fate::Refused => 0..=0,
            Fate::Unknown => 0..=1,
        };
        assert!(expected.contains(&times), "{element}: {fate:?}, {times}");
        *counts.entry(*fate).or_default() += 1;
    }
    assert!(found.is_empty(), "{found:?}");
    println!("{counts:?}");
    assert!(counts[&Fate::Acknowledged] > 100, "{counts:?}");
    assert!(counts.contains_key(&Fate::Refused), "{counts:?}");
}

#[test]
fn a_server_without_its_cluster_ends_when_it_is_told_to() {
    let Some((mut cluster, mut server)) = start() else {
        return;
    };
    let mut pushing = server.connect();
    assert_eq!(pushing.run("RPUSH list a"), ":1\r\n");
    let mut waiting = server.connect();
    waiting.send("BLPOP jobs 0\r\n");
    cluster.kill();
    pushing.send("RPUSH list b\r\n");
    std::thread::sleep(Duration::from_millis(500));
    let started = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    println!("ended after {:?}", started.elapsed());
}
