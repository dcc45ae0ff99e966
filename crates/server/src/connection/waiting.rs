//! A blocking command that waits.

use std::sync::Arc;

use tokio::time::Instant;

use quoin_data::command::call::Invocation;
use quoin_engine::{Wait, Waiter, Waiters};

/// A blocking command that was submitted.
pub(super) struct Waiting {
    pub(super) wait: Wait,
    /// When its timeout ends. `None` means never.
    pub(super) until: Option<Instant>,
}

impl Waiting {
    /// Prepares a command to wait if it finds nothing. `None` if it does not wait, or if its
    /// arguments are invalid, in which case the command's code returns the error.
    pub(super) fn prepare(
        waiters: &Arc<Waiters>,
        invocation: &Invocation,
        now_ms: i64,
    ) -> Option<Self> {
        let spec = invocation.row.waits?(&invocation.arguments, now_ms).ok()??;
        let timeout = spec.timeout;
        Some(Self {
            wait: Wait::new(waiters, Waiter::new(invocation.clone(), spec)),
            // A time beyond the clock's range never comes.
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        })
    }

    pub(super) fn waiter(&self) -> Arc<Waiter> {
        self.wait.waiter()
    }
}
