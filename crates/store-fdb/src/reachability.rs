//! Tracks whether the cluster answers.

use std::sync::atomic::{AtomicBool, Ordering};

use foundationdb::FdbError;

use super::error::is_timeout;

/// Maximum duration of a transaction while the cluster is away.
const AWAY_TIMEOUT_MS: i32 = 2_000;

/// Tracks whether the cluster is away. It is away from the timeout of a transaction until it
/// responds again.
///
/// A transaction waits long for a cluster that is recovering. After one has timed out, others wait
/// less, so that clients' waits do not add up.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    is_away: AtomicBool,
}

impl Reachability {
    /// Whether nothing has succeeded since a transaction timed out.
    pub(super) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// The current timeout for transactions. `timeout_ms` is the usual one.
    pub(super) fn timeout_ms(&self, timeout_ms: i32) -> i32 {
        match self.is_away() {
            true => timeout_ms.min(AWAY_TIMEOUT_MS),
            false => timeout_ms,
        }
    }

    /// Records the result of a read or commit.
    pub(super) fn note<T>(&self, answer: Result<T, FdbError>) -> Result<T, FdbError> {
        match &answer {
            Ok(_) if self.is_away() => {
                if self.is_away.swap(false, Ordering::Relaxed) {
                    tracing::warn!("the FoundationDB cluster answers again");
                }
            }
            Err(error) if is_timeout(*error) && !self.is_away.swap(true, Ordering::Relaxed) => {
                tracing::warn!("the FoundationDB cluster does not answer");
            }
            Ok(_) | Err(_) => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_COMMITTED: i32 = 1020;
    const TIMED_OUT: i32 = 1031;

    fn fail(reachability: &Reachability, code: i32) {
        let failed = reachability.note::<()>(Err(FdbError::from_code(code)));
        assert_eq!(failed.unwrap_err().code(), code);
    }

    #[test]
    fn after_a_timeout_others_wait_less_until_there_is_an_answer() {
        let reachability = Reachability::default();
        assert_eq!(reachability.timeout_ms(60_000), 60_000);
        fail(&reachability, NOT_COMMITTED);
        assert!(!reachability.is_away());
        fail(&reachability, TIMED_OUT);
        assert!(reachability.is_away());
        assert_eq!(reachability.timeout_ms(60_000), AWAY_TIMEOUT_MS);
        assert_eq!(reachability.timeout_ms(1), 1);
        assert_eq!(reachability.note(Ok(7)).unwrap(), 7);
        assert_eq!(reachability.timeout_ms(60_000), 60_000);
    }
}
