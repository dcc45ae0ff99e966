//! Single flight: a task that many callers request and one runs at a time. Waiting callers share the next
//! run.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};

/// Lets callers that wait for a task share its next run. `V` is a value that runs pass on, `E` is the
/// error of a run.
#[derive(Debug)]
pub(super) struct SingleFlight<V, E> {
    /// Runs that have begun.
    begun: AtomicU64,
    latest: Mutex<Latest<V, E>>,
}

#[derive(Debug)]
struct Latest<V, E> {
    value: V,
    /// The number of the run that ended last, and why it failed.
    run: u64,
    failure: Option<E>,
}

/// What a caller does next.
pub(super) enum Turn<'a, V, E> {
    /// A run that began after the call has ended with this result.
    Shared(Result<(), E>),
    /// The caller runs the task.
    Own(Run<'a, V, E>),
}

/// The right to run the task. Other callers wait until it is dropped.
pub(super) struct Run<'a, V, E> {
    number: u64,
    latest: MutexGuard<'a, Latest<V, E>>,
}

impl<V: Copy, E: Clone> SingleFlight<V, E> {
    /// `value` is the value for the first run.
    pub(super) fn new(value: V) -> Self {
        Self {
            begun: AtomicU64::new(0),
            latest: Mutex::new(Latest {
                value,
                run: 0,
                failure: None,
            }),
        }
    }

    /// Waits until a run that began after this call has ended, or until the caller may run the
    /// task. Cancel-safe.
    pub(super) async fn turn(&self) -> Turn<'_, V, E> {
        let arrived = self.begun.load(Ordering::SeqCst);
        let latest = self.latest.lock().await;
        if latest.run > arrived {
            return Turn::Shared(match &latest.failure {
                Some(failure) => Err(failure.clone()),
                None => Ok(()),
            });
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Turn::Own(Run { number, latest })
    }
}

impl<V: Copy, E: Clone> Run<'_, V, E> {
    /// The value that the last run has passed on.
    pub(super) fn value(&self) -> V {
        self.latest.value
    }

    /// Passes a value on to the next run.
    pub(super) fn keep(&mut self, value: V) {
        self.latest.value = value;
    }

    /// Gives the result to waiting callers. Without this call, as after a cancellation, the next caller
    /// runs the task.
    pub(super) fn end(mut self, result: &Result<(), E>) {
        self.latest.run = self.number;
        self.latest.failure = result.as_ref().err().cloned();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;

    use super::*;

    async fn run(flight: &SingleFlight<u32, String>, is_well: bool) -> Result<(), String> {
        match flight.turn().await {
            Turn::Shared(result) => result,
            Turn::Own(mut run) => {
                run.keep(run.value() + 1);
                tokio::time::sleep(Duration::from_millis(5)).await;
                let result = match is_well {
                    true => Ok(()),
                    false => Err("no".to_owned()),
                };
                run.end(&result);
                result
            }
        }
    }

    async fn runs(flight: &SingleFlight<u32, String>) -> u32 {
        flight.latest.lock().await.value
    }

    #[tokio::test]
    async fn all_that_wait_share_the_next_run_and_its_failure() {
        let flight = SingleFlight::new(0);
        let results = join_all((0..100).map(|_| run(&flight, false))).await;
        assert!(results.iter().all(Result::is_err));
        // The first began alone. The second began after all others had arrived.
        assert!(runs(&flight).await <= 2);
        // A run that ended before a call does not count for the call.
        let before = runs(&flight).await;
        run(&flight, true).await.unwrap();
        assert_eq!(runs(&flight).await, before + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_cancelled_is_done_by_the_next() {
        let flight = SingleFlight::new(0);
        let cancelled = tokio::time::timeout(Duration::from_millis(1), run(&flight, true)).await;
        assert!(cancelled.is_err());
        run(&flight, true).await.unwrap();
        assert_eq!(runs(&flight).await, 2);
    }
}
