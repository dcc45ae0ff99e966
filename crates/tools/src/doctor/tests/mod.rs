//! A healthy store causes no findings. A store that was damaged on purpose is diagnosed, and
//! repaired if that is safe. Runs on a store with a single writer and on one with many.

mod damage;
mod delegation;
mod elements;
mod producers;
mod servers;
mod stream_groups;

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::examine::examine;
use super::target::DoctorTarget;
use super::*;
use crate::progress::ProgressLine;
use quoin_base::random::SeededRandom;
use quoin_engine::Reaper;
use quoin_engine::testing::Bench;
use quoin_layout::{Id, KeyName, Layout, Meta, StreamHead, ValueType, encode_length};
use quoin_resp::reply::Reply;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};
use quoin_store::{Isolation, RangeQuery, Transaction};

const CHECK: Options = Options {
    repairs: false,
    is_deep: true,
    is_offline: false,
};

const REPAIR: Options = Options {
    repairs: true,
    ..CHECK
};

fn on_both(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn random() -> Arc<SeededRandom> {
    static RANDOM: std::sync::OnceLock<Arc<SeededRandom>> = std::sync::OnceLock::new();
    Arc::clone(RANDOM.get_or_init(|| Arc::new(SeededRandom::new(5))))
}

/// The doctor's report.
fn lines(bench: &Bench, options: Options) -> Vec<Line> {
    let target = DoctorTarget {
        store: &*bench.store,
        layout: Layout::new("test"),
        clock: bench.clock.clone(),
        random: random(),
        repairs: options.repairs,
        is_deep: options.is_deep,
        is_offline: options.is_offline,
        is_standby: false,
        message_grace: Duration::ZERO,
        progress: ProgressLine::new(),
        shown: OnceCell::new(),
    };
    let mut lines = Vec::new();
    bench.block_on(examine(&target, &mut |line| lines.push(line.clone())));
    lines
}

fn line<'l>(lines: &'l [Line], check: &str) -> &'l Line {
    lines.iter().find(|line| line.check == check).unwrap()
}

fn assert_healthy(bench: &Bench) {
    for line in lines(bench, CHECK) {
        assert_eq!(line.level, Level::Ok, "{line}");
    }
}

/// Changes rows without the server's knowledge.
fn change(bench: &Bench, change: impl Fn(&dyn Transaction, &Layout)) {
    let transaction = bench.store.begin_write().unwrap();
    change(&*transaction, &Layout::new("test"));
    bench.block_on(transaction.commit()).unwrap();
}

/// Keys of all types and shapes.
fn fill(bench: &Bench) {
    let long = "v".repeat(200_000);
    let long_member = "m".repeat(2_000);
    let long_name = "n".repeat(1_000);
    for line in [
        format!("RPUSH list a b c {long}"),
        format!("RPUSH {long_name} a"),
        "LINSERT list BEFORE b between".to_owned(),
        format!("ZADD set 1 a 2 b 2.5 {long_member} 3 {long_member}x"),
        format!("PQ.PUSH pq 1 a 1.5 b 2 {long}"),
        "PEXPIRE pq 100000".to_owned(),
        "RPUSH drained a".to_owned(),
        "LPOP drained".to_owned(),
        "COPY list copied".to_owned(),
        "RENAME copied renamed".to_owned(),
        format!("COPY list {long_name}c"),
        "RPUSH replaced a b".to_owned(),
        "ZADD other 1 a".to_owned(),
        "RENAME other replaced".to_owned(),
        "TASK.ADD tasks 2 dead ID dead MAXTRIES 1".to_owned(),
        "TASK.TAKE tasks LEASE 10000000".to_owned(),
        "TASK.NACK tasks dead".to_owned(),
        "TASK.ADD tasks 1 later ID later DELAY 10000000".to_owned(),
        "TASK.ADD tasks 0 leased ID leased NEEDS gb 2".to_owned(),
        "TASK.TAKE tasks HAVING gb 4 LEASE 10000000".to_owned(),
        format!("TASK.ADD tasks 3 {long} ID ready NEEDS gb 3 cards 1"),
        "TASK.ADD tasks 4 x ID old TTL 10000000 UNIQUE token 10000000".to_owned(),
        "TASK.SETOPTIONS tasks MAXTRIES 3 DEADLETTER letters".to_owned(),
        "TASK.TAKE tasks LEASE 10000000".to_owned(),
        "TASK.ACK tasks old RESULT 1 KEEP 10000000".to_owned(),
        "TASK.ADD tasks 4 x ID old TTL 10000000".to_owned(),
        "TASK.SCHEDULE tasks s EVERY 10000000 TASK 1 x".to_owned(),
        "TASK.SCHEDULE tasks paused EVERY 10000000 TASK 1 x".to_owned(),
        "TASK.PAUSE tasks SCHEDULE paused".to_owned(),
        "XGROUP CREATE groups g 0 MKSTREAM".to_owned(),
        format!("XADD groups 1-0 field {long}"),
        "XADD groups 2-0 field value".to_owned(),
        "XADD groups 3-0 field value".to_owned(),
        "XREADGROUP GROUP g a COUNT 2 STREAMS groups >".to_owned(),
        format!("XREADGROUP GROUP g {long_name} STREAMS groups >"),
        "XDEL groups 2-0".to_owned(),
        format!("XGROUP CREATE groups {long_name} $"),
        "XADD produced IDMP gpu1 job7 * f v".to_owned(),
        format!("XADD produced IDMP {long_name} {long_name} * f v"),
    ] {
        let reply = bench.run(&line);
        assert!(!matches!(reply, Reply::Error(_)), "{line:.60}: {reply:?}");
    }
    bench.run_in(3, &[b"RPUSH", b"list", b"a"]);
    bench.run_in(4, &[b"RPUSH", b"list", b"a"]);
    bench.run_in(4, &[b"FLUSHDB"]);
    bench.run("SWAPDB 3 5");
    bench.run("TASK.ADD queue 1 job NEEDS gb 4");
}

/// More than fits into one page, and nodes above an order of tasks.
fn fill_more(bench: &Bench) {
    let mut commands = Vec::new();
    for number in 0..700 {
        commands.push(format!("RPUSH many:{number} a"));
        let gb = number % 5 + 1;
        commands.push(format!("TASK.ADD queue {number} job NEEDS gb {gb}"));
        commands.push(format!("ZADD large {number} m{number}"));
    }
    commands.push("TASK.TAKE queue COUNT 300 HAVING gb 4".to_owned());
    for reply in bench.run_all(&commands) {
        assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
    }
}

fn reap(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
}

#[test]
fn an_empty_store_is_healthy() {
    on_both(assert_healthy);
}

#[test]
fn a_store_with_everything_in_it_is_healthy() {
    on_both(|bench| {
        fill(bench);
        fill_more(bench);
        assert_healthy(bench);
        reap(bench);
        assert_healthy(bench);
        let before = bench.run("LRANGE list 0 -1");
        for line in lines(bench, REPAIR) {
            assert_eq!(line.level, Level::Ok, "{line}");
        }
        assert_eq!(bench.run("LRANGE list 0 -1"), before);
        assert_eq!(bench.run("LLEN many:77"), Reply::Integer(1));
    });
}

#[test]
fn a_paused_task_queue_without_tasks_is_kept() {
    on_both(|bench| {
        bench.run("TASK.PAUSE q");
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.CANCEL q a");
        for options in [CHECK, REPAIR] {
            let told = lines(bench, options);
            assert!(told.iter().all(|line| line.level == Level::Ok), "{told:?}");
            assert_eq!(line(&told, "keys").text, "1 key");
        }
        bench.run("TASK.ADD q 1 x ID b");
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
    });
}

#[test]
fn an_empty_key_of_a_type_that_exists_when_empty_is_kept() {
    on_both(|bench| {
        let name = KeyName::new(&Bytes::from_static(b"stream"));
        let data = Id {
            instance: 9,
            sequence: 9,
        };
        let namespace = Id {
            instance: 0,
            sequence: 0,
        };
        let meta = Meta {
            value_type: ValueType::Stream,
            data,
            expire_at_ms: None,
            long_name: None,
            inline: None,
            rank_levels: 0,
            fields_expire: false,
            is_kept: false,
        };
        let meta_key = Layout::new("test").meta_key(namespace, &name);
        change(bench, |transaction, layout| {
            transaction.set(&meta_key, &meta.encode());
            // What it stores in addition to elements.
            transaction.set(
                &layout.stream_head_key(data),
                &StreamHead::default().encode(),
            );
        });
        for options in [CHECK, REPAIR] {
            let told = lines(bench, options);
            assert!(told.iter().all(|line| line.level == Level::Ok), "{told:?}");
            assert_eq!(line(&told, "keys").text, "1 key");
        }
        change(bench, |transaction, layout| {
            let length_key = layout.length_key(&meta_key);
            transaction.set(&length_key, &encode_length(7, 0));
        });
        assert!(
            line(&lines(bench, REPAIR), "counters")
                .text
                .contains("repaired")
        );
        assert_eq!(bench.run("TYPE stream"), Reply::Simple("stream"));
        assert_healthy(bench);
    });
}

#[test]
fn what_it_measures_with_it_removes() {
    on_both(|bench| {
        let told = lines(bench, CHECK);
        assert!(line(&told, "latency").text.contains("ms"));
        let told = lines(bench, CHECK);
        assert!(!line(&told, "rows").text.contains("measured"), "{told:?}");
    });
}

#[test]
fn without_deep_no_element_is_counted() {
    on_both(|bench| {
        fill(bench);
        let told = lines(
            bench,
            Options {
                is_deep: false,
                ..CHECK
            },
        );
        assert!(line(&told, "counters").text.contains("--deep"));
        assert!(!told.iter().any(|line| line.check == "indexes"));
    });
}

#[test]
fn a_store_that_servers_use_meanwhile_raises_no_alarm() {
    let bench = Bench::cluster_like();
    fill(&bench);
    let executor = Arc::clone(&bench.executor);
    let store = Arc::clone(&bench.store);
    let clock = Arc::clone(&bench.clock);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let has_ended = Arc::clone(&stop);
    let doctor = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut told = Vec::new();
        for _ in 0..5 {
            let target = DoctorTarget {
                store: &*store,
                layout: Layout::new("test"),
                clock: clock.clone(),
                random: random(),
                repairs: true,
                is_deep: true,
                is_offline: false,
                is_standby: false,
                message_grace: Duration::ZERO,
                progress: ProgressLine::new(),
                shown: OnceCell::new(),
            };
            runtime.block_on(examine(&target, &mut |line| told.push(line.clone())));
        }
        has_ended.store(true, std::sync::atomic::Ordering::SeqCst);
        told
    });
    let mut round = 0;
    while !stop.load(std::sync::atomic::Ordering::SeqCst) {
        round += 1;
        for line in [
            format!("RPUSH busy a b c {round}"),
            "LPOP busy 3".to_owned(),
            "RENAME busy other".to_owned(),
            "RENAME other busy".to_owned(),
            format!("ZADD zset {round} m{} {round} n", round % 50),
            "ZPOPMIN zset".to_owned(),
            format!("TASK.ADD todo 1 x NEEDS gb {}", round % 3 + 1),
            "TASK.TAKE todo HAVING gb 2 LEASE 100000".to_owned(),
            "TASK.TAKE todo HAVING gb 3".to_owned(),
            format!("RPUSH e{} a", round % 30),
            format!("PEXPIRE e{} 100000", round % 30),
            format!("PERSIST e{}", (round + 7) % 30),
            format!("DEL e{}", (round + 15) % 30),
        ] {
            let reply = bench.run(&line);
            assert!(
                !matches!(&reply, Reply::Error(text) if !text.contains("no such key")),
                "{line}: {reply:?}"
            );
        }
    }
    for line in doctor.join().unwrap() {
        assert_eq!(line.level, Level::Ok, "{line}");
        assert!(!line.text.contains("repaired"), "{line}");
    }
    drop(executor);
}

#[test]
fn faults_of_the_store_raise_no_alarm_and_repairs_are_done_once() {
    let rates = FaultRates {
        conflict_ppm: 100_000,
        unknown_applied_ppm: 100_000,
        unknown_not_applied_ppm: 100_000,
        too_old_ppm: 5_000,
        unavailable_ppm: 0,
    };
    let bench = Bench::with(|store| {
        let random = Arc::new(SeededRandom::new(11));
        Arc::new(FaultyStore::new(OptimisticStore::new(store), rates, random))
    });
    bench.run("RPUSH list a b c");
    damage::change_until_done(&bench, |transaction, layout| {
        let key = damage::length_key(&bench, layout, "list");
        transaction.set(&key, &quoin_layout::encode_length(7, 0));
    });
    let told = lines(&bench, REPAIR);
    for line in &told {
        assert_eq!(line.level, Level::Ok, "{line}");
    }
    assert!(line(&told, "counters").text.contains("repaired"));
    assert_eq!(bench.run("LLEN list"), Reply::Integer(3));
}
