use crate::Call;
use crate::testing::{Bench, bulks, unplanned};
use quoin_base::limits::SUBMISSION_REPLY_BYTES_MAX;
use quoin_base::random::{Random, SeededRandom};
use quoin_resp::reply::Reply;

/// Submits calls, then whatever was left, until all have run. Returns their replies.
fn submit(bench: &Bench, mut rest: Vec<Call>) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !rest.is_empty() {
        let finished = bench.block_on(bench.executor.submit(rest)).unwrap();
        replies.extend(finished.replies);
        rest = finished.rest;
    }
    replies
}

fn command(random: &SeededRandom) -> String {
    // `s` starts as a sorted set, so list commands fail on it.
    let key = ["a", "a", "b", "s"][random.below(4) as usize];
    let value = random.below(1000);
    let few = value % 9;
    match random.below(16) {
        0 => format!("LPUSH {key} {value} x{value}"),
        1 => format!("RPUSH {key} {value}"),
        2 => format!("LPOP {key}"),
        3 => format!("RPOP {key}"),
        4 => format!("RPOP {key} {few}"),
        5 => format!("LPOP {key} {}", if few == 8 { 100_000 } else { 3 + few }),
        6 => format!("ZADD s {value} m{value}"),
        7 => format!(
            "ZADD s {} {value} m{few} {few} n{few}",
            ["CH", "NX", "XX CH"][few as usize % 3]
        ),
        8 => format!(
            "ZADD {} INCR {} m{few}",
            ["s", "z"][few as usize / 8],
            ["1", "2.5", "inf", "-inf", "none"][value as usize % 5]
        ),
        9 => format!("ZPOPMIN {key}"),
        10 => format!("ZPOPMAX {key}"),
        11 => format!("ZPOPMIN {key} {few}"),
        12 => format!(
            "SADD {} m{value} m{few} m{few}",
            ["t", "s"][few as usize / 8]
        ),
        13 => format!(
            "HSET h f{few} {value} f{value} {value}{}",
            ["", " odd"][few as usize / 8]
        ),
        14 => format!("HSET h f{value} {}", "v".repeat(1 + few as usize * 20)),
        _ => format!("DEL {key}"),
    }
}

#[test]
fn a_batch_replies_as_its_commands_one_by_one() {
    for seed in 0..8 {
        let random = SeededRandom::new(seed);
        let (together, alone) = (Bench::embedded(), Bench::embedded());
        for _ in 0..4 {
            let mut commands = Vec::new();
            while commands.len() < 120 {
                let times = 1 + random.below(12) as usize;
                commands.extend(vec![command(&random); times]);
            }
            let calls = commands.iter().map(|one| unplanned(one)).collect();
            let replies = submit(&together, calls);
            let expected: Vec<Reply> = commands.iter().map(|one| alone.run(one)).collect();
            assert_eq!(replies, expected, "{commands:?}");
            for left in [
                "LRANGE a 0 -1",
                "LRANGE b 0 -1",
                "ZRANGE s 0 -1 WITHSCORES",
                "ZRANGE z 0 -1 WITHSCORES",
                "SMEMBERS t",
                "HGETALL h",
                "KEYS *",
            ] {
                assert_eq!(together.run(left), alone.run(left));
            }
        }
    }
}

/// A command on the stream `t` with the groups `g` and `h`, or on another stream.
fn stream_command(random: &SeededRandom, last: &mut u64) -> String {
    let key = ["t", "t", "t", "u", "s"][random.below(5) as usize];
    let group = ["g", "g", "h", "none"][random.below(4) as usize];
    let consumer = random.below(3);
    let id = random.below(*last + 1);
    match random.below(12) {
        0..4 => {
            *last += 1 + random.below(2);
            format!("XADD {key} 0-{last} f {last}")
        }
        4..7 => {
            let count = 1 + random.below(3);
            format!("XREADGROUP GROUP {group} c{consumer} COUNT {count} STREAMS {key} >")
        }
        7 => format!("XREADGROUP GROUP {group} c{consumer} COUNT 2 NOACK STREAMS {key} >"),
        8 => format!("XACK {key} {group} 0-{id} 0-{} 0-{id}", id / 2),
        9 => format!("XACK {key} {group} 0-{id}"),
        10 => format!("XDEL {key} 0-{id}"),
        _ => format!("XGROUP SETID {key} {group} 0-{}", id / 2),
    }
}

#[test]
fn coalesced_reads_of_groups_reply_as_one_by_one() {
    for seed in 0..8 {
        let random = SeededRandom::new(seed);
        let (together, alone) = (Bench::embedded(), Bench::embedded());
        let made = ["g", "h"].map(|group| format!("XGROUP CREATE t {group} 0 MKSTREAM"));
        let mut commands = made.to_vec();
        commands.push("ZADD s 1 a".to_owned());
        if seed % 2 == 1 {
            commands.push("XGROUP SETPOLICY t h MAXTRIES 2 MINIDLE 0".to_owned());
        }
        let mut last = 0;
        for _ in 0..4 {
            while commands.len() < 120 {
                let one = stream_command(&random, &mut last);
                // Repeated commands coalesce.
                let times = if one.starts_with("XADD") {
                    1
                } else {
                    1 + random.below(12)
                };
                commands.extend(vec![one; times as usize]);
                let consumer = random.below(4);
                let read = "COUNT 1 STREAMS t >";
                commands.push(format!("XREADGROUP GROUP g c{consumer} {read}"));
                commands.push(format!("XREADGROUP GROUP g d{consumer} {read}"));
            }
            let calls = commands.iter().map(|one| unplanned(one)).collect();
            let replies = submit(&together, calls);
            let expected: Vec<Reply> = commands.iter().map(|one| alone.run(one)).collect();
            for (at, command) in commands.iter().enumerate() {
                assert_eq!(replies[at], expected[at], "{at}: {command}, seed {seed}");
            }
            commands.clear();
            let left = [
                "XRANGE t - +",
                "XPENDING t g",
                "XPENDING t h",
                "XPENDING t g IDLE 0 - + 1000",
                "XINFO GROUPS t",
            ];
            for left in left {
                assert_eq!(together.run(left), alone.run(left), "{left}");
            }
        }
    }
}

#[test]
fn coalescing_of_reads_ends_when_the_replies_grow_large() {
    let bench = Bench::embedded();
    bench.run("XGROUP CREATE t g 0 MKSTREAM");
    let value = "v".repeat(SUBMISSION_REPLY_BYTES_MAX / 8);
    for _ in 0..40 {
        bench.run(&format!("XADD t * f {value}"));
    }
    let read = "XREADGROUP GROUP g c COUNT 1 STREAMS t >";
    let calls = (0..41).map(|_| unplanned(read)).collect();
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert!(finished.replies.len() < 20, "{}", finished.replies.len());
    let rest = submit(&bench, finished.rest);
    assert_eq!(rest.len() + finished.replies.len(), 41);
    assert_eq!(rest.last(), Some(&Reply::NullArray));
}

#[test]
fn commands_of_many_clients_are_coalesced() {
    let bench = Bench::embedded();
    let pushes = (0..300).map(|n| {
        bench
            .executor
            .submit(vec![unplanned(&format!("RPUSH q {n}"))])
    });
    let pushed = bench.block_on(futures_util::future::join_all(pushes));
    // The order of the commands does not matter.
    let mut pushed: Vec<(Reply, usize)> = (pushed.into_iter().zip(0..))
        .map(|(one, n)| (one.unwrap().replies.remove(0), n))
        .collect();
    let by_length = |(length, _): &(Reply, usize)| match length {
        Reply::Integer(length) => *length,
        other => panic!("{other:?}"),
    };
    pushed.sort_by_key(by_length);
    assert!(pushed.iter().map(by_length).eq(1..=300));
    let order: Vec<String> = pushed.iter().map(|(_, n)| n.to_string()).collect();
    let order: Vec<&str> = order.iter().map(String::as_str).collect();
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&order));
    let pops = (0..301).map(|_| bench.executor.submit(vec![unplanned("LPOP q")]));
    let popped = bench.block_on(futures_util::future::join_all(pops));
    let popped = popped.into_iter().map(|one| one.unwrap().replies.remove(0));
    let mut popped: Vec<String> = popped.map(|reply| format!("{reply:?}")).collect();
    let mut expected: Vec<String> = order
        .iter()
        .map(|n| format!("{:?}", Reply::bulk(n.to_string())))
        .chain([format!("{:?}", Reply::Null)])
        .collect();
    popped.sort();
    expected.sort();
    assert_eq!(popped, expected);
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
}

#[test]
fn coalescing_of_pops_ends_when_the_replies_grow_large() {
    let bench = Bench::embedded();
    let value = "v".repeat(SUBMISSION_REPLY_BYTES_MAX / 8);
    for _ in 0..40 {
        bench.run(&format!("RPUSH q {value}"));
    }
    let calls = (0..40).map(|_| unplanned("LPOP q")).collect();
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert!(finished.replies.len() < 20, "{}", finished.replies.len());
    assert_eq!(
        submit(&bench, finished.rest).len() + finished.replies.len(),
        40
    );
}

#[test]
fn coalesced_pops_of_random_members_pop_each_once() {
    // Few members are stored in the set's own row, many in separate rows.
    for members in [10, 700] {
        let bench = Bench::embedded();
        let mut expected: Vec<String> = (0..members).map(|n| format!("m{n:03}")).collect();
        bench.run(&format!("SADD s {}", expected.join(" ")));
        let calls = (0..members + 3).map(|_| unplanned("SPOP s")).collect();
        let replies = submit(&bench, calls);
        let name = |reply: &Reply| match reply {
            Reply::Bulk(name) => String::from_utf8_lossy(name).into_owned(),
            other => panic!("{other:?}"),
        };
        let (popped, nothing) = replies.split_at(members);
        assert_eq!(nothing, [Reply::Null, Reply::Null, Reply::Null]);
        let mut popped: Vec<String> = popped.iter().map(name).collect();
        assert_ne!(popped, expected, "they are in random order");
        popped.sort();
        expected.sort();
        assert_eq!(popped, expected);
        assert_eq!(bench.run("EXISTS s"), Reply::Integer(0));
    }
}

#[test]
fn a_failure_of_coalesced_commands_leaves_nothing_and_each_gets_its_error() {
    let bench = Bench::embedded();
    bench.run("ZADD s 1 a");
    let calls = ["LPUSH s 1", "LPUSH s 2", "LPUSH t 3", "LPUSH t 4"].map(unplanned);
    let replies = submit(&bench, calls.into());
    let wrong = bench.run("LPUSH s 1");
    assert!(matches!(wrong, Reply::Error(_)));
    let expected = [wrong.clone(), wrong, Reply::Integer(1), Reply::Integer(2)];
    assert_eq!(replies, expected);
    assert_eq!(bench.run("LRANGE t 0 -1"), bulks(&["4", "3"]));
}
