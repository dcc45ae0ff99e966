//! What the executor's threads and the server share.

use std::sync::Arc;

use super::activity::Activity;
use super::forwarding::Contention;
use super::in_flight::InFlight;
use super::owners::Owners;
use super::relay_state::RelayState;
use super::rounds_state::Rounds;
use super::waiters::Waiters;
use super::watchers::Watchers;
use quoin_data::prefetch::LocationCache;

/// What the lanes and the server share about clients that wait or watch.
#[derive(Default)]
pub struct Shared {
    /// Clients that wait for something in a key.
    pub waiters: Arc<Waiters>,
    /// Clients that watch keys.
    pub watchers: Arc<Watchers>,
    /// The activity of queues.
    pub(super) activity: Activity,
    /// The other servers, if any.
    pub(super) owners: Option<Arc<dyn Owners>>,
    /// Which keys they contend for.
    pub(super) contention: Contention,
    /// Messages from and to other servers.
    pub relay: RelayState,
    /// Where the data of keys is stored.
    pub(super) locations: LocationCache,
    /// Commands that run on the connections' thread.
    pub(super) rounds: Rounds,
    /// Replies that connections have not taken over yet.
    pub(super) in_flight: Arc<InFlight>,
}
