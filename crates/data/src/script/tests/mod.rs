#[cfg(test)]
mod functions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

use quoin_data::error::CommandError;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};
use quoin_engine::testing::{Bench, call};
use quoin_layout::Space;
use quoin_resp::reply::Reply;
use quoin_store::faults::{Fault, FaultPoint, OptimisticStore};
use quoin_store::{Isolation, RangeQuery};

fn run(bench: &Bench, words: &[&str]) -> Reply {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    bench.run_words(&words)
}

fn rows_of_scripts(bench: &Bench) -> usize {
    let range = bench.executor.environment().layout.rows_of(Space::Scripts);
    let transaction = bench.store.begin_read().unwrap();
    let rows = bench.block_on(transaction.get_range(RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: 1_000,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    rows.unwrap().len()
}

fn text(bytes: &'static str) -> Reply {
    Reply::Bulk(Bytes::from_static(bytes.as_bytes()))
}

fn error_of(reply: Reply) -> String {
    match reply {
        Reply::Error(line) => line,
        other => panic!("{other:?}"),
    }
}

const PUSH: &str = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('LLEN', KEYS[1])";

#[test]
fn a_script_is_one_transaction_on_every_kind_of_store() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        assert_eq!(
            run(&bench, &["EVAL", PUSH, "1", "q", "a"]),
            Reply::Integer(1)
        );
        assert_eq!(
            run(&bench, &["EVAL", PUSH, "1", "q", "b"]),
            Reply::Integer(2)
        );
    }
}

#[test]
fn a_script_that_fails_keeps_what_it_has_written_unless_it_is_atomic() {
    let bench = Bench::embedded();
    let fails = "redis.call('RPUSH', KEYS[1], 'x') redis.call('ZADD', KEYS[1], 1, 'm')";
    let line = error_of(run(&bench, &["EVAL", fails, "1", "q"]));
    assert!(
        line.starts_with("WRONGTYPE ") && line.contains("on @user_script:1."),
        "{line}"
    );
    assert_eq!(run(&bench, &["LLEN", "q"]), Reply::Integer(1));
    let atomic = format!("#!lua flags=atomic\n{fails}");
    let line = error_of(run(&bench, &["EVAL", &atomic, "1", "q"]));
    assert!(line.contains("on @user_script:2."), "{line}");
    assert_eq!(run(&bench, &["LLEN", "q"]), Reply::Integer(1));
}

#[test]
fn evalsha_finds_what_eval_and_script_load_have_stored() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let sha = quoin_lua::sha1_hex(PUSH.as_bytes());
        let unknown = error_of(run(&bench, &["EVALSHA", &sha, "1", "q", "a"]));
        assert_eq!(unknown, "NOSCRIPT No matching script. Please use EVAL.");
        run(&bench, &["EVAL", PUSH, "1", "q", "a"]);
        for _ in 0..3 {
            let reply = run(
                &bench,
                &["EVALSHA", &sha.to_ascii_uppercase(), "1", "q", "b"],
            );
            assert!(matches!(reply, Reply::Integer(_)), "{reply:?}");
        }
        assert_eq!(
            run(&bench, &["SCRIPT", "EXISTS", &sha, "nosuch"]),
            Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)])
        );
        assert_eq!(run(&bench, &["SCRIPT", "FLUSH"]), Reply::OK);
        assert!(matches!(
            run(&bench, &["EVALSHA", &sha, "1", "q", "a"]),
            Reply::Error(_)
        ));
        assert_eq!(
            run(&bench, &["SCRIPT", "LOAD", PUSH]),
            Reply::bulk(sha.clone())
        );
        let reply = run(&bench, &["EVALSHA", &sha, "1", "q", "c"]);
        assert_eq!(reply, Reply::Integer(5));
        assert_eq!(rows_of_scripts(&bench), 3);
    }
}

#[test]
fn a_long_script_is_stored_in_pieces() {
    let bench = Bench::embedded();
    let long = format!("return 7 --{}", "x".repeat(200_000));
    let Reply::Bulk(sha) = run(&bench, &["SCRIPT", "LOAD", &long]) else {
        panic!("not loaded");
    };
    let sha = String::from_utf8(sha.to_vec()).unwrap();
    assert_eq!(run(&bench, &["EVALSHA", &sha, "0"]), Reply::Integer(7));
    assert_eq!(run(&bench, &["EVALSHA_RO", &sha, "0"]), Reply::Integer(7));
}

#[test]
fn scripts_that_only_read_cannot_write() {
    let bench = Bench::embedded();
    let line = error_of(run(&bench, &["EVAL_RO", PUSH, "1", "q", "a"]));
    assert!(line.starts_with("ERR Write commands are not allowed from read-only scripts."));
    assert_eq!(run(&bench, &["EXISTS", "q"]), Reply::Integer(0));
    assert_eq!(
        run(
            &bench,
            &["EVAL_RO", "return redis.call('LLEN', KEYS[1])", "1", "q"]
        ),
        Reply::Integer(0)
    );
}

#[test]
fn time_stands_still_within_a_script() {
    let bench = Bench::embedded();
    let script = "local a = redis.call('TIME') for i = 1, 1000 do redis.call('LLEN', 'q') end \
                  local b = redis.call('TIME') return a[1] == b[1] and a[2] == b[2]";
    assert_eq!(run(&bench, &["EVAL", script, "0"]), Reply::Integer(1));
}

#[test]
fn select_holds_for_the_script_only() {
    let bench = Bench::embedded();
    let script = "redis.call('SELECT', 3) return redis.call('RPUSH', 'q', 'x')";
    assert_eq!(run(&bench, &["EVAL", script, "0"]), Reply::Integer(1));
    assert_eq!(run(&bench, &["EXISTS", "q"]), Reply::Integer(0));
}

#[test]
fn commands_that_wait_find_nothing() {
    let bench = Bench::embedded();
    let script = "return redis.call('BLPOP', 'nosuch', 0)";
    assert_eq!(run(&bench, &["EVAL", script, "0"]), Reply::Null);
}

#[test]
fn keys_are_listed_within_a_script() {
    let bench = Bench::cluster_like();
    let script = "redis.call('RPUSH', 'a', 1) return redis.call('KEYS', '*')";
    assert_eq!(
        run(&bench, &["EVAL", script, "0"]),
        Reply::Array(vec![text("a")])
    );
}

#[test]
fn a_script_waits_for_the_store_wherever_it_stands() {
    // Reads of this store are not ready at once, so only fibers can wait for them.
    let bench = Bench::cluster_like();
    let script = "redis.call('RPUSH', 'l', 3, 1, 2) \
        local found = redis.call('LRANGE', 'l', 0, -1) \
        table.sort(found, function(a, b) redis.call('LLEN', 'l') return a < b end) \
        local shown = string.gsub('abc', '.', function(c) redis.call('LLEN', 'l') return c end) \
        local each = coroutine.wrap(function() \
            for i = 1, 2 do coroutine.yield(redis.call('LLEN', 'l') + i) end end) \
        local meta = setmetatable({}, {__index = function(_, k) return redis.call('LINDEX', 'l', k) end}) \
        return {found[1], shown, each(), each(), meta[1], select(2, pcall(redis.call, 'LLEN', 'l'))}";
    let expected = vec![
        text("1"),
        text("abc"),
        Reply::Integer(4),
        Reply::Integer(5),
        text("1"),
        Reply::Integer(3),
    ];
    assert_eq!(run(&bench, &["EVAL", script, "0"]), Reply::Array(expected));
}

/// Counts the messages that its server's subscribers would receive.
#[derive(Default)]
struct Listening(AtomicUsize);

impl Subscribers for Listening {
    fn count(&self, _: ChannelKind, _: &[u8]) -> usize {
        1
    }

    fn deliver(&self, _: &Message) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[test]
fn a_script_that_runs_again_tells_and_wakes_once() {
    let (bench, faulty) = Bench::faulty(1);
    let listening = Arc::new(Listening::default());
    let subscribers = Arc::clone(&listening) as Arc<dyn Subscribers>;
    let bench = bench.served_with(|environment| environment.subscribers = Some(subscribers));
    let first = bench.wait("BLPOP q 0");
    let mut second = bench.wait("BLPOP q 0");
    let faults = [
        Some(Fault::Conflict),
        Some(Fault::UnknownNotApplied),
        Some(Fault::Conflict),
    ];
    faulty.script(FaultPoint::Commit, faults);
    let script = "redis.call('PUBLISH', 'c', 'm') return redis.call('RPUSH', KEYS[1], 'x')";
    assert_eq!(run(&bench, &["EVAL", script, "1", "q"]), Reply::Integer(1));
    let popped = Reply::Array(vec![text("q"), text("x")]);
    assert_eq!(first.reply(&bench), popped);
    // Messages of later commands are delivered later.
    assert_eq!(run(&bench, &["PUBLISH", "c", "last"]), Reply::Integer(1));
    let deadline = Instant::now() + Duration::from_secs(10);
    while listening.0.load(Ordering::SeqCst) < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(listening.0.load(Ordering::SeqCst), 2);
    assert!(second.is_waiting());
    assert_eq!(run(&bench, &["LLEN", "q"]), Reply::Integer(0));
}

#[test]
fn a_script_that_one_transaction_cannot_hold_changes_nothing() {
    let bench = Bench::cluster_like();
    let script = "redis.call('RPUSH', KEYS[1], 'x') for i = 1, 20 do \
                  pcall(redis.call, 'RPUSH', KEYS[2], string.rep('v', 1000000)) end return 1";
    let line = error_of(run(&bench, &["EVAL", script, "2", "small", "large"]));
    assert_eq!(line, CommandError::TooLarge.to_line());
    assert_eq!(
        run(&bench, &["EXISTS", "small", "large"]),
        Reply::Integer(0)
    );
}

#[test]
fn a_script_that_outlasts_a_transaction_of_a_cluster_changes_nothing() {
    let bench = Bench::cluster_like();
    let script = "redis.call('RPUSH', KEYS[1], 'x') \
                  while true do pcall(function() while true do end end) end";
    let line = error_of(run(&bench, &["EVAL", script, "1", "q"]));
    assert_eq!(
        line,
        "ERR script needs longer than a transaction of the store may last; nothing was changed"
    );
    assert_eq!(run(&bench, &["EXISTS", "q"]), Reply::Integer(0));
}

#[test]
fn a_script_of_eval_ro_is_known_without_having_been_written() {
    let bench = Bench::embedded();
    let script = "return redis.call('LLEN', KEYS[1])";
    assert_eq!(
        run(&bench, &["EVAL_RO", script, "1", "q"]),
        Reply::Integer(0)
    );
    assert_eq!(rows_of_scripts(&bench), 0);
    let sha = quoin_lua::sha1_hex(script.as_bytes());
    for command in ["EVALSHA_RO", "EVALSHA"] {
        assert_eq!(run(&bench, &[command, &sha, "1", "q"]), Reply::Integer(0));
    }
    let found = Reply::Array(vec![Reply::Integer(1)]);
    assert_eq!(run(&bench, &["SCRIPT", "EXISTS", &sha]), found);
    let flagged = format!("#!lua flags=no-writes\n{script}");
    assert_eq!(
        run(&bench, &["EVAL", &flagged, "1", "q"]),
        Reply::Integer(0)
    );
    assert_eq!(rows_of_scripts(&bench), 0);
    // EVAL has the store keep it, though this server knows it.
    assert_eq!(run(&bench, &["EVAL", script, "1", "q"]), Reply::Integer(0));
    assert!(rows_of_scripts(&bench) > 0);
}

#[test]
fn whole_numbers_are_handed_to_commands_with_all_their_digits() {
    let bench = Bench::embedded();
    for (number, expected) in [
        ("9007199254740991", "9007199254740991"),
        ("12345678901234567", "12345678901234568"),
        ("2^63", "9223372036854776000"),
        ("-0.0", "0"),
        ("3.3", "3.3"),
    ] {
        let script = format!("redis.call('SET', 'k', {number}) return redis.call('GET', 'k')");
        assert_eq!(run(&bench, &["EVAL", &script, "0"]), text(expected));
    }
}

#[test]
fn a_command_takes_as_many_arguments_as_unpack_gives() {
    let bench = Bench::embedded();
    let script = "local a = {} for i = 1, 7999 do a[i] = i end \
                  return {redis.call('RPUSH', KEYS[1], unpack(a)), \
                          redis.call('LINDEX', KEYS[1], 0), redis.call('LINDEX', KEYS[1], -1)}";
    let expected = vec![Reply::Integer(7_999), text("1"), text("7999")];
    assert_eq!(
        run(&bench, &["EVAL", script, "1", "q"]),
        Reply::Array(expected)
    );
}

#[test]
fn a_set_is_sorted_for_a_script_whatever_it_is_sorted_by() {
    let bench = Bench::embedded();
    run(&bench, &["SADD", "s", "b", "aa", "c", "a"]);
    let expected = Reply::Array(vec![text("a"), text("aa"), text("b"), text("c")]);
    for command in ["EVAL", "EVAL_RO"] {
        let script = "return redis.call('SORT_RO', KEYS[1], 'BY', 'nosort')";
        assert_eq!(run(&bench, &[command, script, "1", "s"]), expected);
    }
}

/// While the store does not respond, a script that waits for it blocks no other client. It
/// continues afterwards.
#[test]
fn a_script_that_waits_for_a_stalled_store_keeps_nobody_busy() {
    const BUSY_MS: u64 = 100;
    let mut stalling = None;
    let bench = Bench::with(|store| {
        let store = Arc::new(OptimisticStore::new(store));
        stalling = Some(Arc::clone(&store));
        store
    });
    let store = stalling.unwrap();
    let executor = &bench.executor;
    let scripts = &executor.environment().scripts;
    let script = "for i = 1, 1000 do redis.call('INCR', KEYS[1] .. i) end return 'done'";
    let replies = bench.block_on(async {
        let words: [&[u8]; 4] = [b"EVAL", script.as_bytes(), b"1", b"key"];
        let submitted = executor.submit(vec![call(0, &words)]);
        let stalled = async {
            while scripts.under_way().is_empty() {
                tokio::task::yield_now().await;
            }
            store.pause(true);
            tokio::time::sleep(Duration::from_millis(3 * BUSY_MS)).await;
            let [run] = scripts.under_way().try_into().unwrap();
            assert!(run.elapsed() >= Duration::from_millis(3 * BUSY_MS));
            assert!(scripts.busy(|| BUSY_MS).is_none());
            store.pause(false);
        };
        tokio::join!(submitted, stalled).0.unwrap().replies
    });
    assert_eq!(replies, [text("done")]);
}
