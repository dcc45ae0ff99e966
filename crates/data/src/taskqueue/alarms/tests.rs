use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::taskqueue::alarms::ALARM_STEP_MS;
use quoin_base::limits::TASK_TIME_MS_MAX;

const NOW_MS: i64 = 1_700_000_000_000;

proptest! {
    #[test]
    fn alarms_are_never_late_and_always_ahead(
        now_ms in 0..NOW_MS * 2,
        ahead_ms in prop_oneof![1..200_000i64, 1..10_000_000i64, 1..TASK_TIME_MS_MAX],
        hash: u64,
    ) {
        let at_ms = alarm_ms(now_ms, now_ms + ahead_ms, hash);
        prop_assert!(at_ms > now_ms);
        prop_assert!(at_ms < now_ms + ahead_ms + ALARM_STEP_MS);
        prop_assert!(at_ms <= now_ms + ALARM_FAR_MS);
    }
}

#[test]
fn what_is_due_already_has_an_alarm_at_once() {
    assert_eq!(alarm_ms(NOW_MS, NOW_MS, 7), NOW_MS);
    assert_eq!(alarm_ms(NOW_MS, NOW_MS - 950, 7), NOW_MS - 900);
}

#[test]
fn a_queue_has_few_alarms_however_many_leases_of_whatever_time_it_grants() {
    for lease_ms in [86_400_000, 3_000_000, 100_000] {
        let alarms: BTreeSet<i64> = (0..36_000)
            .map(|number| alarm_ms(NOW_MS + number * 100, NOW_MS + number * 100 + lease_ms, 7))
            .collect();
        // In an hour.
        assert!(alarms.len() <= 62, "{}", alarms.len());
    }
}

#[test]
fn alarms_of_different_queues_are_spread_out() {
    let alarms: BTreeSet<i64> = (0..100)
        .map(|number| alarm_ms(NOW_MS, NOW_MS + 86_400_000, number * 0x9e37_79b9))
        .collect();
    assert!(alarms.len() > 90, "{}", alarms.len());
}
