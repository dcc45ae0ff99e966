//! Servers report to each other which keys become ready: enough for all waiting clients, and in
//! order.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::bench::{Bench, bulks, texts};

/// Many more than can be checked again in time if nothing is reported.
const MANY_KEYS: usize = 500;

pub fn all_who_wait_for_a_key_are_served_in_order(bench: &Bench) {
    let waiting: Vec<_> = (0..50).map(|_| bench.wait(1, "BLPOP list 0")).collect();
    for number in 0..50 {
        bench.run(0, &format!("RPUSH list {number}"));
    }
    for (number, waiting) in waiting.into_iter().enumerate() {
        let expected = bulks(&["list", &number.to_string()]);
        assert_eq!(bench.served(waiting), expected, "order");
    }
}

/// That the server has stopped listening is checked where the marks of servers can be seen
/// (`engine/src/relay`).
pub fn one_who_comes_back_after_nobody_has_waited_is_served(bench: &Bench) {
    let waiters = bench.servers[1].0.waiters();
    for value in ["a", "b"] {
        let given_up = bench.wait(1, "BLPOP second third 0");
        let elsewhere = bench.wait(1, "3:BZPOPMIN set 0");
        let served = bench.wait(1, "BLPOP first 0");
        bench.run(0, &format!("RPUSH first {value}"));
        assert_eq!(bench.served(served), bulks(&["first", value]));
        assert!(waiters.cancel(&given_up.waiter));
        assert!(waiters.cancel(&elsewhere.waiter));
        assert!(waiters.is_empty());
        if value == "a" {
            // The server listens for up to ten seconds more.
            std::thread::sleep(Duration::from_secs(11));
        }
    }
}

pub fn many_keys_are_told(bench: &Bench) {
    let waiting: Vec<_> = (0..MANY_KEYS)
        .map(|number| bench.wait(1, &format!("BLPOP list{number} 0")))
        .collect();
    let pusher = &bench.servers[0];
    bench.block_on(join_all((0..MANY_KEYS).map(|number| async move {
        pusher.run(&format!("RPUSH list{number} {number}")).await;
    })));
    let started = Instant::now();
    for (number, waiting) in waiting.into_iter().enumerate() {
        let reply = texts(&bench.served(waiting));
        assert_eq!(reply, [format!("list{number}"), number.to_string()]);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}
