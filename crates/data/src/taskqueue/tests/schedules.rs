//! Schedules, on the bench's clock.

use std::collections::BTreeMap;

use super::*;
use quoin_base::clock::Clock;
use quoin_engine::testing::START_MS;

const HOUR_MS: i64 = 3_600_000;

/// A page of TASK.SCHEDULES: the schedules by name.
fn schedules(bench: &Bench, key: &str) -> BTreeMap<String, Vec<(Reply, Reply)>> {
    let mut cursor = "0".to_owned();
    let mut all = BTreeMap::new();
    loop {
        let (next, some) =
            page(bench.run(&format!("TASK.SCHEDULES {key} CURSOR {cursor} COUNT 3")));
        assert!(some.len() <= 3);
        for fields in some {
            assert!(all.insert(text(&field(&fields, "name")), fields).is_none());
        }
        cursor = next;
        if cursor == "0" {
            return all;
        }
    }
}

fn of(bench: &Bench, name: &str, part: &str) -> Reply {
    field(&schedules(bench, "q")[name], part)
}

fn next_ms(bench: &Bench, name: &str) -> i64 {
    match of(bench, name, "next-ms") {
        Reply::Integer(at_ms) => at_ms,
        other => panic!("{other:?}"),
    }
}

/// Sets a schedule. `_` stands for a space within a word.
fn schedule(bench: &Bench, line: &str) -> Reply {
    let words: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    bench.run_words(&words)
}

/// The ids of the ready tasks.
fn ready(bench: &Bench) -> Vec<String> {
    listed_ids(bench, "q", "READY", 1_000)
}

/// The ids of the tasks that a schedule `s` adds at these times after the start.
fn at(times_ms: &[i64]) -> Vec<String> {
    let ids = times_ms.iter();
    ids.map(|time_ms| format!("s@{}", START_MS + time_ms))
        .collect()
}

#[test]
fn a_task_is_added_again_and_again() {
    on_both_stores(|bench| {
        let set =
            bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 2.5 work NEEDS gb 2 MAXTRIES 3 TTL 60000");
        assert_eq!(set, Reply::Integer(START_MS + 5_000));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        bench.clock.advance_ms(4_999);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(0));
        bench.clock.advance_ms(101);
        reap(bench);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(1));
        bench.clock.advance_ms(5_000);
        reap(bench);
        assert_eq!(ready(bench), at(&[5_000, 10_000]));
        let Reply::Map(task) = bench.run(&format!("TASK.GET q {}", at(&[10_000])[0])) else {
            panic!("no task");
        };
        assert_eq!(field(&task, "priority"), Reply::Double(2.5));
        assert_eq!(field(&task, "payload"), bulk("work"));
        assert_eq!(field(&task, "maxtries"), Reply::Integer(3));
        assert_eq!(
            field(&task, "expires-ms"),
            Reply::Integer(START_MS + 70_100)
        );
        assert_eq!(
            field(&task, "needs"),
            Reply::Map(vec![(bulk("gb"), Reply::Double(2.0))])
        );
        assert_eq!(of(bench, "s", "last-ms"), Reply::Integer(START_MS + 10_000));
        assert_eq!(next_ms(bench, "s"), START_MS + 15_000);
    });
}

#[test]
fn a_cron_expression_follows_the_clocks_of_its_zone() {
    on_both_stores(|bench| {
        schedule(
            bench,
            "TASK.SCHEDULE q s CRON 30_2_*_*_* TZ europe/berlin TASK 1 x",
        );
        assert_eq!(of(bench, "s", "cron"), bulk("30 2 * * *"));
        assert_eq!(of(bench, "s", "tz"), bulk("Europe/Berlin"));
        schedule(bench, "TASK.SCHEDULE q utc CRON 30_2_*_*_* TASK 1 x");
        assert_eq!(of(bench, "utc", "tz"), bulk("UTC"));
        // The bench's clock begins in November.
        assert_eq!(next_ms(bench, "utc") - next_ms(bench, "s"), HOUR_MS);
        for _ in 0..3 {
            let due_ms = next_ms(bench, "utc");
            bench.clock.advance_ms(due_ms - bench.clock.now_ms());
            reap(bench);
        }
        assert_eq!(ready(bench).len(), 6);
    });
}

#[test]
fn a_consumer_that_waits_gets_the_task() {
    on_both_stores(|bench| {
        bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 1 x");
        let mut consumer = bench.wait("TASK.TAKE q LEASE 60000 BLOCK 0");
        assert!(consumer.is_waiting());
        bench.clock.advance_ms(5_100);
        reap(bench);
        assert_eq!(ids(&consumer.reply(bench)), at(&[5_000]));
    });
}

#[test]
fn moments_that_nobody_served_are_one_all_or_none() {
    on_both_stores(|bench| {
        for (word, expected) in [
            ("", at(&[60_000])),
            (" MISSED ONCE", at(&[60_000])),
            (" MISSED ALL", at(&[20_000, 40_000, 60_000])),
            (" MISSED SKIP", at(&[60_000])),
        ] {
            let bench = &bench_like(bench);
            bench.run(&format!("TASK.SCHEDULE q s EVERY 20000{word} TASK 1 x"));
            bench.clock.advance_ms(79_999);
            reap(bench);
            assert_eq!(ready(bench), expected, "{word}");
            assert_eq!(next_ms(bench, "s"), START_MS + 80_000);
        }
        // More than a minute late.
        for (word, expected) in [
            ("ONCE", at(&[HOUR_MS])),
            ("ALL", at(&[HOUR_MS])),
            ("SKIP", Vec::new()),
        ] {
            let bench = &bench_like(bench);
            bench.run(&format!(
                "TASK.SCHEDULE q s EVERY {HOUR_MS} MISSED {word} TASK 1 x"
            ));
            bench.clock.advance_ms(HOUR_MS + 61_000);
            reap(bench);
            assert_eq!(ready(bench), expected, "{word}");
            assert_eq!(next_ms(bench, "s"), START_MS + 2 * HOUR_MS);
        }
    });
}

/// A new bench of the same kind.
fn bench_like(bench: &Bench) -> Bench {
    match bench.store.capabilities().has_other_writers {
        false => Bench::embedded(),
        true => Bench::cluster_like(),
    }
}

#[test]
fn many_moments_with_large_payloads_take_several_passes() {
    on_both_stores(|bench| {
        let large = "x".repeat(60_000);
        bench.run(&format!(
            "TASK.SCHEDULE q s EVERY 1000 MISSED ALL TASK 1 {large}"
        ));
        bench.clock.advance_ms(5_000_000);
        let mut reaper = Reaper::new(&bench.executor);
        bench.block_on(reaper.pass(&bench.executor)).unwrap();
        let some = ready(bench).len();
        assert!((1..1_000).contains(&some), "{some}");
        reap(bench);
        let all = ready(bench);
        assert_eq!(all.len(), 1_000);
        assert_eq!(all.last(), at(&[5_000_000]).last());
    });
}

#[test]
fn two_servers_add_the_task_of_a_moment_once() {
    let bench = Bench::cluster_like();
    bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 1 x");
    bench.clock.advance_ms(5_100);
    let (one, _) = super::timers::begin_pass(&bench, 0);
    let (other, _) = super::timers::begin_pass(&bench, 0);
    bench.block_on(one.commit()).unwrap();
    assert!(bench.block_on(other.commit()).is_err());
    assert_eq!(ready(&bench), at(&[5_000]));
    reap(&bench);
    assert_eq!(ready(&bench), at(&[5_000]));
}

#[test]
fn a_schedule_that_is_set_again_keeps_its_moment_and_its_pause() {
    on_both_stores(|bench| {
        bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 1 x");
        bench.clock.advance_ms(3_000);
        let again = bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 2 y");
        assert_eq!(again, Reply::Integer(START_MS + 5_000));
        let other = bench.run("TASK.SCHEDULE q s EVERY 7000 TASK 2 y");
        assert_eq!(other, Reply::Integer(START_MS + 10_000));
        bench.clock.advance_ms(7_100);
        reap(bench);
        assert_eq!(ready(bench), at(&[10_000]));
        assert_eq!(bench.run("TASK.PAUSE q SCHEDULE s"), Reply::Integer(1));
        let paused = bench.run("TASK.SCHEDULE q s EVERY 1000 TASK 2 y");
        assert_eq!(paused, Reply::Integer(-1));
        assert_eq!(of(bench, "s", "paused"), Reply::Integer(1));
        bench.clock.advance_ms(50_000);
        reap(bench);
        assert_eq!(ready(bench), at(&[10_000]));
    });
}

#[test]
fn a_paused_schedule_adds_nothing_and_goes_on_with_the_next_moment() {
    on_both_stores(|bench| {
        bench.run("TASK.SCHEDULE q s EVERY 5000 MISSED ALL TASK 1 x");
        assert_eq!(bench.run("TASK.PAUSE q schedule s"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.PAUSE q SCHEDULE s"), Reply::Integer(0));
        // Consumers are not paused.
        bench.run("TASK.ADD q 1 x ID own");
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["own"]);
        bench.clock.advance_ms(12_000);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.RESUME q SCHEDULE s"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.RESUME q SCHEDULE s"), Reply::Integer(0));
        assert_eq!(next_ms(bench, "s"), START_MS + 15_000);
        bench.clock.advance_ms(3_100);
        reap(bench);
        assert_eq!(ready(bench), at(&[15_000]));
        // A paused queue gets its tasks, but hands out none.
        bench.run("TASK.PAUSE q");
        bench.clock.advance_ms(5_000);
        reap(bench);
        assert_eq!(ready(bench), at(&[15_000, 20_000]));
        let missing = error("ERR no such schedule");
        for line in ["TASK.PAUSE q SCHEDULE t", "TASK.RESUME none SCHEDULE s"] {
            assert_eq!(bench.run(line), missing, "{line}");
        }
        assert_eq!(bench.run("EXISTS none"), Reply::Integer(0));
    });
}

#[test]
fn a_schedule_that_is_removed_adds_nothing_and_the_key_goes_with_the_last() {
    on_both_stores(|bench| {
        for name in ["a", "b", "c", "d"] {
            bench.run(&format!("TASK.SCHEDULE q {name} EVERY 5000 TASK 1 x"));
        }
        let names: Vec<String> = schedules(bench, "q").into_keys().collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!(bench.run("TASK.UNSCHEDULE q a c x"), Reply::Integer(2));
        bench.clock.advance_ms(5_100);
        reap(bench);
        assert_eq!(ready(bench).len(), 2);
        assert_eq!(bench.run("TASK.UNSCHEDULE q b d"), Reply::Integer(2));
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(2));
        bench.run("TASK.TAKE q COUNT 2");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        bench.run("TASK.SCHEDULE q a EVERY 5000 TASK 1 x");
        bench.run("TASK.UNSCHEDULE q a");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.UNSCHEDULE q a"), Reply::Integer(0));
        bench.clock.advance_ms(50_000);
        reap(bench);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_full_queue_misses_moments_and_tells_it() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXLEN 1");
        bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 1 x");
        bench.clock.advance_ms(5_100);
        reap(bench);
        assert_eq!(of(bench, "s", "error"), Reply::Null);
        bench.clock.advance_ms(5_000);
        reap(bench);
        assert_eq!(ready(bench), at(&[5_000]));
        assert_eq!(of(bench, "s", "error"), bulk("FULL Task queue is full"));
        assert_eq!(of(bench, "s", "last-ms"), Reply::Integer(START_MS + 5_000));
        bench.run("TASK.TAKE q");
        bench.clock.advance_ms(5_000);
        reap(bench);
        assert_eq!(ready(bench), at(&[15_000]));
        assert_eq!(of(bench, "s", "error"), Reply::Null);
    });
}

#[test]
fn a_token_keeps_the_task_of_a_moment_away_while_another_is_there() {
    on_both_stores(|bench| {
        bench.run("TASK.SCHEDULE q s EVERY 5000 TASK 1 x UNIQUE t 12000");
        for _ in 0..4 {
            bench.clock.advance_ms(5_000);
            reap(bench);
        }
        assert_eq!(ready(bench), at(&[5_000, 20_000]));
    });
}

#[test]
fn schedules_go_along_with_copies_names_and_dumps() {
    on_both_stores(|bench| {
        for tasks in 0..2 {
            for number in 0..8 {
                schedule(
                    bench,
                    &format!(
                        "TASK.SCHEDULE q s{number} CRON {number}_*_*_*_* TASK 1 x NEEDS gb 1 UNIQUE t 1000"
                    ),
                );
            }
            bench.run(
                "TASK.SCHEDULE q every EVERY 60000 MISSED ALL TASK 1 x DELAY 5 MAXTRIES 0 TTL 0",
            );
            bench.run("TASK.PAUSE q SCHEDULE s3");
            bench.run("TASK.SCHEDULE q late EVERY 31557600000000 TASK 1 x");
            if tasks == 1 {
                bench.run("TASK.ADD q 1 x ID left UNIQUE u 60000");
            }
            let expected = schedules(bench, "q");
            assert_eq!(expected.len(), 10);
            bench.run("COPY q copy");
            bench.run("RENAME copy renamed");
            let Reply::Bulk(payload) = bench.run("DUMP q") else {
                panic!("no payload");
            };
            bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
            super::dumping::load_chunks(bench, bench, "loaded", 2);
            for key in ["renamed", "restored", "loaded"] {
                assert_eq!(schedules(bench, key), expected, "{key}");
            }
            bench.clock.advance_ms(HOUR_MS);
            reap(bench);
            for key in ["q", "renamed", "restored", "loaded"] {
                // All except the paused one, and one for each minute. All schedules named s… share
                // a token.
                let added = 1 + 60 + tasks;
                assert_eq!(
                    bench.run(&format!("TASK.LEN {key}")),
                    Reply::Integer(added),
                    "{key}"
                );
            }
            bench.run("DEL q renamed restored loaded");
            bench.clock.advance_ms(HOUR_MS);
            reap(bench);
            assert_eq!(bench.run("DBSIZE"), Reply::Integer(0));
        }
    });
}

#[test]
fn a_payload_with_a_schedule_that_no_client_can_set_is_refused() {
    use quoin_layout::{TaskMissed, TaskSchedule, TaskSpec, TaskTiming, TaskUnique};
    use quoin_rdb::{DumpedKept, DumpedKeptKind, DumpedOptions, TaskQueueWriter};
    let sound = TaskSchedule {
        next_ms: START_MS + 5_000,
        last_ms: 0,
        error: "".into(),
        timing: TaskTiming::Cron {
            expression: "* * * * *".into(),
            zone: "UTC".into(),
        },
        missed: TaskMissed::Once,
        task: TaskSpec {
            priority: 1.0,
            needs: vec![("gb".into(), 1.0)],
            payload: "x".into(),
            ..TaskSpec::default()
        },
    };
    let payload = |schedule: &TaskSchedule, until_ms: i64| {
        let mut writer = TaskQueueWriter::new(0, &[], &DumpedOptions::default());
        writer.push_kept(&DumpedKept {
            kind: DumpedKeptKind::Schedule,
            name: "s".into(),
            until_ms,
            value: schedule.encode().into(),
        });
        writer.finish()
    };
    let bench = Bench::embedded();
    let restore = |payload: &[u8]| bench.run_words(&[b"RESTORE", b"q", b"0", payload]);
    let refused = error("ERR Bad data format");
    assert_eq!(restore(&payload(&sound, START_MS)), refused);
    type Change = fn(&mut TaskSchedule);
    let changes: [Change; 11] = [
        |bad| bad.task.priority = f64::NAN,
        |bad| bad.task.needs.push(("gb".into(), 1.0)),
        |bad| bad.task.needs = vec![("count".into(), 1.0)],
        |bad| bad.task.needs = vec![("gb".into(), f64::INFINITY)],
        |bad| bad.task.delay_ms = -1,
        |bad| {
            bad.task.unique = Some(TaskUnique {
                token: "t".into(),
                window_ms: 0,
            });
        },
        |bad| bad.task.group = Some("".into()),
        |bad| bad.task.group = Some(vec![b'g'; 257].into()),
        |bad| bad.error = vec![b'e'; 257].into(),
        |bad| {
            bad.timing = TaskTiming::Every {
                every_ms: 999,
                from_ms: 0,
            }
        },
        |bad| {
            bad.timing = TaskTiming::Cron {
                expression: "* * * * *".into(),
                zone: "Nowhere".into(),
            }
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut bad = sound.clone();
        change(&mut bad);
        assert_eq!(restore(&payload(&bad, bad.next_ms)), refused, "{number}");
    }
    assert_eq!(restore(&payload(&sound, sound.next_ms)), Reply::OK);
    assert_eq!(schedules(&bench, "q").len(), 1);
}

#[test]
fn what_is_not_understood_is_refused() {
    on_both_stores(|bench| {
        for (line, message) in [
            (
                "TASK.SCHEDULE q s EVERY 999 TASK 1 x",
                "ERR EVERY is out of range, must be at least 1000 milliseconds",
            ),
            (
                "TASK.SCHEDULE q s EVERY x TASK 1 x",
                "ERR EVERY is not an integer or out of range",
            ),
            (
                "TASK.SCHEDULE q s EVERY 5000 TASK x x",
                "ERR priority is not a valid float",
            ),
            (
                "TASK.SCHEDULE q s CRON 0_0_30_2_* TASK 1 x",
                "ERR cron expression never comes true",
            ),
            (
                "TASK.SCHEDULE q s CRON *_* TASK 1 x",
                "ERR cron expression is not valid: it must have 5 or 6 fields",
            ),
            (
                "TASK.SCHEDULE q s CRON *_*_*_*_* TZ Europe/Nowhere TASK 1 x",
                "ERR time zone is not known",
            ),
        ] {
            assert_eq!(schedule(bench, line), error(message), "{line}");
        }
        let long = "n".repeat(257);
        let message = "ERR name of a schedule must have 1 to 256 bytes";
        assert_eq!(
            bench.run(&format!("TASK.SCHEDULE q {long} EVERY 5000 TASK 1 x")),
            error(message)
        );
        let long = "p".repeat(65_537);
        let message = "ERR payload of a schedule has more than 65536 bytes";
        assert_eq!(
            bench.run(&format!("TASK.SCHEDULE q s EVERY 5000 TASK 1 {long}")),
            error(message)
        );
        for line in [
            "TASK.SCHEDULE q s EVERY 5000 TASK 1 x ID a",
            "TASK.SCHEDULE q s EVERY 5000 TZ UTC TASK 1 x",
            "TASK.SCHEDULE q s EVERY 5000 EVERY 5000 TASK 1 x",
            "TASK.SCHEDULE q s MISSED ALL MISSED ALL TASK 1 x",
            "TASK.SCHEDULE q s EVERY 5000 MISSED NEVER TASK 1 x",
            "TASK.SCHEDULE q s EVERY 5000 MISSED ALL TASK 1",
            "TASK.SCHEDULE q s EVERY 5000 MISSED ALL AND 1 x",
            "TASK.SCHEDULE q s MISSED ALL TASK 1 x y",
            "TASK.PAUSE q s",
            "TASK.PAUSE q SCHEDULE s t",
            "TASK.SCHEDULES q COUNT",
        ] {
            assert_eq!(bench.run(line), syntax_error(line), "{line}");
        }
        assert_eq!(
            bench.run("TASK.SCHEDULES q CURSOR 7"),
            error("ERR invalid cursor")
        );
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        bench.run("SET string x");
        assert!(matches!(
            bench.run("TASK.SCHEDULE string s EVERY 5000 TASK 1 x"),
            Reply::Error(_)
        ));
        assert!(matches!(
            bench.run("TASK.SCHEDULES string"),
            Reply::Error(_)
        ));
    });
}

/// Schedules of random commands, compared with a model.
#[test]
fn a_random_history_of_schedules_is_that_of_a_model() {
    struct Model {
        every_ms: i64,
        next_ms: i64,
        is_paused: bool,
        from_ms: i64,
        missed: &'static str,
    }
    for (seed, bench) in [
        (1, Bench::embedded()),
        (2, Bench::cluster_like()),
        (3, Bench::embedded()),
    ] {
        let random = SeededRandom::new(seed);
        let mut model: BTreeMap<String, Model> = BTreeMap::new();
        let mut expected: Vec<String> = Vec::new();
        for step in 0..400 {
            let told = format!("seed {seed} step {step}");
            let now_ms = bench.clock.now_ms();
            let name = format!("s{}", random.below(4));
            match random.below(8) {
                0 | 1 => {
                    let every_ms = 1_000 * (1 + random.below(20) as i64);
                    let missed = ["ONCE", "ALL", "SKIP"][random.below(3) as usize];
                    bench.run(&format!(
                        "TASK.SCHEDULE q {name} EVERY {every_ms} MISSED {missed} TASK 1 x"
                    ));
                    let one = model.entry(name).or_insert(Model {
                        every_ms: 0,
                        next_ms: 0,
                        is_paused: false,
                        from_ms: now_ms,
                        missed,
                    });
                    if one.every_ms != every_ms {
                        (one.every_ms, one.from_ms) = (every_ms, now_ms);
                        one.next_ms = now_ms + every_ms;
                    }
                    one.missed = missed;
                }
                2 => {
                    let removed = bench.run(&format!("TASK.UNSCHEDULE q {name}"));
                    let is_removed = model.remove(&name).is_some();
                    assert_eq!(removed, Reply::Integer(i64::from(is_removed)), "{told}");
                }
                3 => {
                    let word = if random.below(2) == 0 {
                        "PAUSE"
                    } else {
                        "RESUME"
                    };
                    let changed = bench.run(&format!("TASK.{word} q SCHEDULE {name}"));
                    let Some(one) = model.get_mut(&name) else {
                        assert_eq!(changed, error("ERR no such schedule"), "{told}");
                        continue;
                    };
                    let is_changed = one.is_paused != (word == "PAUSE");
                    assert_eq!(changed, Reply::Integer(i64::from(is_changed)), "{told}");
                    one.is_paused = word == "PAUSE";
                    if is_changed && !one.is_paused {
                        let since_ms = (now_ms - one.from_ms) % one.every_ms;
                        one.next_ms = now_ms - since_ms + one.every_ms;
                    }
                }
                4 => {
                    let mut taken = ids(&bench.run("TASK.TAKE q COUNT 10000"));
                    taken.sort();
                    expected.sort();
                    assert_eq!(taken, expected, "{told}");
                    expected.clear();
                    let exists = Reply::Integer(i64::from(!model.is_empty()));
                    assert_eq!(bench.run("EXISTS q"), exists, "{told}");
                }
                _ => {
                    let step_ms = [700, 3_000, 90_000][random.below(3) as usize];
                    bench.clock.advance_ms(step_ms);
                    // Timers are at multiples of this.
                    let now_ms = bench.clock.now_ms() / 100 * 100;
                    bench.clock.advance_ms(now_ms + 100 - bench.clock.now_ms());
                    let now_ms = now_ms + 100;
                    reap(&bench);
                    for (name, one) in &mut model {
                        if one.is_paused || one.next_ms > now_ms {
                            continue;
                        }
                        let mut due = Vec::new();
                        while one.next_ms <= now_ms {
                            due.push(one.next_ms);
                            one.next_ms += one.every_ms;
                        }
                        let from = match one.missed {
                            "ALL" => 0,
                            _ => due.len() - 1,
                        };
                        let is_late = |at_ms: &i64| one.missed == "SKIP" && now_ms - at_ms > 60_000;
                        let due = due[from..].iter().filter(|at_ms| !is_late(at_ms));
                        expected.extend(due.map(|at_ms| format!("{name}@{at_ms}")));
                    }
                    for (name, fields) in schedules(&bench, "q") {
                        let one = &model[&name];
                        let next_ms = if one.is_paused { -1 } else { one.next_ms };
                        assert_eq!(field(&fields, "next-ms"), Reply::Integer(next_ms), "{told}");
                    }
                }
            }
        }
    }
}
