//! Task queues that two servers add to and take from at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quoin_base::random::{Random, SystemRandom};
use quoin_resp::reply::Reply;

use crate::bench::{Bench, PATIENCE, Server, bulk};

const CLIENTS: usize = 4;
const TASKS: usize = 80;
/// How long a server's lease outlasts the requested time, because clocks may differ.
const TOLERANCE: Duration = Duration::from_millis(500);

fn parts(task: &Reply) -> &[Reply] {
    match task {
        Reply::Array(parts) => parts,
        other => panic!("{other:?}"),
    }
}

/// The parts of each task in a reply.
fn tasks(reply: &Reply) -> Vec<&[Reply]> {
    match reply {
        Reply::NullArray => Vec::new(),
        Reply::Array(tasks) => tasks.iter().map(parts).collect(),
        other => panic!("{other:?}"),
    }
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn ids(reply: &Reply) -> Vec<String> {
    tasks(reply).iter().map(|parts| text(&parts[0])).collect()
}

/// The tries and the token of the only task in a reply.
fn leased(reply: &Reply) -> (i64, String) {
    match tasks(reply).as_slice() {
        [[_, _, Reply::Integer(tries), _, _, token]] => (*tries, text(token)),
        other => panic!("{other:?}"),
    }
}

fn codes(codes: &[i64]) -> Reply {
    Reply::Array(codes.iter().map(|code| Reply::Integer(*code)).collect())
}

fn conflicts(bench: &Bench) -> u64 {
    bench.servers.iter().map(Server::conflicts).sum()
}

/// Runs a command on one of the servers until it takes something.
fn take_soon(bench: &Bench, server: usize, line: &str) -> Reply {
    let started = Instant::now();
    loop {
        let reply = bench.run(server, line);
        if reply != Reply::NullArray {
            return reply;
        }
        assert!(started.elapsed() < PATIENCE, "{line}: never");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Adds tasks with needs, one after another.
async fn add(server: &Server, client: usize) {
    for number in 0..TASKS {
        let line = format!(
            "TASK.ADD q {} p ID {client}-{number} NEEDS gb {} cards {}",
            number % 3,
            1 + SystemRandom.below(9),
            1 + number % 2
        );
        let id = server.run(&line).await;
        assert_eq!(id, bulk(&format!("{client}-{number}")));
    }
}

/// Takes without a lease until the queue stays empty. Returns the ids.
async fn take_all(server: &Server, line: &str, is_all_added: &AtomicBool) -> Vec<String> {
    let mut taken = Vec::new();
    loop {
        let is_last = is_all_added.load(Ordering::SeqCst);
        let some = ids(&server.run(line).await);
        if some.is_empty() {
            if is_last {
                return taken;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        taken.extend(some);
    }
}

pub fn each_task_is_taken_once_by_consumers_of_two_servers(bench: &Bench) {
    let is_all_added = AtomicBool::new(false);
    let lines = [
        "TASK.TAKE q HAVING gb 9 cards 2",
        "TASK.TAKE q HAVING gb 9 cards 2 COUNT 3",
        "TASK.TAKE q HAVING gb 5 cards 1",
        "TASK.TAKE q HAVING gb 9 cards 1 COUNT 2",
    ];
    let before = conflicts(bench);
    let taken = bench.block_on(async {
        let adding = async {
            let clients = (0..CLIENTS).map(|client| add(&bench.servers[client % 2], client));
            join_all(clients).await;
            is_all_added.store(true, Ordering::SeqCst);
        };
        let taking = (0..2 * lines.len()).map(|consumer| {
            let line = lines[consumer / 2];
            take_all(&bench.servers[consumer % 2], line, &is_all_added)
        });
        tokio::join!(adding, join_all(taking)).1
    });
    println!(
        "{}: {} tasks taken by {} consumers who want the same, {} conflicts",
        bench.store,
        CLIENTS * TASKS,
        2 * lines.len(),
        conflicts(bench) - before
    );
    let taken = taken.concat();
    assert_eq!(taken.len(), CLIENTS * TASKS);
    let distinct: BTreeSet<&String> = taken.iter().collect();
    assert_eq!(distinct.len(), taken.len(), "taken twice");
    assert_eq!(bench.run(0, "EXISTS q"), Reply::Integer(0));
}

/// Which tasks are leased from the time of the request, as all consumers together know it.
#[derive(Default)]
struct Leases {
    live: BTreeMap<String, Instant>,
    acknowledged: BTreeSet<String>,
    lapses: usize,
}

const LEASE: Duration = Duration::from_millis(40);

/// Takes tasks on lease, and acknowledges, gives back or forgets them, until all are acknowledged.
async fn work(server: &Server, tasks_left: &Mutex<usize>, leases: &Mutex<Leases>) {
    let started = Instant::now();
    while *tasks_left.lock().unwrap() > 0 {
        assert!(started.elapsed() < 4 * PATIENCE, "tasks do not end");
        let sent = Instant::now();
        let line = format!("TASK.TAKE q HAVING gb 9 LEASE {}", LEASE.as_millis());
        let reply = server.run(&line).await;
        let [task] = tasks(&reply)[..] else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let (id, token) = (text(&task[0]), text(&task[5]));
        {
            let mut leases = leases.lock().unwrap();
            assert!(
                !leases.acknowledged.contains(&id),
                "{id} came after its end"
            );
            match leases.live.get(&id) {
                // This task was delayed for so long that the next lease has already been recorded.
                Some(before) if *before > sent => {}
                Some(before) => {
                    // The store counts whole milliseconds.
                    let passed = before.elapsed() + Duration::from_millis(1);
                    assert!(passed >= LEASE, "{id} is on two leases");
                    leases.live.insert(id.clone(), sent);
                    leases.lapses += 1;
                }
                None => drop(leases.live.insert(id.clone(), sent)),
            }
        }
        match SystemRandom.below(8) {
            0..=5 => {
                let reply = server.run(&format!("TASK.ACK q {id} TOKEN {token}")).await;
                if reply == codes(&[1]) {
                    let is_first = leases.lock().unwrap().acknowledged.insert(id.clone());
                    assert!(is_first, "{id} has ended twice");
                    *tasks_left.lock().unwrap() -= 1;
                }
            }
            6 => {
                // Whoever takes it next may do so before this is answered.
                leases.lock().unwrap().live.remove(&id);
                server.run(&format!("TASK.NACK q {id} TOKEN {token}")).await;
            }
            _ => {}
        }
    }
}

pub fn no_task_is_on_two_live_leases_of_two_servers(bench: &Bench) {
    bench.block_on(async {
        for number in 0..TASKS {
            let line = format!("TASK.ADD q 1 p ID t{number} NEEDS gb {}", 1 + number % 9);
            bench.servers[number % 2].run(&line).await;
        }
    });
    let (tasks_left, leases) = (Mutex::new(TASKS), Mutex::default());
    let consumers =
        (0..2 * CLIENTS).map(|client| work(&bench.servers[client % 2], &tasks_left, &leases));
    bench.block_on(join_all(consumers));
    let leases = leases.into_inner().unwrap();
    assert_eq!(leases.acknowledged.len(), TASKS);
    assert!(leases.lapses > 0, "no lease lapsed");
    assert_eq!(bench.run(1, "EXISTS q"), Reply::Integer(0));
}

pub fn a_take_of_the_other_server_wakes_for_what_fits_and_for_nothing_else(bench: &Bench) {
    for (first, second) in [(0, 1), (1, 0)] {
        let mut waiting = bench.wait(second, "TASK.TAKE q HAVING gb 4 cards 1 BLOCK 0");
        for line in [
            "TASK.ADD q 1 p ID large NEEDS gb 5",
            "TASK.ADD q 1 p ID other NEEDS gb 1 tapes 1",
            "TASK.ADD q 1 p ID later NEEDS gb 1 DELAY 600000",
        ] {
            bench.run(first, line);
            std::thread::sleep(Duration::from_millis(100));
            assert!(waiting.is_waiting(), "{line}");
        }
        bench.run(first, "TASK.ADD q 9 p ID small NEEDS gb 4");
        assert_eq!(ids(&bench.served(waiting)), ["small"]);
        assert_eq!(bench.run(first, "TASK.LEN q"), Reply::Integer(3));
        bench.run(second, "DEL q");
    }
}

pub fn whatever_makes_a_task_ready_wakes_the_other_server(bench: &Bench) {
    let leased = "TASK.TAKE q LEASE 600000";
    for (before, lines) in [
        (&["TASK.ADD q 1 p ID a", leased][..], &["TASK.NACK q a"][..]),
        (
            &["TASK.ADD q 1 p ID a MAXTRIES 1", leased, "TASK.NACK q a"],
            &["TASK.REVIVE q a"],
        ),
        (&["TASK.ADD other 1 p ID a"], &["RENAME other q"]),
        (&["TASK.ADD other 1 p ID a"], &["COPY other q"]),
        (&["3:TASK.ADD q 1 p ID a"], &["3:MOVE q 0"]),
        (
            &[],
            &["TASK.ADD q 1 p ID b DELAY 600000", "TASK.ADD q 1 p ID a"],
        ),
        (&["TASK.ADD other 1 p ID a"], &["TASK.MOVE other q a"]),
        (&["TASK.PAUSE q", "TASK.ADD q 1 p ID a"], &["TASK.RESUME q"]),
        (
            &["TASK.ADD q 1 p ID a MAXTRIES 1", leased, "TASK.NACK q a"],
            &["TASK.REVIVE q ALL"],
        ),
    ] {
        for line in ["DEL q other", "3:DEL q"].iter().chain(before) {
            bench.run(0, line);
        }
        let waiting = bench.wait(1, "TASK.TAKE q BLOCK 0");
        for line in lines {
            bench.run(0, line);
        }
        assert_eq!(ids(&bench.served(waiting)), ["a"], "{lines:?}");
    }
    bench.run(0, "DEL q");
    let waiting = bench.wait(1, "TASK.TAKE q HAVING gb 1 BLOCK 0");
    drop(bench.block_on(bench.servers[0].exec(&[
        "TASK.ADD q 1 p ID a NEEDS gb 2",
        "TASK.ADD q 2 p ID b NEEDS gb 1",
    ])));
    assert_eq!(ids(&bench.served(waiting)), ["b"]);
}

/// Whichever server's background work finds it.
pub fn ends_of_leases_and_delays_wake_the_other_server(bench: &Bench) {
    for finder in [0, 1] {
        let _reaper = bench.reap(finder);
        bench.run(0, "TASK.ADD q 1 p ID a NEEDS gb 1 DELAY 300");
        let waiting = bench.wait(1, "TASK.TAKE q HAVING gb 1 LEASE 100 BLOCK 0");
        assert_eq!(leased(&bench.served(waiting)).0, 1);
        // Nobody ends that lease.
        let waiting = bench.wait(0, "TASK.TAKE q HAVING gb 1 BLOCK 0");
        assert_eq!(ids(&bench.served(waiting)), ["a"]);
        assert_eq!(bench.run(1, "EXISTS q"), Reply::Integer(0));
    }
}

pub fn lapse_retry_death_and_revival_are_seen_by_the_other_server(bench: &Bench) {
    bench.run(0, "TASK.ADD q 1 p ID a MAXTRIES 2");
    let sent = Instant::now();
    let (tries, first) = leased(&bench.run(1, "TASK.TAKE q LEASE 100"));
    assert_eq!(tries, 1);
    assert_eq!(bench.run(0, "TASK.LEN q LEASED"), Reply::Integer(1));
    assert_eq!(bench.run(0, "TASK.TAKE q LEASE 100"), Reply::NullArray);
    // It lapses, and the other server gets it for its second try.
    let (tries, second) = leased(&take_soon(bench, 0, "TASK.TAKE q LEASE 600000"));
    assert!(sent.elapsed() >= Duration::from_millis(100) + TOLERANCE);
    assert_eq!(tries, 2);
    let ack = |token: &str| bench.run(1, &format!("TASK.ACK q a TOKEN {token}"));
    assert_eq!(ack(&first), codes(&[-2]));
    let nack = format!("TASK.NACK q a DELAY 10 TOKEN {second}");
    assert_eq!(bench.run(1, &nack), Reply::Integer(2));
    for server in [0, 1] {
        assert_eq!(ids(&bench.run(server, "TASK.DEAD q")), ["a"]);
        assert_eq!(bench.run(server, "TASK.TAKE q"), Reply::NullArray);
    }
    assert_eq!(ack(&second), codes(&[-1]));
    assert_eq!(bench.run(0, "TASK.REVIVE q a"), Reply::Integer(1));
    assert_eq!(bench.run(1, "TASK.REVIVE q a"), Reply::Integer(0));
    let (tries, third) = leased(&bench.run(1, "TASK.TAKE q LEASE 600000"));
    assert_eq!(tries, 1);
    let extend = format!("TASK.EXTEND q a 600000 TOKEN {third}");
    assert_eq!(bench.run(0, &extend), Reply::Integer(1));
    assert_eq!(ack(&third), codes(&[1]));
    assert_eq!(bench.run(0, "EXISTS q"), Reply::Integer(0));
}

/// A queue with an index of several levels, and resources that are known.
fn fill(bench: &Bench, count: usize) {
    let server = &bench.servers[0];
    let reaper = bench.reap(0);
    bench.block_on(async {
        for part in 0..count / 200 {
            join_all((part * 200..part * 200 + 200).map(|number| async move {
                let (priority, amount) = (number * 7 % 100, 1 + number * 13 % 97);
                let needs = match number % 3 {
                    0 => format!("gb {amount}"),
                    1 => format!("cards {amount}"),
                    _ => format!("gb {amount} cards {}", 1 + number % 97),
                };
                let line = format!("TASK.ADD q {priority} p ID f{number} NEEDS {needs}");
                assert_eq!(server.run(&line).await, bulk(&format!("f{number}")));
            }))
            .await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        reaper.stop().await;
    });
}

/// Background work maintains the index of a queue that is being filled.
pub fn upkeep_does_not_conflict_with_the_own_server(bench: &Bench) {
    fill(bench, 4_000);
    if !bench.has_faults {
        assert_eq!(conflicts(bench), 0);
    }
    let line = "TASK.PEEK q HAVING gb 1";
    assert_eq!(ids(&bench.run(1, line)).len(), 1);
}

pub fn additions_of_two_servers_do_not_conflict(bench: &Bench) {
    fill(bench, 2_000);
    let before = conflicts(bench);
    let clients = (0..2 * CLIENTS).map(|client| async move {
        let server = &bench.servers[client % 2];
        for number in 0..TASKS {
            // Anywhere among existing ones, in one place, at the front, and at the end.
            let priority = match client / 2 {
                0 => (number * 37 % 100).to_string(),
                1 => "50".to_owned(),
                2 => format!("-{number}"),
                _ => "200".to_owned(),
            };
            let line = format!(
                "TASK.ADD q {priority} p ID {client}-{number} NEEDS gb {} cards 3",
                1 + number % 97
            );
            assert_eq!(server.run(&line).await, bulk(&format!("{client}-{number}")));
        }
    });
    bench.block_on(join_all(clients));
    if !bench.has_faults {
        assert_eq!(conflicts(bench) - before, 0);
    }
    let length = Reply::count(2_000 + 2 * CLIENTS * TASKS);
    assert_eq!(bench.run(1, "TASK.LEN q"), length);
}

/// Consumers of one server have memory, those of the other have cards, and others add tasks
/// meanwhile.
pub fn takes_of_different_tasks_do_not_conflict(bench: &Bench) {
    fill(bench, 2_000);
    let before = conflicts(bench);
    bench.block_on(async {
        let takes = (0..2).map(|server| async move {
            let having = ["gb 97", "cards 97"][server];
            let mut taken = 0;
            for number in 0..3 * TASKS {
                let lease = [" LEASE 600000", ""][number % 2];
                let line = format!("TASK.TAKE q HAVING {having}{lease}");
                let reply = bench.servers[server].run(&line).await;
                taken += tasks(&reply).len();
                if let (Some(id), 0) = (ids(&reply).first(), number % 4) {
                    let line = format!("TASK.ACK q {id}");
                    assert_eq!(bench.servers[server].run(&line).await, codes(&[1]));
                }
            }
            taken
        });
        let adds = join_all((0..2).map(|client| add(&bench.servers[client], client)));
        let (taken, _) = tokio::join!(join_all(takes), adds);
        assert_eq!(taken, [3 * TASKS, 3 * TASKS]);
    });
    if !bench.has_faults {
        assert_eq!(conflicts(bench) - before, 0);
    }
}

/// Both servers cut stretches of the index and raise minima while both add and take.
pub fn an_index_that_both_servers_look_after_hides_no_task(bench: &Bench) {
    const PARTS: usize = 15;
    const GB_MAX: u64 = 10_000;
    let reapers = [bench.reap(0), bench.reap(1)];
    let added = Mutex::new(BTreeMap::new());
    let added = &added;
    let taken = bench.block_on(async {
        let adding = join_all((0..CLIENTS).map(|client| async move {
            let server = &bench.servers[client % 2];
            for part in 0..PARTS {
                join_all((0..50).map(|number| async move {
                    let id = format!("{client}-{part}-{number}");
                    let (priority, gb) = (SystemRandom.below(20), 1 + SystemRandom.below(GB_MAX));
                    let line = format!("TASK.ADD q {priority} p ID {id} NEEDS gb {gb}");
                    assert_eq!(server.run(&line).await, bulk(&id));
                    added.lock().unwrap().insert(id, gb);
                }))
                .await;
            }
        }));
        let taking = join_all((0..2).map(|server| async move {
            let mut taken = Vec::new();
            for number in 0..40 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let line = format!("TASK.TAKE q HAVING gb {}", number * 100);
                taken.extend(ids(&bench.servers[server].run(&line).await));
            }
            taken
        }));
        tokio::join!(adding, taking).1
    });
    let mut left = std::mem::take(&mut *added.lock().unwrap());
    for id in taken.concat() {
        assert!(left.remove(&id).is_some(), "{id} was taken twice");
    }
    // A consumer that has little is guided by the minima, and past tasks whose minima are wrong.
    for round in 1..=100 {
        let gb = round * GB_MAX / 100;
        loop {
            let line = format!("TASK.TAKE q COUNT 100 HAVING gb {gb}");
            let some = ids(&bench.run(round as usize % 2, &line));
            for id in &some {
                let needed = left.remove(id);
                assert!(needed.is_some_and(|needed| needed <= gb), "{id}");
            }
            if some.is_empty() {
                break;
            }
        }
        left.retain(|id, needed| {
            assert!(*needed > gb, "{id}, which needs {needed}, is not found");
            true
        });
    }
    assert!(left.is_empty());
    drop(reapers);
}
