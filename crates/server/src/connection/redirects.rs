//! Which slots a client of the cluster port was sent elsewhere with.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// A client that was sent elsewhere is served if it comes back within this time: another server may see other nodes, and
/// send it here.
const MOVED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Slots of which it is remembered when a client was sent elsewhere. With more of them, it is served.
const MOVED_SLOTS_MAX: usize = 64;

/// What a client was told lately of slots of other nodes.
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

    /// Whether to send the client elsewhere with a slot. What arrived with a command that was sent elsewhere follows it, as
    /// it would otherwise overtake it.
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
