//! The scripts that a server is running, for BUSY and SCRIPT KILL, and the scripts that it knows.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::functions::Libraries;
use super::script::{Kept, Recent, Script};
use quoin_base::limits::{SCRIPTS_KNOWN_BYTES_MAX, SCRIPTS_KNOWN_MAX};
use quoin_base::stopwatch::BusyLimit;

/// The kind of call that started a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// EVAL or its kin.
    Script,
    /// FCALL: the function's name, and the whole command.
    Function(String, Vec<Bytes>),
}

impl Caller {
    /// Whether a function was called.
    pub fn is_function(&self) -> bool {
        matches!(self, Caller::Function(..))
    }
}

/// One run of a script or a function.
#[derive(Debug)]
pub struct Run {
    /// The kind of call that started it.
    pub caller: Caller,
    since: Instant,
    worked: Mutex<Worked>,
    /// How long it may take.
    limit: TimeLimit,
    /// When its first instruction ran: after it was compiled, or its library loaded.
    began: OnceLock<Instant>,
    /// One of the constants below. It leaves [`UNDECIDED`] only once, so that a killed run writes
    /// nothing.
    fate: AtomicU8,
}

/// How long a run has occupied its thread. Excludes the time that it waited for the store, when the thread
/// did other work.
#[derive(Debug)]
struct Worked {
    before: Duration,
    /// Since when it does so now. `None` while it waits.
    since: Option<Instant>,
}

/// It has neither written nor been killed.
const UNDECIDED: u8 = 0;

/// It has called a command that writes, and is not killed any more.
const WRITTEN: u8 = 1;

/// It was killed, and writes nothing more.
const KILLED: u8 = 2;

/// The server stops, and ends the run. Its writes are undone.
const ENDED: u8 = 3;

/// How long a run may take before it is ended.
#[derive(Debug, Clone, Copy)]
pub enum TimeLimit {
    /// Unlimited.
    Nothing,
    /// So long.
    Elapsed(Duration),
    /// Until it has kept its thread busy for this long, not counting the time before its first
    /// instruction.
    Busy(BusyLimit),
}

impl Run {
    fn new(caller: Caller, limit: TimeLimit) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            caller,
            since: now,
            worked: Mutex::new(Worked {
                before: Duration::ZERO,
                since: Some(now),
            }),
            limit,
            began: OnceLock::new(),
            fate: AtomicU8::new(UNDECIDED),
        })
    }

    /// A run that loads a library. It ends by itself, or at its time limit.
    pub fn of_load(longest: Duration) -> Arc<Self> {
        Self::new(Caller::Script, TimeLimit::Elapsed(longest))
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// How long it has run, excluding the time that it waited.
    fn worked(&self) -> Duration {
        let worked = lock(&self.worked);
        let now = worked.since.map(|since| since.elapsed());
        worked.before.saturating_add(now.unwrap_or_default())
    }

    /// It waits for the store from now on, until [`Self::go_on`].
    pub(super) fn wait(&self) {
        let mut worked = lock(&self.worked);
        if let Some(since) = worked.since.take() {
            worked.before = worked.before.saturating_add(since.elapsed());
        }
    }

    /// The wait is over.
    pub(super) fn go_on(&self) {
        lock(&self.worked).since.get_or_insert_with(Instant::now);
    }

    /// The server has ended it.
    pub(super) fn is_ended(&self) -> bool {
        self.fate.load(Ordering::Relaxed) == ENDED
    }

    /// SCRIPT KILL was called.
    pub fn is_killed(&self) -> bool {
        self.fate.load(Ordering::Relaxed) == KILLED
    }

    /// Its first instruction runs.
    pub fn begin(&self) {
        let _ = self.began.set(Instant::now());
    }

    /// Whether it has run for longer than it may. False if it was killed, because that already ends
    /// it.
    pub fn is_late(&self) -> bool {
        match self.limit {
            TimeLimit::Nothing => false,
            _ if self.is_killed() => false,
            TimeLimit::Elapsed(longest) => self.elapsed() >= longest,
            TimeLimit::Busy(limit) => {
                let began = self.began.get();
                began.is_some_and(|began| limit.is_over(*began))
            }
        }
    }

    /// It is about to call a command that writes. False if it was killed before: it must not.
    pub fn may_write(&self) -> bool {
        self.decide(WRITTEN)
    }

    /// It has called a command that writes.
    pub fn has_written(&self) -> bool {
        self.fate.load(Ordering::Relaxed) == WRITTEN
    }

    /// Decides its fate. Returns false if it had already been decided differently.
    fn decide(&self, fate: u8) -> bool {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let decided = self
            .fate
            .compare_exchange(UNDECIDED, fate, success, failure);
        decided.is_ok() || decided == Err(fate)
    }
}

/// Why SCRIPT KILL killed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillError {
    /// No script runs.
    NotBusy,
    /// It has called a command that writes.
    Unkillable,
    /// A function is running instead of a script, or the other way round.
    OtherKind,
}

/// What a server's lanes and connections share about scripts.
#[derive(Debug)]
pub struct Scripts {
    is_enabled: AtomicBool,
    running_count: AtomicUsize,
    running: Mutex<Vec<Arc<Run>>>,
    /// Whether runs are ended as soon as they begin. Changes only while `running` is locked.
    are_ended: AtomicBool,
    known: Mutex<Known>,
    libraries: Mutex<Arc<Libraries>>,
}

/// Scripts that EVALSHA finds without asking the store.
#[derive(Debug, Default)]
struct Known {
    /// The flush number for which they are valid.
    epoch: u64,
    bytes: usize,
    scripts: HashMap<String, (Arc<Script>, Kept)>,
    /// By their texts, found in the store or not.
    recent: Recent,
    met: Met,
}

/// The names of the scripts that were run or loaded since the last flush.
#[derive(Debug, Default)]
struct Met {
    /// The flush number for which they are valid.
    epoch: u64,
    names: HashSet<String>,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            is_enabled: AtomicBool::new(true),
            running_count: AtomicUsize::new(0),
            running: Mutex::default(),
            are_ended: AtomicBool::new(false),
            known: Mutex::default(),
            libraries: Mutex::default(),
        }
    }
}

/// Ends a run when it is dropped.
pub struct RunGuard<'s> {
    scripts: &'s Scripts,
    run: Arc<Run>,
}

impl RunGuard<'_> {
    /// The run.
    pub fn run(&self) -> &Arc<Run> {
        &self.run
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.scripts.running);
        running.retain(|other| !Arc::ptr_eq(other, &self.run));
        let count = running.len();
        self.scripts.running_count.store(count, Ordering::SeqCst);
    }
}

impl Scripts {
    /// Turns scripts on or off.
    pub fn enable(&self, is_enabled: bool) {
        self.is_enabled.store(is_enabled, Ordering::Relaxed);
    }

    /// Whether scripts are run at all.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Begins a run. It ends when the result is dropped, or at the `limit`.
    pub fn begin(&self, caller: Caller, limit: TimeLimit) -> RunGuard<'_> {
        let run = Run::new(caller, limit);
        let mut running = lock(&self.running);
        if self.are_ended.load(Ordering::Relaxed) {
            run.fate.store(ENDED, Ordering::Relaxed);
        }
        running.push(Arc::clone(&run));
        self.running_count.store(running.len(), Ordering::SeqCst);
        drop(running);
        RunGuard { scripts: self, run }
    }

    /// A run that has occupied its thread for more than this number of milliseconds. None with a
    /// limit of 0. The limit is read only while something runs.
    pub fn busy(&self, limit_ms: impl FnOnce() -> u64) -> Option<Arc<Run>> {
        if self.running_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let limit = match limit_ms() {
            0 => return None,
            milliseconds => Duration::from_millis(milliseconds),
        };
        let running = lock(&self.running);
        running.iter().find(|run| run.worked() >= limit).cloned()
    }

    /// The current runs.
    pub fn under_way(&self) -> Vec<Arc<Run>> {
        lock(&self.running).clone()
    }

    /// Ends all current and future runs, even those that have written: their writes are undone.
    pub fn end_all(&self) {
        let running = lock(&self.running);
        self.are_ended.store(true, Ordering::Relaxed);
        for run in running.iter() {
            run.fate.store(ENDED, Ordering::Relaxed);
        }
    }

    /// Kills the running scripts, or functions, that have not written.
    ///
    /// # Errors
    /// If there is nothing that can be killed.
    pub fn kill(&self, functions: bool) -> Result<(), KillError> {
        let running = lock(&self.running);
        let mut result = Err(KillError::NotBusy);
        for run in running.iter() {
            if run.caller.is_function() == functions && run.decide(KILLED) {
                result = Ok(());
            } else if run.fate.load(Ordering::Relaxed) == WRITTEN {
                result = result.or(Err(KillError::Unkillable));
            } else if result == Err(KillError::NotBusy) {
                result = Err(KillError::OtherKind);
            }
        }
        result
    }

    /// A stored script, unless there was a flush after flush number `epoch`.
    pub fn known(&self, epoch: u64, sha: &str) -> Option<Arc<Script>> {
        let known = lock(&self.known);
        match known.epoch == epoch {
            true => known.scripts.get(sha).map(|(script, _)| Arc::clone(script)),
            false => None,
        }
    }

    /// The script with this text.
    ///
    /// # Errors
    /// Redis's error line if its first line is invalid.
    pub fn of_text(&self, text: &Bytes) -> Result<Arc<Script>, String> {
        let recent = &mut lock(&self.known).recent;
        match recent.find(text) {
            Some(script) => Ok(script),
            None => recent.parse(text),
        }
    }

    /// Where a script is stored, unless there was a flush after flush number `epoch`.
    pub fn kept(&self, epoch: u64, script: &Arc<Script>) -> Option<Kept> {
        let mut known = lock(&self.known);
        if let Some(kept) = known.recent.kept(epoch, script) {
            return Some(kept);
        }
        let (_, kept) = match known.epoch == epoch {
            true => known.scripts.get(&script.sha)?,
            false => return None,
        };
        let kept = *kept;
        known.recent.note_kept(epoch, script, kept);
        Some(kept)
    }

    /// Remembers a script and where it is stored.
    pub fn remember(&self, epoch: u64, script: Arc<Script>, kept: Kept) {
        let mut known = lock(&self.known);
        known.recent.note_kept(epoch, &script, kept);
        let is_full = known.scripts.len() >= SCRIPTS_KNOWN_MAX
            || known.bytes.saturating_add(script.text.len()) > SCRIPTS_KNOWN_BYTES_MAX;
        if known.epoch != epoch || is_full {
            *known = Known {
                epoch,
                recent: std::mem::take(&mut known.recent),
                met: std::mem::take(&mut known.met),
                ..Known::default()
            };
        }
        let bytes = script.text.len();
        let sha = script.sha.clone();
        if known.scripts.insert(sha, (script, kept)).is_none() {
            known.bytes = known.bytes.saturating_add(bytes);
        }
    }

    /// A script was run or loaded after `epoch` flushes.
    pub fn note_met(&self, epoch: u64, sha: &str) {
        let met = &mut lock(&self.known).met;
        if met.epoch != epoch {
            *met = Met {
                epoch,
                ..Met::default()
            };
        }
        if met.names.len() < SCRIPTS_KNOWN_MAX && !met.names.contains(sha) {
            met.names.insert(sha.to_owned());
        }
    }

    /// The scripts are flushed.
    pub fn forget_met(&self) {
        lock(&self.known).met = Met::default();
    }

    /// How many scripts this server has run or loaded since it started, or since they were flushed.
    pub fn met_count(&self) -> usize {
        lock(&self.known).met.names.len()
    }

    /// The libraries as this server has last seen them.
    pub fn libraries(&self) -> Arc<Libraries> {
        Arc::clone(&lock(&self.libraries))
    }

    /// Remembers the libraries.
    pub fn remember_libraries(&self, libraries: Arc<Libraries>) {
        *lock(&self.libraries) = libraries;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
