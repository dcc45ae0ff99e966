//! Streams that two servers write, read and wait for.

use std::collections::BTreeSet;
use std::time::Duration;

use quoin_resp::reply::Reply;

use crate::bench::{Bench, bulk, bulks, texts};

const READ: &str = "XREADGROUP GROUP g a BLOCK 0 STREAMS s >";

fn read(number: u64) -> Reply {
    let fields = bulks(&["n", &number.to_string()]);
    let entry = Reply::Array(vec![bulk(&format!("{number}-0")), fields]);
    Reply::Keyed(vec![(bulk("s"), Reply::Array(vec![entry]))])
}

fn make_group(bench: &Bench) {
    bench.run(0, "DEL s t");
    let made = bench.run(0, "XGROUP CREATE s g 0 MKSTREAM");
    assert_eq!(made, Reply::OK);
}

pub fn an_entry_of_the_other_server_wakes_followers_and_a_consumer(bench: &Bench) {
    make_group(bench);
    for number in 1..=20 {
        let followers = [(); 2].map(|()| bench.wait(1, "XREAD BLOCK 0 STREAMS s $"));
        let several = bench.wait(1, "XREAD BLOCK 0 STREAMS r s $ $");
        let consumer = bench.wait(1, READ);
        bench.run(0, &format!("XADD s {number}-0 n {number}"));
        for follower in followers {
            assert_eq!(bench.served(follower), read(number));
        }
        assert_eq!(bench.served(several), read(number));
        assert_eq!(bench.served(consumer), read(number));
    }
}

pub fn who_waits_hears_that_the_other_server_has_removed_group_or_stream(bench: &Bench) {
    let no_group = "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for (line, expected) in [
        ("XGROUP DESTROY s g", no_group),
        ("DEL s", no_group),
        ("RENAME s t", no_group),
        ("FLUSHALL", no_group),
        ("SET s x", wrong_type),
    ] {
        make_group(bench);
        let waiting = bench.wait(1, READ);
        assert!(!matches!(bench.run(0, line), Reply::Error(_)), "{line}");
        let expected = Reply::Error(expected.to_owned());
        assert_eq!(bench.served(waiting), expected, "{line}");
    }
}

/// The group exists for so short a time that the other server finds no stream before and after.
pub fn who_waits_hears_that_a_group_is_gone_again(bench: &Bench) {
    for _ in 0..10 {
        bench.run(0, "DEL s");
        // Has the other server follow the stream.
        let follower = bench.wait(1, "XREAD BLOCK 0 STREAMS s $");
        std::thread::sleep(Duration::from_millis(50));
        let made = [
            "XGROUP CREATE s g 0 MKSTREAM",
            "XGROUP CREATECONSUMER s g a",
        ];
        bench.block_on(bench.servers[0].exec(&made));
        let waiting = bench.wait(1, READ);
        bench.run(0, "DEL s");
        assert!(matches!(bench.served(waiting), Reply::Error(_)));
        bench.run(0, "XADD s 1-0 n 1");
        assert_eq!(bench.served(follower), read(1));
    }
}

pub fn an_entry_that_is_idle_for_too_long_goes_to_who_waits_on_the_other_server(bench: &Bench) {
    for finder in [0, 1] {
        let reaper = bench.reap(finder);
        make_group(bench);
        bench.run(
            0,
            "XGROUP SETPOLICY s g MINIDLE 300 MAXTRIES 3 DEADLETTER t",
        );
        bench.run(0, "XADD s 1-0 n 1");
        assert_eq!(bench.run(0, READ), read(1));
        let waiting = bench.wait(1, READ);
        assert_eq!(bench.served(waiting), read(1));
        let waiting = bench.wait(0, READ);
        assert_eq!(bench.served(waiting), read(1));
        let dead = bench.wait(1, "XREAD BLOCK 0 STREAMS t 0");
        let mut waiting = bench.wait(0, READ);
        let letter = texts(&bench.served(dead));
        assert!(letter.ends_with(&["3".to_owned()]), "{letter:?}");
        assert!(waiting.is_waiting());
        bench.block_on(reaper.stop());
    }
}

pub fn two_servers_add_in_order_and_deliver_each_entry_once(bench: &Bench) {
    const EACH: u64 = 60;
    make_group(bench);
    let add = async |server: usize| {
        let mut last = (0, 0);
        for number in 0..EACH {
            let line = format!("XADD s * n {server}:{number}");
            let id = texts(&bench.servers[server].run(&line).await).concat();
            let (ms, seq) = id.split_once('-').unwrap();
            let id: (u64, u64) = (ms.parse().unwrap(), seq.parse().unwrap());
            assert!(id > last, "{id:?} after {last:?}");
            last = id;
        }
    };
    let consume = async |server: usize| {
        let mut taken = Vec::new();
        while taken.len() < EACH as usize {
            let line = format!("XREADGROUP GROUP g c{server} COUNT 1 STREAMS s >");
            let reply = bench.servers[server].run(&line).await;
            match texts(&reply).as_slice() {
                [_, id, _, value] => {
                    let line = format!("XACK s g {id}");
                    let acknowledged = bench.servers[1 - server].run(&line).await;
                    assert_eq!(acknowledged, Reply::Integer(1));
                    taken.push(value.clone());
                }
                _ => tokio::task::yield_now().await,
            }
        }
        taken
    };
    let (first, second, (), ()) =
        bench.block_on(async { tokio::join!(consume(0), consume(1), add(0), add(1)) });
    let all: BTreeSet<&String> = first.iter().chain(&second).collect();
    assert_eq!(all.len(), 2 * EACH as usize);
    assert_eq!(bench.run(0, "XLEN s"), Reply::Integer(2 * EACH as i64));
}
