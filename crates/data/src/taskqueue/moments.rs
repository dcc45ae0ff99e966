//! The moments of a schedule: when it adds tasks.

use std::str::from_utf8;
use std::sync::LazyLock;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};

use crate::error::CommandError;
use quoin_base::limits::{TASK_LATE_MS, TASK_MISSED_MAX};
use quoin_layout::{TaskMissed, TaskTiming};

/// Number of years ahead in which a moment is searched for. Without this bound, a search for the
/// 30th of February takes as long as thousands of commands. The 29th of February recurs after at
/// most eight years.
const YEARS_AHEAD: i16 = 20;

/// Why there are no moments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoMoment {
    /// The expression is invalid, for this reason.
    #[error("cron expression is not valid: {0}")]
    Expression(String),
    /// The time zone does not exist.
    #[error("time zone is not known")]
    Zone,
    /// The expression has no moment.
    #[error("cron expression never comes true")]
    Never,
}

impl From<NoMoment> for CommandError {
    fn from(error: NoMoment) -> Self {
        Self::Text(format!("ERR {error}").into())
    }
}

/// What to do for a schedule whose next moment has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    /// The moments for which it adds a task, in order.
    pub(super) moments: Vec<i64>,
    /// Its next moment after now.
    pub(super) next_ms: i64,
}

/// What to do now for a schedule whose next moment was `next_ms`.
///
/// # Errors
/// If the moments cannot be computed any more, for example in a time zone that this version does
/// not know.
pub(super) fn due(
    timing: &TaskTiming,
    missed: TaskMissed,
    next_ms: i64,
    now_ms: i64,
) -> Result<Due, NoMoment> {
    let moments = Moments::new(timing, next_ms.min(now_ms))?;
    // The first one counts in any case, whatever a backward search finds.
    let last_ms = { moments.last_until(now_ms) }.map_or(next_ms, |at_ms| at_ms.max(next_ms));
    let mut passed = vec![last_ms];
    match missed {
        TaskMissed::Once => {}
        TaskMissed::Skip => passed.retain(|at_ms| now_ms.saturating_sub(*at_ms) <= TASK_LATE_MS),
        TaskMissed::All => {
            let mut first_ms = last_ms;
            while first_ms > next_ms && passed.len() < TASK_MISSED_MAX {
                let before_ms = moments.last_until(first_ms - 1);
                first_ms = before_ms.map_or(next_ms, |at_ms| at_ms.max(next_ms));
                passed.push(first_ms);
            }
            passed.reverse();
        }
    }
    Ok(Due {
        moments: passed,
        next_ms: first_after(timing, now_ms)?,
    })
}

/// The first moment after a time.
///
/// # Errors
/// If there is none, or the timing is not valid.
pub(super) fn first_after(timing: &TaskTiming, now_ms: i64) -> Result<i64, NoMoment> {
    let moment = Moments::new(timing, now_ms)?.first_after(now_ms);
    moment.ok_or(NoMoment::Never)
}

/// The name of a time zone as the database spells it.
///
/// # Errors
/// If there is no such zone.
pub(super) fn zone_name(name: &[u8]) -> Result<String, NoMoment> {
    let zone = zone(name)?;
    let known = zone.iana_name().ok_or(NoMoment::Zone)?;
    Ok(known.to_owned())
}

/// A timing whose moments can be computed.
enum Moments {
    Every { every_ms: i64, from_ms: i64 },
    Cron { cron: Box<Cron>, zone: TimeZone },
}

impl Moments {
    /// `from_ms`: before it, no moments are searched.
    fn new(timing: &TaskTiming, from_ms: i64) -> Result<Self, NoMoment> {
        Ok(match timing {
            TaskTiming::Every { every_ms, from_ms } => Self::Every {
                every_ms: (*every_ms).max(1),
                from_ms: *from_ms,
            },
            TaskTiming::Cron { expression, zone } => {
                let zone = self::zone(zone)?;
                let from = zoned(from_ms, &zone).ok_or(NoMoment::Never)?;
                let cron = Box::new(cron(expression, from.year())?);
                Self::Cron { cron, zone }
            }
        })
    }

    fn first_after(&self, now_ms: i64) -> Option<i64> {
        match self {
            Self::Every { every_ms, .. } => self.last_until(now_ms)?.checked_add(*every_ms),
            Self::Cron { cron, zone } => {
                let next = cron.find_next_occurrence(&zoned(now_ms, zone)?, false);
                Some(next.ok()?.timestamp().as_millisecond())
            }
        }
    }

    fn last_until(&self, now_ms: i64) -> Option<i64> {
        match self {
            Self::Every { every_ms, from_ms } => {
                let since_ms = now_ms.checked_sub(*from_ms)?.rem_euclid(*every_ms);
                now_ms.checked_sub(since_ms)
            }
            Self::Cron { cron, zone } => {
                let last = cron.find_previous_occurrence(&zoned(now_ms, zone)?, true);
                Some(last.ok()?.timestamp().as_millisecond())
            }
        }
    }
}

fn zone(name: &[u8]) -> Result<TimeZone, NoMoment> {
    // Not the machine's database: servers of one version agree, and a machine without a database
    // works too.
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    let name = from_utf8(name).map_err(|_| NoMoment::Zone)?;
    ZONES.get(name).map_err(|_| NoMoment::Zone)
}

/// A time in whole seconds, the precision of cron expressions.
fn zoned(at_ms: i64, zone: &TimeZone) -> Option<Zoned> {
    let time = Timestamp::from_second(at_ms.div_euclid(1_000)).ok()?;
    Some(Zoned::new(time, zone.clone()))
}

/// A cron expression with five fields, or six with seconds, or a word like `@daily`.
fn cron(expression: &[u8], from_year: i16) -> Result<Cron, NoMoment> {
    let wrong = |error: &dyn std::fmt::Display| NoMoment::Expression(error.to_string());
    let text = from_utf8(expression).map_err(|error| wrong(&error))?;
    let parser = |year| CronParser::builder().seconds(Seconds::Optional).year(year);
    if text.starts_with('@') {
        let parser = parser(Year::Disallowed).build();
        return parser.parse(text).map_err(|error| wrong(&error));
    }
    let seconds = match text.split_whitespace().count() {
        5 => "0 ",
        6 => "",
        _ => return Err(wrong(&"it must have 5 or 6 fields")),
    };
    let years = format!("{from_year}-{}", from_year.saturating_add(YEARS_AHEAD));
    let bounded = parser(Year::Required).build();
    let bounded = bounded.parse(&format!("{seconds}{text} {years}"));
    bounded.map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn timing(expression: &str, zone: &str) -> TaskTiming {
        TaskTiming::Cron {
            expression: Bytes::from(expression.to_owned()),
            zone: Bytes::from(zone.to_owned()),
        }
    }

    /// The first moments after a time.
    fn moments(timing: &TaskTiming, from: &str, count: usize) -> Vec<i64> {
        let mut at_ms = at(from);
        let mut found = Vec::new();
        for _ in 0..count {
            at_ms = first_after(timing, at_ms).unwrap();
            found.push(at_ms);
        }
        found
    }

    #[test]
    fn a_cron_expression_says_times_of_day() {
        for (expression, expected) in [
            ("*/15 * * * *", "2026-01-01T00:15:00Z"),
            ("30 4 * * *", "2026-01-01T04:30:00Z"),
            ("10 30 4 * * *", "2026-01-01T04:30:10Z"),
            ("0 9 * * MON-FRI", "2026-01-01T09:00:00Z"),
            ("0 0 L * *", "2026-01-31T00:00:00Z"),
            ("0 0 * * MON#2", "2026-01-12T00:00:00Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
            ("@hourly", "2026-01-01T01:00:00Z"),
        ] {
            let next = first_after(&timing(expression, "UTC"), at("2026-01-01T00:00:00Z"));
            assert_eq!(next, Ok(at(expected)), "{expression}");
        }
    }

    #[test]
    fn the_hour_that_a_day_lacks_or_has_twice_adds_no_task_more_or_less() {
        let daily = timing("30 2 * * *", "Europe/Berlin");
        let spring = moments(&daily, "2026-03-28T12:00:00Z", 2);
        assert_eq!(
            spring,
            [at("2026-03-29T01:00:00Z"), at("2026-03-30T00:30:00Z")]
        );
        let autumn = moments(&daily, "2026-10-24T12:00:00Z", 2);
        assert_eq!(
            autumn,
            [at("2026-10-25T00:30:00Z"), at("2026-10-26T01:30:00Z")]
        );
        // Half-hourly moments stay half an hour apart.
        let often = timing("*/30 * * * *", "Europe/Berlin");
        for from in ["2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"] {
            let found = moments(&often, from, 96);
            assert!(found.is_sorted_by(|one, next| next - one == 1_800_000));
        }
    }

    #[test]
    fn what_has_no_moments_is_told_at_once() {
        for expression in ["0 0 30 2 *", "0 0 31 2,4 *", "0 0 31 11 L"] {
            let next = first_after(&timing(expression, "UTC"), at("2026-01-01T00:00:00Z"));
            assert_eq!(next, Err(NoMoment::Never), "{expression}");
        }
        for expression in [
            "",
            "* * * *",
            "61 * * * *",
            "0 0 0 1 1 * 2026",
            "@never",
            "ä",
        ] {
            let next = first_after(&timing(expression, "UTC"), 0);
            assert!(matches!(next, Err(NoMoment::Expression(_))), "{expression}");
        }
        let nowhere = first_after(&timing("* * * * *", "Europe/Nowhere"), 0);
        assert_eq!(nowhere, Err(NoMoment::Zone));
    }

    #[test]
    fn a_zone_has_its_own_name() {
        assert_eq!(zone_name(b"europe/berlin").unwrap(), "Europe/Berlin");
        assert_eq!(zone_name(b"utc").unwrap(), "UTC");
        assert_eq!(zone_name(b""), Err(NoMoment::Zone));
        assert_eq!(zone_name(b"\xff"), Err(NoMoment::Zone));
    }

    #[test]
    fn of_many_moments_the_last_ones_count() {
        let each_second = timing("* * * * * *", "UTC");
        let now_ms = at("2026-01-01T00:00:00Z");
        let next_ms = at("2025-01-01T00:00:00Z");
        let due = due(&each_second, TaskMissed::All, next_ms, now_ms).unwrap();
        assert_eq!(due.moments.len(), TASK_MISSED_MAX);
        assert_eq!(due.moments.last(), Some(&now_ms));
        assert!(due.moments.is_sorted_by(|one, next| next - one == 1_000));
        assert_eq!(due.next_ms, now_ms + 1_000);
    }

    fn any_timing() -> impl Strategy<Value = TaskTiming> {
        let zones = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"];
        let zones = prop::sample::select(zones.to_vec());
        let cron = (
            prop_oneof![
                Just("*".to_owned()),
                Just("*/7".to_owned()),
                (0..60_u8).prop_map(|n| n.to_string())
            ],
            prop_oneof![
                Just("*".to_owned()),
                Just("*/5".to_owned()),
                (0..24_u8).prop_map(|n| n.to_string())
            ],
            prop_oneof![Just("*".to_owned()), (1..29_u8).prop_map(|n| n.to_string())],
            zones,
        );
        prop_oneof![
            cron.prop_map(|(minute, hour, day, zone)| timing(
                &format!("{minute} {hour} {day} * *"),
                zone
            )),
            (1_000..100_000_000_i64, 0..1_000_000_000_i64)
                .prop_map(|(every_ms, from_ms)| TaskTiming::Every { every_ms, from_ms }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However the passes are timed, together they add every moment with MISSED ALL.
        #[test]
        fn passes_at_any_times_add_the_same_moments(
            timing in any_timing(),
            start_ms in 1_600_000_000_000..1_900_000_000_000_i64,
            steps in prop::collection::vec(1..8_000_000_i64, 1..12),
        ) {
            let mut next_ms = first_after(&timing, start_ms).unwrap();
            let (mut now_ms, mut found) = (start_ms, Vec::new());
            for step_ms in steps {
                now_ms += step_ms;
                if next_ms > now_ms {
                    continue;
                }
                let some = due(&timing, TaskMissed::All, next_ms, now_ms).unwrap();
                if some.moments.len() >= TASK_MISSED_MAX {
                    return Ok(());
                }
                let once = due(&timing, TaskMissed::Once, next_ms, now_ms).unwrap();
                prop_assert_eq!(once.moments.last(), some.moments.last());
                prop_assert_eq!(once.next_ms, some.next_ms);
                prop_assert!(some.next_ms > now_ms);
                next_ms = some.next_ms;
                found.extend(some.moments);
            }
            let mut expected = Vec::new();
            let mut at_ms = first_after(&timing, start_ms).unwrap();
            while at_ms <= now_ms {
                expected.push(at_ms);
                at_ms = first_after(&timing, at_ms).unwrap();
            }
            prop_assert_eq!(found, expected);
        }
    }
}
