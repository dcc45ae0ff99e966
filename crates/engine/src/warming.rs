//! Warms the rows of the next commands of a batch or of a read lane, some commands at a time.

use quoin_data::unit::AnyUnit;
use quoin_data::warm::{WARMED_COMMANDS, warm};

use super::call::Submission;

/// How far the commands of some submissions have been warmed.
#[derive(Debug, Default)]
pub(super) struct Warming {
    /// Warmed calls that have not begun.
    left: usize,
}

impl Warming {
    /// Call it before each call begins, here call `at` of submission `number`.
    pub(super) async fn before(
        &mut self,
        unit: AnyUnit<'_>,
        submissions: &[Submission],
        (number, at): (usize, usize),
    ) {
        if self.left == 0 {
            let rest = submissions.get(number..).unwrap_or_default();
            let next = || {
                let calls = rest.iter().flat_map(|one| &one.calls);
                calls.skip(at).take(WARMED_COMMANDS)
            };
            self.left = next().count();
            // Warming a single command saves nothing.
            if self.left > 1 {
                let invocations = next().filter_map(|call| call.work.invocations());
                warm(unit, invocations.flatten().take(WARMED_COMMANDS)).await;
            }
        }
        self.left = self.left.saturating_sub(1);
    }
}
