//! Consumer groups on a store whose commits fail.

use super::*;
use quoin_store::faults::FaultRates;

const ENTRIES: usize = 24;

#[test]
fn an_entry_is_delivered_and_acknowledged_once_whatever_becomes_of_commits() {
    for seed in 1..4 {
        let (bench, faulty) = Bench::faulty(seed);
        fill(&bench, "s", ENTRIES);
        faulty.set_rates(FaultRates {
            conflict_ppm: 100_000,
            unknown_applied_ppm: 100_000,
            unknown_not_applied_ppm: 100_000,
            too_old_ppm: 10_000,
            ..FaultRates::default()
        });
        for number in 1..=ENTRIES {
            let consumer = number % 3;
            let line = format!("XREADGROUP GROUP g c{consumer} COUNT 1 STREAMS s >");
            assert_eq!(bench.run(&line), read("s", [number]), "seed {seed}");
            if number % 2 == 0 {
                let acknowledged = bench.run(&format!("XACK s g {number}-0"));
                assert_eq!(acknowledged, int(1), "seed {seed}");
            }
        }
        assert!(faulty.counts().total() > 0);
        faulty.set_rates(FaultRates::default());
        let left = (1..=ENTRIES).filter(|number| number % 2 == 1);
        let left = left.map(|number| pending(number, &format!("c{}", number % 3), 0, 1));
        assert_eq!(all_pending(&bench, "s"), Reply::Array(left.collect()));
        assert_eq!(info(&bench, "XINFO GROUPS s", "pending"), int(12));
        assert_eq!(info(&bench, "XINFO GROUPS s", "entries-read"), int(24));
    }
}
