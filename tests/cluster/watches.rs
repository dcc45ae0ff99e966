//! The watches behind the wake-ups: how many there are, and what happens beyond their bound.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::bench::{Bench, PATIENCE, bulks, texts};

/// The bound on watches of keys of this suite's benches.
pub const WATCHES_MAX: usize = 20;

fn waits_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn one_watch_serves_all_who_wait_for_a_key(bench: &Bench) {
    let waiting: Vec<_> = (0..50).map(|_| bench.wait(1, "BLPOP list 0")).collect();
    let watches = || bench.servers[1].0.open_watches();
    // The key's and its database's.
    waits_for("two watches", || watches() == 2);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(watches(), 2);
    assert_eq!(bench.servers[0].0.open_watches(), 0);
    for number in 0..50 {
        bench.run(0, &format!("RPUSH list {number}"));
    }
    for (number, waiting) in waiting.into_iter().enumerate() {
        let expected = bulks(&["list", &number.to_string()]);
        assert_eq!(bench.served(waiting), expected, "order");
    }
}

pub fn watches_end_when_nobody_waits(bench: &Bench) {
    let waiters = bench.servers[1].0.waiters();
    let served = bench.wait(1, "BLPOP first 0");
    let given_up = bench.wait(1, "BLPOP second third 0");
    let elsewhere = bench.wait(1, "3:BZPOPMIN set 0");
    let watches = || bench.servers[1].0.open_watches();
    waits_for("a watch for each key and database", || watches() == 6);
    bench.run(0, "RPUSH first a");
    bench.served(served);
    assert!(waiters.cancel(&given_up.waiter));
    assert!(waiters.cancel(&elsewhere.waiter));
    assert!(waiters.is_empty());
    waits_for("no watch", || watches() == 0);
    // And they begin again.
    let waiting = bench.wait(1, "BLPOP first 0");
    waits_for("watches again", || watches() == 2);
    bench.run(0, "RPUSH first b");
    assert_eq!(bench.served(waiting), bulks(&["first", "b"]));
}

pub fn beyond_the_bound_keys_are_polled(bench: &Bench) {
    let count = 3 * WATCHES_MAX;
    let waiting: Vec<_> = (0..count)
        .map(|number| bench.wait(1, &format!("BLPOP list{number} 0")))
        .collect();
    let watches = || bench.servers[1].0.open_watches();
    waits_for("all watches", || watches() == WATCHES_MAX + 1);
    let pusher = &bench.servers[0];
    bench.block_on(join_all((0..count).map(|number| async move {
        pusher.run(&format!("RPUSH list{number} {number}")).await;
    })));
    let started = Instant::now();
    for (number, waiting) in waiting.into_iter().enumerate() {
        let reply = texts(&bench.served(waiting));
        assert_eq!(reply, [format!("list{number}"), number.to_string()]);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    waits_for("no watch", || watches() == 0);
}
