//! For which slots a client of the cluster port was redirected.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// If a client that was redirected comes back within this time, it is served: another server may
/// see different nodes, and have sent it here.
const MOVED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of slots for which redirections of a client are remembered. For further slots,
/// the client is served.
const MOVED_SLOTS_MAX: usize = 64;

/// Recent redirections of a client, by slot.
#[derive(Debug, Default)]
pub(super) struct Redirects {
    moved: HashMap<u16, Moved>,
    /// Counts the times when the client's input was executed.
    round: u64,
}

#[derive(Debug)]
struct Moved {
    at: Instant,
    round: u64,
}

impl Redirects {
    /// More input is executed.
    pub(super) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Whether to redirect the client for a slot. Commands that arrived together with a redirected
    /// one are redirected too, because otherwise they would overtake it.
    pub(super) fn may_tell(&mut self, slot: u16) -> bool {
        let is_recent = |moved: &Moved| moved.at.elapsed() < MOVED_AGAIN_AFTER;
        if let Some(moved) = self.moved.get(&slot) {
            if moved.round == self.round {
                return true;
            }
            if is_recent(moved) {
                return false;
            }
        }
        if self.moved.len() >= MOVED_SLOTS_MAX {
            self.moved.retain(|_, moved| is_recent(moved));
        }
        let has_room = self.moved.len() < MOVED_SLOTS_MAX;
        if has_room {
            let (at, round) = (Instant::now(), self.round);
            self.moved.insert(slot, Moved { at, round });
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_is_sent_elsewhere_once_a_second_for_a_slot_with_all_that_came_together() {
        let mut redirects = Redirects::default();
        redirects.begin_round();
        assert!(redirects.may_tell(1));
        assert!(redirects.may_tell(1));
        assert!(redirects.may_tell(2));
        redirects.begin_round();
        assert!(!redirects.may_tell(1));
        assert!(redirects.may_tell(3));
        tokio::time::advance(MOVED_AGAIN_AFTER).await;
        assert!(redirects.may_tell(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let mut redirects = Redirects::default();
        let told = (0..1000).filter(|slot| redirects.may_tell(*slot)).count();
        assert_eq!(told, MOVED_SLOTS_MAX);
        redirects.begin_round();
        tokio::time::advance(MOVED_AGAIN_AFTER).await;
        assert!(redirects.may_tell(1000));
        assert_eq!(redirects.moved.len(), 1);
    }
}
