//! Commands that take too long for a round.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::commands::Row;
use crate::commands::flags::Flags;

/// The commands of a round may take this long.
const RUN_MAX: Duration = Duration::from_millis(2);
/// Each command adds this much: a round need not be short if many clients have come.
const RUN_PER_COMMAND: Duration = Duration::from_micros(10);
/// A commit with its sync may take this long.
const COMMIT_MAX: Duration = Duration::from_millis(2);
/// Commits in a row that took longer show that the disk is slow, and not just busy for a moment.
const SLOW_COMMITS: u32 = 4;
/// What was too slow goes to the lanes for so many times its duration. So it takes at most a fiftieth
/// of the thread's time.
const AWAY_FACTOR: u32 = 50;
/// But not longer than this.
const AWAY_MAX: Duration = Duration::from_secs(10);

/// What goes to the lanes for a while: commands whose cost depends on the data and that took long, or
/// all commands if syncs take long.
#[derive(Default)]
pub(in crate::executor) struct Slow {
    /// Whether `until` has entries.
    is_used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Until when, by the row's id; `None` is all rows.
    until: HashMap<Option<usize>, Instant>,
    /// The number of slow commits in a row, and their sum.
    commits: (u32, Duration),
}

impl Slow {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a command goes to a lane.
    pub(in crate::executor) fn contains(&self, row: &Row) -> bool {
        self.is_used.load(Ordering::Relaxed) && self.contains_at(row, Instant::now())
    }

    fn contains_at(&self, row: &Row, now: Instant) -> bool {
        let until = &mut self.lock().until;
        until.retain(|_, until| *until > now);
        self.is_used.store(!until.is_empty(), Ordering::Relaxed);
        until.contains_key(&None) || until.contains_key(&Some(row.id))
    }

    /// Notes how long the commands of a round took, without its commit.
    pub(in crate::executor) fn note_run(&self, rows: &[&Row], duration: Duration) {
        let commands = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        if duration > RUN_MAX + RUN_PER_COMMAND * commands {
            self.note_run_at(rows, duration, Instant::now());
        }
    }

    /// Those that Redis calls fast are rarely why, so only if there are no others are they noted.
    fn note_run_at(&self, rows: &[&Row], duration: Duration, now: Instant) {
        let may_be_slow = |row: &&&Row| !row.flags.contains(Flags::FAST);
        let all = rows.iter().map(|row| Some(row.id)).collect();
        let slow: Vec<_> = rows.iter().filter(may_be_slow).collect();
        let slow = match slow.is_empty() {
            true => all,
            false => slow.iter().map(|row| Some(row.id)).collect(),
        };
        self.send_away(slow, duration, now);
    }

    /// Notes how long a commit took.
    pub(in crate::executor) fn note_commit(&self, duration: Duration) {
        self.note_commit_at(duration, Instant::now());
    }

    fn note_commit_at(&self, duration: Duration, now: Instant) {
        let sum = {
            let commits = &mut self.lock().commits;
            if duration <= COMMIT_MAX {
                *commits = (0, Duration::ZERO);
                return;
            }
            *commits = (commits.0 + 1, commits.1.saturating_add(duration));
            if commits.0 < SLOW_COMMITS {
                return;
            }
            std::mem::take(commits).1
        };
        self.send_away(vec![None], sum, now);
    }

    fn send_away(&self, slow: Vec<Option<usize>>, duration: Duration, now: Instant) {
        let end = now + duration.saturating_mul(AWAY_FACTOR).min(AWAY_MAX);
        let until = &mut self.lock().until;
        until.extend(slow.into_iter().map(|row| (row, end)));
        self.is_used.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::find;

    const LONG: Duration = Duration::from_millis(10);

    fn row(name: &str) -> &'static Row {
        find(name.as_bytes()).unwrap()
    }

    /// After a round with these commands.
    fn after_run(names: &[&str], now: Instant) -> Slow {
        let slow = Slow::default();
        let rows: Vec<&Row> = names.iter().map(|name| row(name)).collect();
        slow.note_run_at(&rows, LONG, now);
        slow
    }

    #[test]
    fn of_a_long_round_the_commands_that_may_be_slow_go_to_the_lanes() {
        let now = Instant::now();
        let slow = after_run(&["LPUSH", "LRANGE"], now);
        assert!(slow.contains_at(row("LRANGE"), now));
        assert!(!slow.contains_at(row("LPUSH"), now));
        assert!(!slow.contains_at(row("KEYS"), now));
    }

    #[test]
    fn if_it_had_only_fast_commands_they_do() {
        let now = Instant::now();
        let slow = after_run(&["LPUSH"], now);
        assert!(slow.contains_at(row("LPUSH"), now));
        assert!(!slow.contains_at(row("GET"), now));
    }

    #[test]
    fn they_come_back_after_a_while() {
        let now = Instant::now();
        let slow = after_run(&["LRANGE"], now);
        let away = LONG * AWAY_FACTOR;
        assert!(slow.contains_at(row("LRANGE"), now + away - Duration::from_millis(1)));
        assert!(!slow.contains_at(row("LRANGE"), now + away));
        assert!(!slow.is_used.load(Ordering::Relaxed));
    }

    #[test]
    fn nothing_stays_away_for_long() {
        let (slow, now) = (Slow::default(), Instant::now());
        slow.note_run_at(&[row("LRANGE")], Duration::MAX, now);
        assert!(!slow.contains_at(row("LRANGE"), now + AWAY_MAX));
    }

    #[test]
    fn a_round_of_many_commands_may_take_longer() {
        let slow = Slow::default();
        let rows = [row("LPUSH"); 1000];
        slow.note_run(&rows, LONG);
        assert!(!slow.contains(row("LPUSH")));
        slow.note_run(&rows[..100], LONG);
        assert!(slow.contains(row("LPUSH")));
    }

    #[test]
    fn slow_commits_in_a_row_send_all_commands_to_the_lanes() {
        let (slow, now) = (Slow::default(), Instant::now());
        for _ in 1..SLOW_COMMITS {
            slow.note_commit_at(LONG, now);
        }
        assert!(!slow.contains_at(row("GET"), now));
        slow.note_commit_at(LONG, now);
        let away = LONG * SLOW_COMMITS * AWAY_FACTOR;
        assert!(slow.contains_at(row("GET"), now + away - Duration::from_millis(1)));
        assert!(!slow.contains_at(row("GET"), now + away));
    }

    #[test]
    fn a_slow_commit_now_and_then_changes_nothing() {
        let (slow, now) = (Slow::default(), Instant::now());
        for _ in 0..100 {
            slow.note_commit_at(LONG, now);
            slow.note_commit_at(COMMIT_MAX, now);
        }
        assert!(!slow.contains_at(row("GET"), now));
    }
}
