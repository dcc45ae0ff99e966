//! Writes of many servers to one key do not conflict, as the counter of conflicts shows.

use std::time::Instant;

use futures_util::future::join_all;
use quoin_resp::reply::Reply;

use crate::bench::Bench;

const CLIENTS: usize = 8;
const ROUNDS: usize = 100;

/// Clients of both servers run a command repeatedly. `{}` stands for something new each time.
/// Returns the number of conflicts.
fn run(bench: &Bench, line: &str) -> u64 {
    let conflicts = || bench.servers.iter().map(|one| one.conflicts()).sum::<u64>();
    // The key exists from now on, so no client creates it.
    bench.run(0, &line.replace("{}", "first"));
    let before = conflicts();
    let started = Instant::now();
    let clients = (0..CLIENTS).map(|client| async move {
        let server = &bench.servers[client % 2];
        for round in 0..ROUNDS {
            let reply = server
                .run(&line.replace("{}", &format!("{client}-{round}")))
                .await;
            assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
        }
    });
    bench.block_on(join_all(clients));
    println!("{line}: {} in {:?}", CLIENTS * ROUNDS, started.elapsed());
    conflicts() - before
}

#[track_caller]
fn check(bench: &Bench, line: &str, count: &str, per_command: usize) {
    let conflicts = run(bench, line);
    if !bench.has_faults {
        assert_eq!(conflicts, 0, "{line}");
    }
    let expected = Reply::count((CLIENTS * ROUNDS + 1) * per_command);
    assert_eq!(bench.run(1, count), expected, "{line}");
}

pub fn pushes_to_one_list_do_not_conflict(bench: &Bench) {
    check(bench, "RPUSH tail {} more", "LLEN tail", 2);
    check(bench, "LPUSH head {} more", "LLEN head", 2);
}

pub fn pushes_to_one_priority_do_not_conflict(bench: &Bench) {
    check(bench, "PQ.PUSH queue 5 {}", "PQ.LEN queue", 1);
}

pub fn additions_of_different_members_do_not_conflict(bench: &Bench) {
    check(bench, "ZADD set 1 {}", "ZCARD set", 1);
}

pub fn additions_of_tasks_do_not_conflict(bench: &Bench) {
    check(bench, "TASK.ADD tasks 1 payload ID {}", "TASK.LEN tasks", 1);
}

/// Server processes, whose background work uses the same keys too.
#[cfg(feature = "fdb")]
mod processes {
    use std::sync::Barrier;

    use quoin_base::random::{Random, SystemRandom};

    use crate::server::Server;

    const SERVERS: usize = 4;
    const CLIENTS_OF_EACH: usize = 4;
    const PIPELINES: usize = 80;
    /// Few, because a batch that runs for too long ends between a push and its pop
    /// (`BATCH_AGE_MAX_MS`), and what it leaves in the queue conflicts.
    const PIPELINE_COMMANDS: usize = 6;

    fn figure(server: &Server, name: &str) -> u64 {
        let info = server.connect().run("INFO quoin");
        let (_, behind) = info.split_once(&format!("\r\n{name}:")).unwrap();
        behind.split("\r\n").next().unwrap().parse().unwrap()
    }

    /// Every client sends pipelines of commands. `{}` stands for something new each time.
    fn run(servers: &[Server], line: &str) {
        let start = Barrier::new(SERVERS * CLIENTS_OF_EACH);
        std::thread::scope(|scope| {
            for (number, server) in servers.iter().enumerate() {
                for client in 0..CLIENTS_OF_EACH {
                    let start = &start;
                    scope.spawn(move || {
                        let mut socket = server.connect();
                        start.wait();
                        for round in 0..PIPELINES {
                            let commands: Vec<String> = (0..PIPELINE_COMMANDS)
                                .map(|at| format!("{number}-{client}-{round}-{at}"))
                                .map(|new| line.replace("{}", &new) + "\r\n")
                                .collect();
                            let text = commands.concat();
                            let replies = text.matches("\r\n").count();
                            socket.send(text);
                            for _ in 0..replies {
                                let reply = socket.reply();
                                assert!(!reply.starts_with('-'), "{line}: {reply}");
                            }
                        }
                    });
                }
            }
        });
    }

    fn start() -> Option<Vec<Server>> {
        let cluster_file = crate::server::foundationdb::cluster_file()?;
        let root_prefix = format!("contention-{:016x}", SystemRandom.next_u64());
        let flags = [
            "--store",
            "fdb",
            "--cluster-file",
            cluster_file.to_str().unwrap(),
            "--root-prefix",
            &root_prefix,
        ];
        Some((0..SERVERS).map(|_| Server::start_with(&flags)).collect())
    }

    fn may_conflict_by_itself() -> bool {
        std::env::var_os("FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE").is_some()
    }

    #[test]
    fn what_is_put_into_an_empty_queue_and_taken_at_once_does_not_conflict() {
        let Some(servers) = start() else {
            return;
        };
        for (push, pop, count) in [
            ("RPUSH list {}", "LPOP list", "LLEN list"),
            ("LPUSH stack {}", "LPOP stack", "LLEN stack"),
            ("ZADD set 1 {}", "ZPOPMIN set", "ZCARD set"),
            ("PQ.PUSH queue 5 {}", "PQ.POPMIN queue", "PQ.LEN queue"),
        ] {
            // The key exists from now on, so no client creates it.
            servers[0].connect().run(&push.replace("{}", "first"));
            servers[0].connect().run(pop);
            let conflicts = |server| figure(server, "conflicts");
            let before: Vec<u64> = servers.iter().map(conflicts).collect();
            run(&servers, &format!("{push}\r\n{pop}"));
            let after: Vec<u64> = servers.iter().map(conflicts).collect();
            if !may_conflict_by_itself() {
                assert_eq!(before, after, "{push}");
            }
            let length = servers[SERVERS - 1].connect().run(count);
            assert_eq!(length, ":0\r\n", "{count}");
        }
    }

    #[test]
    fn what_four_servers_put_into_one_key_does_not_conflict() {
        let Some(servers) = start() else {
            return;
        };
        for (line, count) in [
            ("RPUSH tail {}", "LLEN tail"),
            ("LPUSH head {}", "LLEN head"),
            ("PQ.PUSH queue 5 {}", "PQ.LEN queue"),
            ("ZADD set 1 {}", "ZCARD set"),
            ("TASK.ADD tasks 1 {}", "TASK.LEN tasks"),
        ] {
            // The key exists from now on, so no client creates it.
            servers[0].connect().run(&line.replace("{}", "first"));
            let conflicts = |server| figure(server, "conflicts");
            let before: Vec<u64> = servers.iter().map(conflicts).collect();
            let commits: u64 = servers.iter().map(|one| figure(one, "commits")).sum();
            run(&servers, line);
            let after: Vec<u64> = servers.iter().map(conflicts).collect();
            let commits = servers
                .iter()
                .map(|one| figure(one, "commits"))
                .sum::<u64>()
                - commits;
            let all = SERVERS * CLIENTS_OF_EACH * PIPELINES * PIPELINE_COMMANDS;
            println!("{line}: {all} in {commits} commits, conflicts {before:?} to {after:?}");
            if !may_conflict_by_itself() {
                assert_eq!(before, after, "{line}");
            }
            let length = servers[SERVERS - 1].connect().run(count);
            assert_eq!(length, format!(":{}\r\n", all + 1), "{count}");
        }
    }
}
