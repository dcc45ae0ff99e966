//! Clients of one server cache what clients of the other change (CLIENT TRACKING).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quoin_data::unit::host::{Change, Origin, Trackers};
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};
use quoin_engine::Call;
use quoin_resp::reply::Reply;

use crate::bench::{Bench, PATIENCE, Server, invocation};

const KEYS: usize = 4;

/// A client of a server that tracks keys once that is enabled, as simple as possible: it forgets no
/// change.
#[derive(Default)]
pub struct Tracker {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Keys that it has read and that have not changed since.
    fresh: HashSet<Bytes>,
    changes: u64,
    /// The last change of each key, and of all.
    changed: BTreeMap<Bytes, u64>,
    all_changed: u64,
}

impl Tracker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn is_fresh(&self, key: &str) -> bool {
        self.state().fresh.contains(key.as_bytes())
    }
}

impl Trackers for Tracker {
    fn is_any(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    fn open_window(&self) -> u64 {
        self.state().changes
    }

    fn close_window(&self, _: u64) {}

    fn note(&self, changes: &[Change], window: Option<u64>) {
        let mut state = self.state();
        let window = window.unwrap_or(state.changes);
        let before = (state.changed.clone(), state.all_changed);
        for change in changes {
            if let Some(key) = change.tracked_key() {
                state.changes += 1;
                let number = state.changes;
                state.changed.insert(key.clone(), number);
                state.fresh.remove(key);
            }
            match change {
                Change::AllKeys => {
                    state.changes += 1;
                    state.all_changed = state.changes;
                    state.fresh.clear();
                }
                Change::Read { key, .. } => {
                    let last = before.0.get(key).copied().unwrap_or(0).max(before.1);
                    if last <= window {
                        state.fresh.insert(key.clone());
                    }
                }
                _ => {}
            }
        }
    }
}

/// Nobody listens.
pub struct NoSubscribers;

impl Subscribers for NoSubscribers {
    fn count(&self, _kind: ChannelKind, _channel: &[u8]) -> usize {
        0
    }

    fn deliver(&self, _message: &Message) {}

    fn is_empty(&self) -> bool {
        true
    }
}

/// Has a client of a server track keys.
fn track(bench: &Bench, server: &Server) -> Arc<Tracker> {
    server.1.is_on.store(true, Ordering::SeqCst);
    bench.block_on(server.0.begin_tracking()).unwrap();
    Arc::clone(&server.1)
}

/// Runs a command of the client that tracks keys.
async fn read(server: &Server, line: &str) -> Reply {
    let mut read = invocation(line);
    read.origin = Origin {
        client: 1,
        tracks: true,
        ..Origin::SERVER
    };
    let finished = server.0.submit(vec![Call::command(read, true)]).await;
    finished.unwrap().replies.into_iter().next().unwrap()
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn every_change_on_the_other_server_is_told(bench: &Bench) {
    let [reading, changing] = &bench.servers;
    let tracker = track(bench, reading);
    for (before, change) in [
        ("DEL key", "SET key 1"),
        ("SET key 1", "SET key 1"),
        ("SET key 1", "APPEND key 1"),
        ("SET key 1", "INCR key"),
        ("SET key 1", "DEL key"),
        ("RPUSH key a", "RPUSH key b"),
        ("RPUSH key a b", "LPOP key"),
        ("RPUSH key a", "LPOP key"),
        ("RPUSH key a", "LSET key 0 b"),
        ("HSET key f v", "HSET key f w"),
        ("ZADD key 1 a", "ZINCRBY key 1 a"),
        ("SADD key a", "SPOP key"),
        ("RPUSH key a", "RENAME key other"),
        ("RPUSH key a", "MOVE key 3"),
        ("RPUSH key a", "EXPIRE key 100"),
        ("RPUSH key a", "FLUSHDB"),
        ("RPUSH key a", "FLUSHALL"),
        ("RPUSH key a", "SWAPDB 0 3"),
        ("DEL key", "COPY full key"),
        ("SET key 1", "EVAL return(redis.call('del',KEYS[1])) 1 key"),
    ] {
        for line in ["3:DEL key", "DEL key other", "RPUSH full a", before] {
            bench.run(1, line);
        }
        // Until the reports about the preparation have arrived.
        eventually("the key stays as it was read", || {
            bench.block_on(read(reading, "EXISTS key"));
            std::thread::sleep(Duration::from_millis(50));
            tracker.is_fresh("key")
        });
        bench.block_on(changing.run(change));
        eventually(change, || !tracker.is_fresh("key"));
    }
    // An expiry, by either server.
    let _reaping = bench.reap(1);
    bench.run(1, "SET key 1 PX 500");
    bench.block_on(read(reading, "GET key"));
    eventually("it expires", || !tracker.is_fresh("key"));
}

/// Clients of both servers read keys in every way while clients of both write them.
pub fn no_client_keeps_a_value_that_has_changed(bench: &Bench) {
    let trackers = [0, 1].map(|at| track(bench, &bench.servers[at]));
    let is_over = Arc::new(AtomicBool::new(false));
    let writers = [0, 1].map(|at| {
        let (server, is_over) = (bench.servers[at].clone(), Arc::clone(&is_over));
        bench.runtime.spawn(async move {
            let ends = Instant::now() + Duration::from_secs(3);
            for number in 0_usize.. {
                server
                    .run(&format!("SET k{} {at}-{number}", number % KEYS))
                    .await;
                if Instant::now() > ends {
                    break;
                }
            }
            is_over.store(true, Ordering::SeqCst);
        })
    });
    let readers = [0, 1].map(|at| {
        let (server, is_over) = (bench.servers[at].clone(), Arc::clone(&is_over));
        let tracker = Arc::clone(&trackers[at]);
        bench.runtime.spawn(async move {
            let mut held: HashMap<String, Reply> = HashMap::new();
            for number in 0_usize.. {
                let key = format!("k{}", number % KEYS);
                if !tracker.is_fresh(&key) {
                    let line = match number / KEYS % 3 {
                        0 => format!("GET {key}"),
                        1 => format!("EVAL return(redis.call('get',KEYS[1])) 1 {key}"),
                        _ => format!("EVAL_RO return(redis.call('get',KEYS[1])) 1 {key}"),
                    };
                    held.insert(key, read(&server, &line).await);
                }
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                tokio::task::yield_now().await;
            }
            held
        })
    });
    for writer in writers {
        bench.block_on(writer).unwrap();
    }
    let held = readers.map(|reader| bench.block_on(reader).unwrap());
    for key in (0..KEYS).map(|number| format!("k{number}")) {
        let value = bench.run(0, &format!("GET {key}"));
        for (tracker, held) in trackers.iter().zip(&held) {
            let is_right = || !tracker.is_fresh(&key) || held.get(&key) == Some(&value);
            eventually(
                &format!("{key} is {value:?} or not held: {held:?}"),
                is_right,
            );
        }
    }
}
