//! Tests blocks against a model, and which transactions conflict because of them.

use bytes::Bytes;

use quoin_base::random::{Random, SeededRandom};
use quoin_data::rows::ranks::{RankMaintenance, RankShape};
use quoin_data::unit::Unit;
use quoin_engine::testing::ranks::{
    SMALL, TINY, check_blocks, maintain, maintain_all, maintain_piece, maintain_wanted, meta,
};
use quoin_engine::testing::{Bench, planned};
use quoin_engine::{Executor, Reaper};
use quoin_resp::reply::Reply;
use quoin_store::faults::FaultRates;

fn text(reply: &Reply) -> String {
    format!("{reply:?}")
}

/// Compares two keys with the same elements, of which only one has blocks. Their replies must be equal.
fn check_same(bench: &Bench, name: &str, lines: &[String]) {
    if bench.run(&format!("COPY {name} plain REPLACE")) == Reply::Integer(0) {
        return;
    }
    assert_eq!(meta(bench, "plain").unwrap().rank_levels, 0);
    for line in lines {
        let other = line.replacen(&format!(" {name} "), " plain ", 1);
        assert_eq!(text(&bench.run(line)), text(&bench.run(&other)), "{line}");
    }
}

fn check_answers(bench: &Bench, random: &SeededRandom) {
    let mut lines = Vec::new();
    for _ in 0..6 {
        let member = random.below(MEMBERS);
        let (one, other) = (random.below(60) as i64 - 10, random.below(60) as i64 - 10);
        lines.extend([
            format!("ZRANK z m{member}"),
            format!("ZREVRANK z m{member} WITHSCORE"),
            format!("ZRANGE z {one} {other} WITHSCORES"),
            format!("ZRANGE z {one} {other} REV"),
            format!("ZCOUNT z {one} {other}"),
            format!("ZCOUNT z ({one} +inf"),
        ]);
    }
    check_same(bench, "z", &lines);
}

const MEMBERS: u64 = 60;

/// Makes some changes with pipelines, which are one batch, and with transactions that read between
/// writes.
fn change(bench: &Bench, random: &SeededRandom) {
    let mut lines = Vec::new();
    for _ in 0..=random.below(12) {
        let (member, score) = (random.below(MEMBERS), random.below(40));
        lines.push(match random.below(16) {
            0..=8 => format!("ZADD z {score} m{member}"),
            9 => format!("ZINCRBY z 7 m{member}"),
            10 | 11 => format!("ZREM z m{member} m{}", random.below(MEMBERS)),
            12 => format!("ZPOPMIN z {}", random.below(4)),
            13 => format!("ZPOPMAX z {}", random.below(4)),
            14 => format!("ZREMRANGEBYSCORE z {score} {}", score + 2),
            _ => format!("ZRANK z m{member}"),
        });
    }
    if random.below(40) == 0 {
        lines.push("ZREMRANGEBYRANK z 0 -1".to_owned());
    }
    if random.below(40) == 0 {
        lines.push("DEL z".to_owned());
    }
    for reply in bench.run_all(&lines) {
        assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
    }
}

fn compare_with_model(bench: &Bench, seed: u64) {
    let random = SeededRandom::new(seed);
    let mut levels_max = 0;
    for _ in 0..200 {
        change(bench, &random);
        if random.below(4) == 0 {
            maintain(bench, "z", &TINY);
        }
        levels_max = levels_max.max(check_blocks(bench, "z").len());
        check_answers(bench, &random);
    }
    assert!(levels_max > 1, "{levels_max}");
}

#[test]
fn ranks_are_those_of_a_set_without_blocks() {
    compare_with_model(&Bench::embedded(), 1);
}

#[test]
fn ranks_are_those_of_a_set_without_blocks_on_a_cluster() {
    compare_with_model(&Bench::cluster_like(), 2);
}

#[test]
fn so_they_are_in_priority_queues() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let random = SeededRandom::new(3);
        for round in 0..40 {
            let mut lines = Vec::new();
            for _ in 0..8 {
                let values: Vec<String> = (0..12)
                    .map(|value| format!("{} {round}-{value}", random.below(40)))
                    .collect();
                lines.push(format!("PQ.PUSH q {}", values.join(" ")));
                let end = if random.below(2) == 0 { "MIN" } else { "MAX" };
                lines.push(format!("PQ.POP{end} q {}", 1 + random.below(8)));
            }
            bench.run_all(&lines);
            if round % 3 == 0 {
                maintain(&bench, "q", &SMALL);
            }
            let blocks = check_blocks(&bench, "q");
            if round < 20 {
                continue;
            }
            assert!(blocks[0] > 20, "{blocks:?}");
            let (min, max) = (random.below(40), random.below(40));
            let start = 520 + random.below(400);
            let lines = [
                format!("PQ.COUNT q {min} {max}"),
                format!("PQ.COUNT q ({min} inf"),
                format!("PQ.RANGE q {start} {}", start + random.below(200)),
                format!("PQ.RANGE q {start} {} REV", start + random.below(20)),
            ];
            check_same(&bench, "q", &lines);
        }
    }
}

#[test]
fn a_read_in_a_transaction_sees_what_was_not_counted_yet() {
    let bench = Bench::embedded();
    for member in 0..40 {
        bench.run(&format!("ZADD z {member} m{member}"));
    }
    maintain(&bench, "z", &TINY);
    let lines = [
        "ZADD z -1 first",
        "ZRANK z m39",
        "ZREM z m3 m20",
        "ZRANK z m39",
    ];
    let lines = lines.map(str::to_owned);
    let replies = bench.run_all(&lines);
    assert_eq!(text(&replies[1]), text(&Reply::Integer(40)));
    assert_eq!(text(&replies[3]), text(&Reply::Integer(38)));
    check_blocks(&bench, "z");
}

#[test]
fn blocks_are_joined_when_members_go() {
    let bench = Bench::embedded();
    for member in 0..100 {
        bench.run(&format!("ZADD z {member} m{member}"));
    }
    maintain(&bench, "z", &TINY);
    let before = check_blocks(&bench, "z");
    bench.run("ZREMRANGEBYRANK z 0 79");
    // A block stays as long as a block of a higher level ends at the same place.
    for _ in &before {
        maintain(&bench, "z", &TINY);
    }
    let after = check_blocks(&bench, "z");
    assert!(before[0] > 20 && after[0] < 12, "{before:?} {after:?}");
}

#[test]
fn upkeep_begins_again_where_the_set_has_changed_between_two_pieces() {
    for meanwhile in [
        "RENAME other z",
        "DEL z",
        "ZREMRANGEBYRANK z 0 -1",
        "ZUNIONSTORE z 1 other",
    ] {
        for bench in [Bench::embedded(), Bench::cluster_like()] {
            for member in 0..100 {
                bench.run(&format!("ZADD z {member} m{member}"));
                bench.run(&format!("ZADD other {} o{member}", member - 50));
            }
            let first = maintain_piece(&bench.executor, "z", RankMaintenance::default(), &TINY);
            let mut from = bench.block_on(first);
            bench.run(meanwhile);
            for member in 0..100 {
                bench.run(&format!("ZADD z {member} m{member}"));
            }
            while let Some(place) = from {
                from = bench.block_on(maintain_piece(&bench.executor, "z", place, &TINY));
            }
            let blocks = check_blocks(&bench, "z");
            assert!(blocks[0] > 20, "{meanwhile}: {blocks:?}");
        }
    }
}

#[test]
fn upkeep_begins_again_where_the_block_is_gone_at_which_it_stopped() {
    let shape = RankShape {
        block_elements_max: 32,
        top_blocks_max: 1_000,
        ..TINY
    };
    let bench = Bench::cluster_like();
    for member in 0..100 {
        bench.run(&format!("ZADD z {member} m{member}"));
    }
    let first = maintain_piece(&bench.executor, "z", RankMaintenance::default(), &shape);
    let mut from = bench.block_on(first);
    // The work stopped before `m12`. Another server continues, and joins the block that ends there.
    maintain(&bench, "z", &shape);
    bench.run("ZREM z m10 m11");
    maintain(&bench, "z", &shape);
    for member in 0..40 {
        bench.run(&format!("ZADD z 13 x{member}"));
    }
    while let Some(place) = from {
        from = bench.block_on(maintain_piece(&bench.executor, "z", place, &shape));
    }
    check_blocks(&bench, "z");
}

#[test]
fn a_key_with_another_name_keeps_its_blocks() {
    let bench = Bench::embedded();
    for member in 0..40 {
        bench.run(&format!("ZADD z {member} m{member}"));
    }
    maintain(&bench, "z", &TINY);
    bench.run("RENAME z y");
    bench.run("ZREM y m3");
    let blocks = check_blocks(&bench, "y");
    assert!(blocks[0] > 1, "{blocks:?}");
    assert_eq!(text(&bench.run("ZRANK y m39")), text(&Reply::Integer(38)));
}

#[test]
fn blocks_go_with_their_set() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        for member in 0..40 {
            bench.run(&format!("ZADD z {member} m{member}"));
        }
        maintain(&bench, "z", &TINY);
        bench.run("ZPOPMIN z 40");
        if !bench.store.capabilities().has_other_writers {
            assert_eq!(meta(&bench, "z"), None);
            let mut reaper = Reaper::new(&bench.executor);
            while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
        } else {
            check_blocks(&bench, "z");
            bench.run("ZADD z 1 a");
            bench.run("DEL z");
        }
        assert_eq!(bench.data_rows(), 0);
    }
}

#[test]
fn a_command_that_reads_many_members_for_a_rank_gets_blocks() {
    let bench = Bench::embedded();
    let words: Vec<String> = (0..20_000)
        .map(|member| format!("{member} m{member}"))
        .collect();
    for some in words.chunks(1_000) {
        bench.run(&format!("ZADD z {}", some.join(" ")));
    }
    bench.run("ZRANK z m100");
    maintain_wanted(&bench);
    assert_eq!(meta(&bench, "z").unwrap().rank_levels, 0);
    let before = bench.run("ZCOUNT z 5000 14000");
    assert_eq!(text(&before), text(&Reply::Integer(9_001)));
    maintain_wanted(&bench);
    let blocks = check_blocks(&bench, "z");
    assert_eq!(blocks, [18]);
    assert_eq!(text(&bench.run("ZCOUNT z 5000 14000")), text(&before));
    assert!(bench.executor.environment().rank_wants.take().is_empty());
}

/// A set of 40 members with blocks, on a store with several writers.
fn blocks_of_cluster() -> Bench {
    let bench = Bench::cluster_like();
    for member in 0..40 {
        bench.run(&format!("ZADD z {member} m{member}"));
    }
    maintain(&bench, "z", &TINY);
    bench
}

fn conflicts(line: &str, meanwhile: &str) -> bool {
    blocks_of_cluster().race(line, meanwhile, false)
}

#[test]
fn counts_make_no_commands_conflict() {
    assert!(!conflicts("ZADD z 7.1 x", "ZADD z 7.2 y"));
    assert!(!conflicts("ZADD z 7.1 x", "ZREM z m7"));
    assert!(!conflicts("ZADD z 99 x", "ZADD z 99 y"));
    assert!(!conflicts("ZPOPMIN z", "ZADD z 1.5 x"));
    assert!(!conflicts("ZPOPMIN z", "ZPOPMAX z"));
    assert!(!conflicts("ZREM z m20", "ZREM z m21"));
}

/// Whether a command conflicts with upkeep that commits before it.
fn conflicts_with_upkeep(before: &[String], line: &str) -> bool {
    let bench = blocks_of_cluster();
    bench.run_all(before);
    let is_conflict = bench.race_against(&[line], false, || maintain(&bench, "z", &TINY));
    check_blocks(&bench, "z");
    is_conflict
}

#[test]
fn a_command_conflicts_with_upkeep_of_its_own_block_only() {
    let in_block: Vec<String> = (0..9).map(|n| format!("ZADD z 7.{n} x{n}")).collect();
    assert!(conflicts_with_upkeep(&in_block, "ZADD z 7.05 y"));
    assert!(!conflicts_with_upkeep(&in_block, "ZADD z 30.5 y"));
    assert!(!conflicts_with_upkeep(&[], "ZADD z 7.05 y"));
    let at_end: Vec<String> = (0..9).map(|n| format!("ZADD z 99 x{n}")).collect();
    assert!(conflicts_with_upkeep(&at_end, "ZADD z 98 y"));
    // No block ends after it.
    assert!(!conflicts_with_upkeep(&at_end, "ZADD z 100 y"));
    assert!(!conflicts_with_upkeep(&at_end, "ZADD z 2.5 y"));
}

#[test]
fn upkeep_conflicts_with_changes_of_the_elements_that_it_makes_blocks_of_only() {
    // The first transaction of upkeep works on the front.
    let conflicts = |fill: &str, meanwhile: &str| {
        let bench = Bench::cluster_like();
        for number in 0..100 {
            bench.run(&fill.replace('N', &number.to_string()));
        }
        let transaction = bench.store.begin_write().unwrap();
        let unit = Unit::new(&*transaction, bench.executor.environment());
        let context = unit.write_context(0);
        let (name, from) = (Bytes::from_static(b"k"), RankMaintenance::default());
        let maintained = bench.block_on(context.maintain_ranks(&name, &from, &TINY));
        assert!(maintained.unwrap().is_some());
        bench.run(meanwhile);
        bench.block_on(transaction.commit()).is_err()
    };
    let list = "RPUSH k a b c d e f g h";
    assert!(!conflicts(list, "RPUSH k x"));
    assert!(!conflicts(list, "RPOP k"));
    assert!(conflicts(list, "LPUSH k x"));
    assert!(conflicts(list, "LPOP k"));
    assert!(!conflicts("ZADD k N mN", "ZADD k 50.5 x"));
    assert!(!conflicts("ZADD k N mN", "ZPOPMAX k"));
    assert!(conflicts("ZADD k N mN", "ZADD k 0.5 x"));
    assert!(!conflicts("PQ.PUSH k N mN", "PQ.PUSH k 50 x"));
    assert!(conflicts("PQ.PUSH k N mN", "PQ.POPMIN k"));
}

#[test]
fn servers_and_their_upkeep_agree_whatever_fails() {
    for seed in 0..4 {
        let (bench, faulty) = Bench::faulty(seed);
        let other = bench.another_server();
        let random = SeededRandom::new(seed);
        faulty.set_rates(FaultRates {
            conflict_ppm: 100_000,
            unknown_not_applied_ppm: 50_000,
            unknown_applied_ppm: 50_000,
            ..FaultRates::default()
        });
        for _ in 0..60 {
            let line = |random: &SeededRandom| {
                let (member, score) = (random.below(MEMBERS), random.below(40));
                match random.below(8) {
                    0 => "ZPOPMIN z 3".to_owned(),
                    1 => format!("ZREM z m{member}"),
                    _ => format!("ZADD z {score} m{member}"),
                }
            };
            let lines: Vec<String> = (0..24).map(|_| line(&random)).collect();
            let (ours, theirs) = lines.split_at(12);
            bench.block_on(async {
                let run = async |executor: &Executor, lines: &[String]| {
                    for line in lines {
                        executor.submit(vec![planned(line)]).await.unwrap();
                    }
                };
                let maintained = maintain_all(&bench.executor, "z", &TINY);
                futures_util::join!(
                    run(&bench.executor, ours),
                    run(&other, theirs),
                    maintained,
                    maintain_all(&other, "z", &TINY)
                );
            });
        }
        faulty.set_rates(FaultRates::default());
        check_blocks(&bench, "z");
        check_answers(&bench, &random);
    }
}
