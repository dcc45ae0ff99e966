//! CLIENT PAUSE: commands wait for a given time, or until CLIENT UNPAUSE.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use quoin_engine::Standstill;

/// Which commands wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PauseMode {
    /// Commands that may write.
    Write,
    /// All commands.
    All,
}

/// Whether commands currently wait.
#[derive(Debug, Default)]
pub(super) struct Pause {
    /// Lets [`Self::applies`] skip the lock while there is no pause.
    is_set: AtomicBool,
    until: Mutex<Option<(Instant, PauseMode)>>,
    ended: Notify,
}

impl Pause {
    fn lock(&self) -> MutexGuard<'_, Option<(Instant, PauseMode)>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a pause. As in Redis, it makes a current pause neither shorter nor weaker. A pause that
    /// is too long for the clock is ignored.
    pub(super) fn begin(&self, duration: Duration, mode: PauseMode) {
        let now = Instant::now();
        let Some(end) = now.checked_add(duration) else {
            return;
        };
        let mut until = self.lock();
        // Under the lock, so that [`Self::applies`] of an older pause does not unset it.
        self.is_set.store(true, Ordering::SeqCst);
        *until = Some(match *until {
            Some((old_end, old_mode)) if old_end > now => (end.max(old_end), mode.max(old_mode)),
            _ => (end, mode),
        });
        drop(until);
        self.ended.notify_waiters();
    }

    /// Ends a pause.
    pub(super) fn end(&self) {
        let mut until = self.lock();
        *until = None;
        self.is_set.store(false, Ordering::SeqCst);
        drop(until);
        self.ended.notify_waiters();
    }

    /// Whether commands of a kind currently wait.
    pub(super) fn applies(&self, is_write: bool) -> bool {
        if !self.is_set.load(Ordering::SeqCst) {
            return false;
        }
        let until = self.lock();
        match *until {
            Some((end, mode)) if end > Instant::now() => mode == PauseMode::All || is_write,
            _ => {
                // The pause is over.
                self.is_set.store(false, Ordering::SeqCst);
                false
            }
        }
    }

    /// Waits until a command may run.
    pub(super) async fn wait(&self, is_write: bool) {
        while self.is_set.load(Ordering::SeqCst) {
            let changed = self.ended.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let end = match *self.lock() {
                Some((end, mode)) if mode == PauseMode::All || is_write => end,
                _ => return,
            };
            if end <= Instant::now() {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(end.into()) => {}
            }
        }
    }
}

/// Meanwhile, keys do not expire and timers do not run in the background. In Redis, keys do not
/// expire either.
impl Standstill for Pause {
    fn is_on(&self) -> bool {
        self.applies(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_a_pause_nothing_waits() {
        Pause::default().wait(true).await;
    }

    #[tokio::test]
    async fn a_pause_of_writes_lets_reads_pass_and_ends_by_itself() {
        let pause = Pause::default();
        let begun = Instant::now();
        pause.begin(Duration::from_millis(30), PauseMode::Write);
        pause.wait(false).await;
        assert!(begun.elapsed() < Duration::from_millis(30));
        pause.wait(true).await;
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }

    #[tokio::test]
    async fn a_pause_can_be_ended() {
        let pause = Pause::default();
        pause.begin(Duration::from_secs(3600), PauseMode::All);
        let ((), ()) = tokio::join!(pause.wait(true), async {
            tokio::task::yield_now().await;
            pause.end();
        });
    }
}
