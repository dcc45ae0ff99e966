//! Elements that are pushed through one server and awaited on the other.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quoin_base::random::{Random, SystemRandom};
use quoin_resp::reply::Reply;

use crate::bench::{Bench, Server, bulks, texts};

/// Number of elements to hand over, unless `QUOIN_TEST_HAND_OVERS` says otherwise.
const HAND_OVERS: usize = 2_000;
const KEYS: usize = 10;
const FOR_EVER: Duration = Duration::from_secs(600);
/// A wake-up that only the slow poll delivered took longer than this.
const LATE: Duration = Duration::from_secs(10);

fn hand_overs() -> usize {
    std::env::var("QUOIN_TEST_HAND_OVERS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(HAND_OVERS)
}

/// Often none, otherwise up to some milliseconds, so that pushes coincide with every stage of a
/// wait.
async fn pause() {
    let drawn_us = SystemRandom.below(6_000);
    if drawn_us < 4_000 {
        tokio::time::sleep(Duration::from_micros(drawn_us)).await;
    }
}

/// Pushes `0..count` one after another, then `end` `ends` times. Returns when each was sent.
async fn produce(server: Server, key: usize, count: usize, ends: usize) -> Vec<Instant> {
    let mut sent = Vec::with_capacity(count);
    for number in 0..count {
        pause().await;
        sent.push(Instant::now());
        let line = match number % 3 {
            0 | 1 => format!("RPUSH list{key} {number}"),
            _ => format!("RPUSHX list{key} {number}"),
        };
        if push(&server, &line).await == 0 {
            // RPUSHX found the list empty.
            push(&server, &format!("RPUSH list{key} {number}")).await;
        }
    }
    for _ in 0..ends {
        push(&server, &format!("RPUSH list{key} end")).await;
    }
    sent
}

async fn push(server: &Server, line: &str) -> i64 {
    match server.run(line).await {
        Reply::Integer(length) => length,
        other => panic!("{line}: {other:?}"),
    }
}

/// Pops until the end. Returns what it got and when.
async fn consume(server: Server, key: usize, verb: &str) -> Vec<(usize, Instant)> {
    let mut got = Vec::new();
    loop {
        let line = match verb {
            "BLMPOP" => format!("BLMPOP 0 2 none{key} list{key} LEFT"),
            verb => format!("{verb} list{key} 0"),
        };
        // However long it takes, because a consumer on the producer's own server may always be
        // first.
        let reply = server.block(&line, FOR_EVER).await;
        let item = texts(&reply).pop().unwrap_or_else(|| panic!("{reply:?}"));
        match item.parse() {
            Ok(number) => got.push((number, Instant::now())),
            Err(_) => return got,
        }
        if SystemRandom.below(4) == 0 {
            pause().await;
        }
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

pub fn nothing_is_lost_or_doubled_with_random_pauses(bench: &Bench) {
    let each = hand_overs() / KEYS;
    let [first, second] = &bench.servers;
    let started = Instant::now();
    let outcome = bench.block_on(join_all((0..KEYS).map(|key| {
        let (near, far) = match key % 2 {
            0 => (first.clone(), second.clone()),
            _ => (second.clone(), first.clone()),
        };
        async move {
            // Of the odd pairs of keys both servers have a consumer.
            let is_shared = key % 4 >= 2;
            let producing =
                tokio::spawn(produce(near.clone(), key, each, 1 + usize::from(is_shared)));
            let verb = if key % 3 == 0 { "BLMPOP" } else { "BLPOP" };
            let mut consuming = vec![tokio::spawn(consume(far, key, verb))];
            if is_shared {
                consuming.push(tokio::spawn(consume(near, key, verb)));
            }
            let mut got = Vec::new();
            for consumer in consuming {
                got.push(consumer.await.unwrap());
            }
            (producing.await.unwrap(), got)
        }
    })));
    let elapsed = started.elapsed();
    let mut delays = Vec::new();
    for (sent, consumers) in &outcome {
        let mut times: BTreeMap<usize, usize> = BTreeMap::new();
        for got in consumers {
            assert!(got.windows(2).all(|pair| pair[0].0 < pair[1].0), "order");
            for (number, at) in got {
                *times.entry(*number).or_default() += 1;
                delays.push(at.duration_since(sent[*number]));
            }
        }
        assert_eq!(times.len(), each, "lost");
        assert!(times.values().all(|times| *times == 1), "doubled");
    }
    delays.sort();
    println!(
        "{}: {} hand-overs in {elapsed:.1?}: median {:?}, p99 {:?}, max {:?}; conflicts {} and {}",
        bench.store,
        delays.len(),
        percentile(&delays, 50),
        percentile(&delays, 99),
        percentile(&delays, 100),
        first.conflicts(),
        second.conflicts(),
    );
    assert!(percentile(&delays, 100) < LATE, "found by the poll only");
}

pub fn each_element_goes_to_one_of_two_waiters_on_two_servers(bench: &Bench) {
    for round in 0..30 {
        let first = bench.wait(0, "BLPOP list 0");
        let second = bench.wait(1, "BRPOP list 0");
        bench.run(round % 2, &format!("RPUSH list a{round} b{round}"));
        let mut got = texts(&bench.served(first));
        got.extend(texts(&bench.served(second)));
        got.retain(|text| text != "list");
        got.sort();
        assert_eq!(got, [format!("a{round}"), format!("b{round}")]);
        assert_eq!(bench.run(0, "EXISTS list"), Reply::Integer(0));
    }
}

pub fn one_consumer_sees_one_producer_in_order(bench: &Bench) {
    let [producer, consumer] = &bench.servers;
    let count = 200;
    let got = bench.block_on(async {
        let consuming = tokio::spawn(consume(consumer.clone(), 0, "BLPOP"));
        for number in (0..count).step_by(2) {
            let line = format!("RPUSH list0 {number} {}", number + 1);
            producer.run(&line).await;
        }
        producer.run("RPUSH list0 end").await;
        consuming.await.unwrap()
    });
    let got: Vec<usize> = got.into_iter().map(|(number, _)| number).collect();
    assert_eq!(got, (0..count).collect::<Vec<_>>());
}

pub fn a_wake_up_is_fast(bench: &Bench) {
    let mut delays = Vec::new();
    for round in 0..300 {
        let (wait, push, get) = match round % 4 {
            0 => ("BLPOP list 0", "RPUSH list x", bulks(&["list", "x"])),
            1 => ("BRPOP a list 0", "LPUSH list x", bulks(&["list", "x"])),
            2 => (
                "BLMOVE list other LEFT LEFT 0",
                "RPUSH list x",
                crate::bench::bulk("x"),
            ),
            _ => ("BZPOPMIN set 0", "ZADD set 0 x", bulks(&["set", "x"])),
        };
        let waiting = bench.wait(1, wait);
        bench.block_on(pause());
        let started = Instant::now();
        bench.run(0, push);
        let reply = bench.served(waiting);
        delays.push(started.elapsed());
        assert!(texts(&reply).starts_with(&texts(&get)), "{reply:?}");
    }
    delays.sort();
    let (median, late) = (percentile(&delays, 50), percentile(&delays, 99));
    println!(
        "{}: from the push on one server to the reply of the other: median {median:?}, p99 {late:?}, max {:?}",
        bench.store,
        percentile(&delays, 100)
    );
    // 10 ms on an otherwise idle machine.
    assert!(median < Duration::from_millis(100), "{median:?}");
}
