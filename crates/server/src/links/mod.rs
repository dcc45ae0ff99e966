//! Links between the servers of a store: each hands commands on keys to the server that owns them
//! (docs/understand/decisions/053-forwarding.md).

mod connecting;
mod frame;
pub(super) mod handshake;
mod peer;
mod serving;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;

use self::connecting::Connector;
use self::peer::Peer;
use crate::cluster::{block_of, owners_of_blocks};
use quoin_base::random::Random;
use quoin_config::RuntimeConfig;
use quoin_engine::Call;
use quoin_engine::roster::{LiveServer, Roster, RosterWatch};
use quoin_engine::{Forwarded, ForwardedFuture, Owners};

pub(super) use serving::serve;

/// The links of this server to all others.
pub(super) struct Links {
    roster: RosterWatch,
    connector: Arc<Connector>,
    /// The setting `forwarding`.
    is_on: Arc<AtomicBool>,
    seen: Mutex<Seen>,
}

/// The servers of a roster.
#[derive(Default)]
struct Seen {
    roster: Option<Arc<Roster>>,
    /// For each block of slots, the index of its owner. Empty if this is the only server.
    owners: Vec<u8>,
    /// In the order of the roster. `None` is this server.
    servers: Vec<Option<(u64, Arc<Peer>)>>,
}

impl Links {
    pub(super) fn new(
        roster: RosterWatch,
        runtime: Handle,
        config: Arc<RuntimeConfig>,
        random: Arc<dyn Random>,
        secret: Bytes,
    ) -> Self {
        let is_on = Arc::clone(config.live.forwarding());
        let connector = Connector {
            runtime,
            config,
            random,
            secret,
        };
        Self {
            roster,
            connector: Arc::new(connector),
            is_on,
            seen: Mutex::default(),
        }
    }

    /// Calls `use_seen` with the servers that live now.
    fn with_seen<T>(&self, use_seen: impl FnOnce(&Seen) -> Option<T>) -> Option<T> {
        let roster = self.roster.current()?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_seen = |one: &Arc<Roster>| Arc::ptr_eq(one, &roster);
        if !seen.roster.as_ref().is_some_and(is_seen) {
            self.renew(&mut seen, roster);
        }
        use_seen(&seen)
    }

    fn renew(&self, seen: &mut Seen, roster: Arc<Roster>) {
        let servers = roster.servers();
        let instances = |servers| <[LiveServer]>::iter(servers).map(|server| server.instance);
        let known = seen.roster.as_ref();
        // Each beat makes a roster, usually with the same servers.
        if known.is_some_and(|known| instances(known.servers()).eq(instances(servers))) {
            seen.roster = Some(roster);
            return;
        }
        let before = std::mem::take(&mut seen.servers);
        let mut before: HashMap<u64, Arc<Peer>> = before.into_iter().flatten().collect();
        seen.owners = match servers.len() {
            0 | 1 => Vec::new(),
            _ => owners_of_blocks(servers.iter()).to_vec(),
        };
        let others = servers.iter().map(|server| {
            let instance = server.instance;
            (!roster.is_own(server)).then(|| {
                let known = before.remove(&instance);
                let new = || Peer::new(server.clone(), self.roster.clone(), &self.connector);
                (instance, known.unwrap_or_else(|| Arc::new(new())))
            })
        });
        seen.servers = others.collect();
        seen.roster = Some(roster);
    }
}

impl Owners for Links {
    fn owner_of(&self, mut keys: &mut dyn Iterator<Item = &Bytes>) -> Option<u64> {
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        self.with_seen(|seen| {
            let owner_of = |key: &Bytes| seen.owners.get(block_of(key)).copied();
            let owner = owner_of(keys.next()?)?;
            let (instance, peer) = seen.servers.get(usize::from(owner))?.as_ref()?;
            let is_alike = |key: &Bytes| owner_of(key) == Some(owner);
            (Iterator::all(&mut keys, is_alike) && peer.is_up()).then_some(*instance)
        })
    }

    fn forward(&self, owner: u64, calls: &[Call], reply_bytes_max: usize) -> ForwardedFuture {
        let peer = self.with_seen(|seen| {
            let mut others = seen.servers.iter().flatten();
            let found = others.find(|(instance, _)| *instance == owner);
            found.map(|(_, peer)| Arc::clone(peer))
        });
        let handed = peer.and_then(|peer| peer.hand_over(calls, reply_bytes_max));
        Box::pin(async move {
            match handed {
                Some(response) => response.await.unwrap_or(Forwarded::Unknown),
                None => Forwarded::NotRun,
            }
        })
    }
}
