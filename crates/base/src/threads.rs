//! Threads. The system may refuse one if a limit on processes is reached (`pids.max` of a control
//! group, `RLIMIT_NPROC`) or memory is short. Then only the operation that needed it fails.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

/// Starts a thread.
///
/// # Errors
/// If the system refuses it. `work` is dropped then, so it must not hold anything whose drop needs a
/// lock that the caller has.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    #[cfg(feature = "testing")]
    if testing::are_refused() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Builder::new().name(name.to_owned()).spawn(work)
}

/// Runs work that may wait for the disk or a name server on a separate thread. tokio's threads for
/// such work are not used, because tokio panics if the system refuses one.
///
/// # Errors
/// If the system refuses the thread, or if `work` panics.
pub async fn run<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, done) = oneshot::channel();
    // Ends by itself. The caller may have stopped waiting.
    drop(spawn(name, move || {
        let _ = sender.send(work());
    })?);
    let panicked = |_| io::Error::other(format!("the thread {name} panicked"));
    done.await.map_err(panicked)
}

/// Threads that cannot be started, for tests.
#[cfg(feature = "testing")]
pub mod testing {
    use std::cell::Cell;

    thread_local! {
        static ARE_REFUSED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn are_refused() -> bool {
        ARE_REFUSED.get()
    }

    /// While `work` runs, this thread may start no others.
    pub fn without_threads<T>(work: impl FnOnce() -> T) -> T {
        ARE_REFUSED.set(true);
        let result = work();
        ARE_REFUSED.set(false);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::testing::without_threads;
    use super::*;

    #[tokio::test]
    async fn work_is_done_or_fails() {
        assert_eq!(run("quoin-test", || 1).await.unwrap(), 1);
        let failed = run("quoin-test", || panic!("on purpose")).await;
        assert!(failed.unwrap_err().to_string().contains("panicked"));
    }

    #[test]
    fn a_thread_that_is_refused_is_an_error() {
        let refused = without_threads(|| spawn("quoin-test", || ()).map(drop));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
