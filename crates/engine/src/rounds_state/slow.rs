//! Commands that take too long for a round.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::timed::Timed;
use quoin_base::stopwatch::Stopwatch;
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;

/// The commands of a round may occupy the thread for this long.
const RUN_MAX: Duration = Duration::from_millis(2);
/// Each simple command adds this much, because a round with many clients may be longer. About three times what a
/// write takes whose rows are not in the processor's cache.
const RUN_PER_COMMAND: Duration = Duration::from_micros(30);
/// A script may occupy the thread for this long. The thread serves nobody meanwhile.
pub(crate) const SCRIPT_RUN_MAX: Duration = Duration::from_millis(2);
/// A script that took longer goes to the lanes for this long. Its run was wasted.
const SCRIPT_AWAY: Duration = Duration::from_secs(1);
/// A commit may wait for the disk for this long.
const COMMIT_WAIT_MAX: Duration = Duration::from_millis(2);
/// This many slow commits in a row show that the disk is slow, not just busy for a moment.
const SLOW_COMMITS: u32 = 4;
/// A slow command is sent to the lanes for this many times its run time. So it uses about a fiftieth of the thread's
/// time.
const AWAY_FACTOR: u32 = 50;
/// Maximum time for which a command is sent to the lanes.
const AWAY_MAX: Duration = Duration::from_secs(10);

/// How many scripts are distinguished. If more are slow at once, all scripts of a command go to the lanes.
const SCRIPTS_MAX: usize = 64;

/// What goes to the lanes for a while: commands that took long and whose cost depends on the data, or all commands if
/// syncs take long.
#[derive(Default)]
pub(crate) struct Slow {
    /// Whether `until` has entries.
    is_used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When each command returns to rounds, by [`Timed::id`]. `None` stands for all commands.
    until: HashMap<Option<(usize, u64)>, Instant>,
    /// The latest time in `until`.
    latest: Option<Instant>,
    /// The number of consecutive slow commits, and their total duration.
    commits: (u32, Duration),
}

impl Slow {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a command goes to a lane.
    pub(crate) fn contains(&self, invocation: &Invocation) -> bool {
        self.is_used.load(Ordering::Relaxed)
            && self.contains_at(&Timed::of(invocation), Instant::now())
    }

    /// Whether a command takes long to run. Others go to a lane while syncs take long.
    pub(crate) fn runs_long(&self, invocation: &Invocation) -> bool {
        let command = Timed::of(invocation);
        let ids = [Some(command.id()), Some(command.id_without_script())];
        self.is_used.load(Ordering::Relaxed) && self.is_any_away(&ids, Instant::now())
    }

    fn contains_at(&self, command: &Timed, now: Instant) -> bool {
        let ids = [None, Some(command.id()), Some(command.id_without_script())];
        self.is_any_away(&ids, now)
    }

    fn is_any_away(&self, ids: &[Option<(usize, u64)>], now: Instant) -> bool {
        let mut state = self.lock();
        if state.latest.is_none_or(|latest| latest <= now) {
            state.until.clear();
            self.is_used.store(false, Ordering::Relaxed);
            return false;
        }
        let is_away = |id| state.until.get(id).is_some_and(|end| *end > now);
        ids.iter().any(is_away)
    }

    /// Records how long the commands of a round took by the round's stopwatch, without waiting for the
    /// commit.
    pub(crate) fn note_run(&self, commands: &[Timed], elapsed: Duration, stopwatch: &Stopwatch) {
        let weight = commands
            .iter()
            .map(Timed::weight)
            .fold(0, u32::saturating_add);
        let max = RUN_MAX + RUN_PER_COMMAND.saturating_mul(weight);
        if elapsed > max {
            let busy = stopwatch.busy(elapsed);
            if busy > max {
                self.note_run_at(commands, busy, Instant::now());
            }
        }
    }

    /// Records a script that was given up, and how long its round took. That may be much longer than
    /// [`SCRIPT_RUN_MAX`], because a command that the script calls is not interrupted.
    pub(crate) fn note_late(&self, script: &Timed, elapsed: Duration) {
        let now = Instant::now();
        let end = end_of(elapsed, now).max(now + SCRIPT_AWAY);
        self.send_away([script], end, now);
    }

    /// Commands that Redis flags as fast are rarely to blame. They are noted only if there are no others.
    fn note_run_at(&self, commands: &[Timed], duration: Duration, now: Instant) {
        let may_be_slow = |command: &&Timed| !command.row.flags.contains(Flags::FAST);
        let slow: Vec<&Timed> = commands.iter().filter(may_be_slow).collect();
        let end = end_of(duration, now);
        match slow.is_empty() {
            true => self.send_away(commands, end, now),
            false => self.send_away(slow, end, now),
        }
    }

    /// Records how long a commit waited.
    pub(crate) fn note_commit(&self, duration: Duration) {
        self.note_commit_at(duration, Instant::now());
    }

    fn note_commit_at(&self, duration: Duration, now: Instant) {
        let sum = {
            let commits = &mut self.lock().commits;
            if duration <= COMMIT_WAIT_MAX {
                *commits = (0, Duration::ZERO);
                return;
            }
            *commits = (commits.0 + 1, commits.1.saturating_add(duration));
            if commits.0 < SLOW_COMMITS {
                return;
            }
            std::mem::take(commits).1
        };
        self.send_all_away(end_of(sum, now));
    }

    fn send_away<'t>(&self, slow: impl IntoIterator<Item = &'t Timed>, end: Instant, now: Instant) {
        let mut state = self.lock();
        state.until.retain(|_, until| *until > now);
        for command in slow {
            let id = match state.until.len() < SCRIPTS_MAX {
                true => command.id(),
                false => command.id_without_script(),
            };
            state.until.insert(Some(id), end);
        }
        self.end_at(&mut state, end);
    }

    fn send_all_away(&self, end: Instant) {
        let mut state = self.lock();
        state.until.insert(None, end);
        self.end_at(&mut state, end);
    }

    fn end_at(&self, state: &mut State, end: Instant) {
        state.latest = state.latest.max(Some(end));
        self.is_used.store(true, Ordering::Relaxed);
    }
}

/// When a command that took this long runs in rounds again.
fn end_of(duration: Duration, now: Instant) -> Instant {
    now + duration.saturating_mul(AWAY_FACTOR).min(AWAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{invocation, words_of};

    const LONG: Duration = Duration::from_millis(10);

    fn command(line: &str) -> Timed {
        Timed::of(&invocation(0, &words_of(line)))
    }

    /// The state after a round with these commands.
    fn after_run(lines: &[&str], now: Instant) -> Slow {
        let slow = Slow::default();
        let commands: Vec<_> = lines.iter().map(|line| command(line)).collect();
        slow.note_run_at(&commands, LONG, now);
        slow
    }

    #[test]
    fn of_a_long_round_the_commands_that_may_be_slow_go_to_the_lanes() {
        let now = Instant::now();
        let slow = after_run(&["LPUSH list x", "LRANGE list 0 -1"], now);
        assert!(slow.contains_at(&command("LRANGE list 0 -1"), now));
        assert!(!slow.contains_at(&command("LPUSH list x"), now));
        assert!(!slow.contains_at(&command("KEYS *"), now));
    }

    #[test]
    fn if_it_had_only_fast_commands_they_do() {
        let now = Instant::now();
        let slow = after_run(&["LPUSH list x"], now);
        assert!(slow.contains_at(&command("LPUSH list x"), now));
        assert!(!slow.contains_at(&command("GET string"), now));
    }

    #[test]
    fn they_come_back_after_a_while() {
        let now = Instant::now();
        let slow = after_run(&["LRANGE list 0 -1"], now);
        let away = LONG * AWAY_FACTOR;
        assert!(slow.contains_at(
            &command("LRANGE list 0 -1"),
            now + away - Duration::from_millis(1)
        ));
        assert!(!slow.contains_at(&command("LRANGE list 0 -1"), now + away));
        assert!(!slow.is_used.load(Ordering::Relaxed));
    }

    #[test]
    fn a_late_script_goes_to_the_lanes_and_others_do_not() {
        let slow = Slow::default();
        slow.note_late(&command("EVALSHA one 0"), SCRIPT_RUN_MAX);
        let now = Instant::now();
        assert!(slow.contains_at(&command("EVALSHA one 1 key"), now));
        assert!(!slow.contains_at(&command("EVALSHA two 0"), now));
    }

    #[test]
    fn a_script_that_took_much_longer_stays_away_for_longer() {
        let (slow, script) = (Slow::default(), command("EVALSHA one 0"));
        slow.note_late(&script, SCRIPT_AWAY);
        assert!(slow.contains_at(&script, Instant::now() + SCRIPT_AWAY * 2));
    }

    #[test]
    fn of_many_slow_scripts_no_more_are_kept() {
        let (slow, now) = (Slow::default(), Instant::now());
        let scripts: Vec<Timed> = (0..1000)
            .map(|number| command(&format!("EVALSHA {number} 0")))
            .collect();
        slow.note_run_at(&scripts, LONG, now);
        assert_eq!(slow.lock().until.len(), SCRIPTS_MAX + 1);
        assert!(scripts.iter().all(|script| slow.contains_at(script, now)));
        assert!(!slow.contains_at(&command("EVAL one 0"), now));
    }

    #[test]
    fn nothing_stays_away_for_long() {
        let (slow, now) = (Slow::default(), Instant::now());
        slow.note_run_at(&[command("LRANGE list 0 -1")], Duration::MAX, now);
        assert!(!slow.contains_at(&command("LRANGE list 0 -1"), now + AWAY_MAX));
    }

    #[test]
    fn a_round_of_many_commands_may_take_longer() {
        let slow = Slow::default();
        let commands = vec![command("LPUSH list x"); 1000];
        let stopwatch = Stopwatch::start();
        while stopwatch.busy(LONG) < LONG {}
        slow.note_run(&commands, LONG, &stopwatch);
        assert!(!slow.contains_at(&commands[0], Instant::now()));
        slow.note_run(&commands[..100], LONG, &stopwatch);
        assert!(slow.contains_at(&commands[0], Instant::now()));
    }

    #[test]
    fn a_round_that_waited_for_other_threads_is_not_long() {
        let slow = Slow::default();
        let commands = [command("LPUSH list x")];
        slow.note_run(&commands, RUN_MAX * 2, &Stopwatch::start());
        assert!(!slow.contains_at(&commands[0], Instant::now()));
    }

    #[test]
    fn slow_commits_in_a_row_send_all_commands_to_the_lanes() {
        let (slow, now) = (Slow::default(), Instant::now());
        for _ in 1..SLOW_COMMITS {
            slow.note_commit_at(LONG, now);
        }
        assert!(!slow.contains_at(&command("GET string"), now));
        slow.note_commit_at(LONG, now);
        let away = LONG * SLOW_COMMITS * AWAY_FACTOR;
        assert!(slow.contains_at(
            &command("GET string"),
            now + away - Duration::from_millis(1)
        ));
        assert!(!slow.contains_at(&command("GET string"), now + away));
    }

    #[test]
    fn a_slow_commit_now_and_then_changes_nothing() {
        let (slow, now) = (Slow::default(), Instant::now());
        for _ in 0..100 {
            slow.note_commit_at(LONG, now);
            slow.note_commit_at(COMMIT_WAIT_MAX, now);
        }
        assert!(!slow.contains_at(&command("GET string"), now));
    }
}
