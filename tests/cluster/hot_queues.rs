//! Queues that both servers pop from at the same time. They have no link here, so their pops
//! conflict and run again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use quoin_resp::reply::Reply;

use crate::bench::{Bench, Server, texts};

const ELEMENTS: usize = 3_000;
const CLIENTS_PER_SERVER: usize = 8;

/// Pops until there is nothing left.
async fn drain(server: Server, line: &'static str) -> Vec<usize> {
    let mut got = Vec::new();
    loop {
        let reply = server.run(line).await;
        assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
        let texts = texts(&reply);
        if texts.is_empty() {
            return got;
        }
        got.extend(texts.iter().map(|text| text.parse::<usize>().unwrap()));
    }
}

/// Makes clients of both servers run `lines` until the queue is empty. Checks that each element
/// came out once, and to each client in queue order.
fn drained_once(bench: &Bench, lines: [&'static str; 2]) {
    let clients = bench.servers.iter().flat_map(|server| {
        (0..CLIENTS_PER_SERVER).map(move |number| (server.clone(), lines[number % lines.len()]))
    });
    let drained = bench.block_on(join_all(clients.map(|(server, line)| async move {
        tokio::spawn(drain(server, line)).await.unwrap()
    })));
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    for got in &drained {
        assert!(got.is_sorted(), "order");
        for number in got {
            *times.entry(*number).or_default() += 1;
        }
    }
    report(bench);
    assert_eq!(times.len(), ELEMENTS, "lost");
    assert!(times.values().all(|times| *times == 1), "doubled");
    assert_eq!(bench.run(0, "EXISTS hot"), Reply::Integer(0));
}

fn report(bench: &Bench) {
    let [first, second] = [0, 1].map(|server| bench.servers[server].conflicts());
    println!("{}: {first} and {second} conflicts", bench.store);
}

fn fill(bench: &Bench, push: impl Fn(usize) -> String) {
    for number in (0..ELEMENTS).step_by(50) {
        let elements: String = (number..number + 50).map(&push).collect();
        let reply = bench.run(number / 50 % 2, elements.trim_end());
        assert!(matches!(reply, Reply::Integer(_)), "{reply:?}");
    }
}

/// The words of one command for fifty elements, the first of which carries the command.
fn words(command: &str, number: usize, element: &str) -> String {
    match number % 50 {
        0 => format!("{command} {element} "),
        _ => format!("{element} "),
    }
}

pub fn two_servers_pop_each_element_of_a_hot_list_once(bench: &Bench) {
    fill(bench, |number| {
        words("RPUSH hot", number, &number.to_string())
    });
    drained_once(bench, ["LPOP hot", "LPOP hot 3"]);
}

pub fn two_servers_pop_each_member_of_a_hot_sorted_set_once(bench: &Bench) {
    fill(bench, |number| {
        words("ZADD hot", number, &format!("{number} {number}"))
    });
    drained_once(bench, ["ZPOPMIN hot 1", "ZPOPMIN hot 4"]);
}

pub fn two_servers_pop_each_value_of_a_hot_priority_queue_once(bench: &Bench) {
    fill(bench, |number| {
        words("PQ.PUSH hot", number, &format!("{} {number}", number / 100))
    });
    // With a count, the replies are pairs, whose values `texts` shows.
    drained_once(bench, ["PQ.POPMIN hot 1", "PQ.POPMIN hot 2"]);
}

pub fn who_waits_on_both_servers_gets_each_element_once(bench: &Bench) {
    const PATIENCE: Duration = Duration::from_secs(60);
    let consume = |server: Server| async move {
        let mut got = Vec::new();
        loop {
            let reply = server.block("BLPOP hot 0", PATIENCE).await;
            match texts(&reply)[1].parse::<usize>() {
                Ok(number) => got.push(number),
                Err(_) => return got,
            }
        }
    };
    let consumers = 2 * CLIENTS_PER_SERVER;
    let got = bench.block_on(async {
        let consuming: Vec<_> = (0..consumers)
            .map(|number| tokio::spawn(consume(bench.servers[number % 2].clone())))
            .collect();
        for number in (0..ELEMENTS).step_by(10) {
            let elements = (number..number + 10).map(|number| format!(" {number}"));
            let line = format!("RPUSH hot{}", elements.collect::<String>());
            bench.servers[number / 10 % 2].run(&line).await;
        }
        for _ in 0..consumers {
            bench.servers[0].run("RPUSH hot end").await;
        }
        join_all(consuming).await
    });
    report(bench);
    let mut all: Vec<usize> = got.into_iter().flat_map(Result::unwrap).collect();
    all.sort_unstable();
    assert_eq!(all, (0..ELEMENTS).collect::<Vec<_>>());
}

pub fn a_hot_queue_that_is_renamed_and_pushed_to_loses_nothing(bench: &Bench) {
    const NAMES: [&str; 2] = ["hot", "cold"];
    fill(bench, |number| {
        words("RPUSH hot", number, &number.to_string())
    });
    let consume = |server: Server| async move {
        let mut got: Vec<usize> = Vec::new();
        let mut empty = 0;
        // Under one of its names the key does not exist, and just before the end under neither.
        while empty < 200 {
            for name in NAMES {
                let texts = texts(&server.run(&format!("LPOP {name} 2")).await);
                empty = if texts.is_empty() { empty + 1 } else { 0 };
                got.extend(texts.iter().map(|text| text.parse::<usize>().unwrap()));
            }
        }
        got
    };
    let got = bench.block_on(async {
        let consuming: Vec<_> = (0..CLIENTS_PER_SERVER)
            .map(|number| tokio::spawn(consume(bench.servers[number % 2].clone())))
            .collect();
        for round in 0..40 {
            let (from, to) = (NAMES[round % 2], NAMES[(round + 1) % 2]);
            bench.servers[round % 2]
                .run(&format!("RENAMENX {from} {to}"))
                .await;
            bench.servers[0]
                .run(&format!("RPUSH {to} {}", ELEMENTS + round))
                .await;
        }
        join_all(consuming).await
    });
    report(bench);
    let mut all: Vec<usize> = got.into_iter().flat_map(Result::unwrap).collect();
    // What was pushed after they had seen nothing for a long time.
    all.extend(bench.block_on(consume(bench.servers[0].clone())));
    all.sort_unstable();
    assert_eq!(all, (0..ELEMENTS + 40).collect::<Vec<_>>());
}
