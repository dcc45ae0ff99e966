//! Blocks with counts: which commands get them, and what they cost.

use super::*;
use quoin_engine::testing::ranks::{SMALL, check_blocks, maintain, maintain_wanted};
use quoin_layout::RUN_ELEMENT_BYTES_MAX;

/// Fills a list with 20,000 elements, each in a row of its own.
fn fill_with_rows(bench: &Bench) {
    let width = RUN_ELEMENT_BYTES_MAX + 1;
    let words: Vec<String> = (0..20_000).map(|n| format!("{n:0width$}")).collect();
    for some in words.chunks(1_000) {
        bench.run(&format!("RPUSH l {}", some.join(" ")));
    }
}

fn index_of(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(bytes) => std::str::from_utf8(bytes).unwrap().parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_that_passes_many_rows_of_a_list_gets_blocks() {
    let bench = Bench::embedded();
    fill_with_rows(&bench);
    bench.run("LINDEX l 4000");
    maintain_wanted(&bench);
    assert!(check_blocks(&bench, "l").is_empty());
    assert_eq!(index_of(&bench.run("LINDEX l 9000")), 9_000);
    maintain_wanted(&bench);
    assert_eq!(check_blocks(&bench, "l"), [18]);
    for index in [0, 600, 9_000, 10_000, 15_000, 18_500, 19_999] {
        assert_eq!(index_of(&bench.run(&format!("LINDEX l {index}"))), index);
    }
    assert!(!bench.executor.environment().rank_wants.is_wanted());
}

#[test]
fn large_elements_among_runs_get_blocks_once() {
    let bench = Bench::embedded();
    let large = "x".repeat(9_000);
    let short = vec!["y"; 80].join(" ");
    for _ in 0..100 {
        let mut lines = vec![format!("RPUSH l {large}"); 31];
        lines.push(format!("RPUSH l {short}"));
        bench.run_all(&lines);
    }
    bench.run("LINDEX l 5555");
    assert!(bench.executor.environment().rank_wants.is_wanted());
    maintain_wanted(&bench);
    assert!(check_blocks(&bench, "l")[0] > 8);
    for index in (0..11_000).step_by(500) {
        bench.run(&format!("LINDEX l {index}"));
    }
    assert!(!bench.executor.environment().rank_wants.is_wanted());
}

#[test]
fn a_trim_of_much_drops_blocks_and_one_of_little_counts() {
    let bench = Bench::embedded();
    fill_with_rows(&bench);
    bench.run("LINDEX l 9000");
    maintain_wanted(&bench);
    bench.run("LTRIM l 1500 18999");
    let blocks = check_blocks(&bench, "l");
    assert_eq!(blocks, [18]);
    assert_eq!(index_of(&bench.run("LINDEX l 9000")), 10_500);
    bench.run("LTRIM l 5000 9999");
    assert_eq!(check_blocks(&bench, "l"), [0]);
    assert_eq!(index_of(&bench.run("LINDEX l 2500")), 9_000);
}

#[test]
fn counts_make_no_pushes_and_pops_conflict() {
    let conflicts = |line: &str, meanwhile: &str| {
        let bench = Bench::cluster_like();
        for _ in 0..100 {
            bench.run("RPUSH l a b c");
        }
        maintain(&bench, "l", &SMALL);
        assert!(check_blocks(&bench, "l")[0] > 1);
        let conflicts = bench.race(line, meanwhile, false);
        check_blocks(&bench, "l");
        conflicts
    };
    assert!(!conflicts("LPUSH l x", "LPUSH l y"));
    assert!(!conflicts("RPUSH l x", "RPUSH l y"));
    assert!(!conflicts("RPUSH l x", "RPOP l"));
    assert!(!conflicts("LPOP l", "RPUSH l y"));
    assert!(!conflicts("LPOP l", "RPOP l"));
    assert!(conflicts("LPOP l", "LPOP l"));
}
