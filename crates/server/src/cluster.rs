//! What the cluster port shows of servers (docs/understand/decisions/044-cluster-port.md): the
//! nodes, and which slots belong to each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use crc::{CRC_16_XMODEM, Crc};
use tokio::time::Instant;

use quoin_engine::roster::{LiveServer, Membership, Roster};

#[cfg(test)]
mod tests;

/// The number of slots of a Redis Cluster.
pub(super) const SLOTS: u16 = 16_384;
/// Number of slots in a block. A block has one owner. There are as many blocks as there may be
/// servers.
const BLOCK_SLOTS: u16 = 64;
const BLOCKS: usize = (SLOTS / BLOCK_SLOTS) as usize;
/// A node takes this part of an even share in addition, before the next best node has to take a block.
const EXTRA_SHARE: usize = 8;
/// How long the nodes must have been the same before clients are redirected. Until then, other
/// servers may see different nodes.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

const SUMS: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The slot of a key (Redis: `keyHashSlot`). Hashes what is between the first braces, or the whole
/// name if that is empty.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = || {
        let open = key.iter().position(|byte| *byte == b'{')?;
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    };
    SUMS.checksum(tag().unwrap_or(key)) % SLOTS
}

/// The block of a key's slot.
pub(super) fn block_of(key: &[u8]) -> usize {
    usize::from(slot_of(key) / BLOCK_SLOTS)
}

/// The slot of all these keys. `None` if there are no keys, or if they have several slots.
pub(super) fn slot_of_all<'k>(mut keys: impl Iterator<Item = &'k Bytes>) -> Option<u16> {
    let slot = slot_of(keys.next()?);
    keys.all(|key| slot_of(key) == slot).then_some(slot)
}

/// A live server with a cluster port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// The number of its start. The oldest has the least.
    pub(super) instance: u64,
    /// 40 hexadecimal digits.
    pub(super) id: String,
    pub(super) ip: String,
    /// May be empty.
    pub(super) hostname: String,
    /// The port for clients of the kind that asks.
    pub(super) port: u16,
}

impl Node {
    fn of(server: &LiveServer, speaks_tls: bool) -> Option<Self> {
        let row = &server.row;
        let port = match speaks_tls {
            false => row.cluster_port,
            true => row.cluster_tls_port,
        };
        (port != 0).then(|| Self {
            instance: server.instance,
            id: row.run_id.clone(),
            ip: row.ip.clone(),
            hostname: row.hostname.clone(),
            port,
        })
    }
}

/// The nodes, and what belongs to each.
#[derive(Debug)]
pub(super) struct View {
    /// The oldest first. Never empty.
    nodes: Vec<Node>,
    /// For each block of slots, the index of its node.
    owners: [u8; BLOCKS],
    own: Option<usize>,
    since: Instant,
}

impl View {
    /// `None` if no server has such a port.
    fn of(roster: &Roster, nodes: Vec<Node>) -> Option<Self> {
        let rows: Vec<&LiveServer> = nodes
            .iter()
            .filter_map(|node| {
                let mut servers = roster.servers().iter();
                servers.find(|server| server.instance == node.instance)
            })
            .collect();
        if rows.is_empty() {
            return None;
        }
        let owners = owners_of_blocks(rows.iter().copied());
        let is_own = |server: &&LiveServer| roster.is_own(server);
        Some(Self {
            own: rows.iter().position(is_own),
            nodes,
            owners,
            since: Instant::now(),
        })
    }

    /// All nodes, the oldest first, each with its ranges of slots: the first and the last of each.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Node, Vec<(u16, u16)>)> {
        let ranges = self.ranges();
        self.nodes.iter().enumerate().map(move |(place, node)| {
            let own = ranges.iter().filter(|(owner, _, _)| *owner == place);
            (node, own.map(|(_, first, last)| (*first, *last)).collect())
        })
    }

    /// The node of every range of slots, in the order of the slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = (&Node, u16, u16)> {
        let ranges = self.ranges().into_iter();
        ranges.filter_map(|(owner, first, last)| Some((self.nodes.get(owner)?, first, last)))
    }

    fn ranges(&self) -> Vec<(usize, u16, u16)> {
        let mut ranges: Vec<(usize, u16, u16)> = Vec::new();
        let mut first = 0;
        for owner in self.owners {
            let (owner, last) = (usize::from(owner), first + (BLOCK_SLOTS - 1));
            match ranges.last_mut() {
                Some(range) if range.0 == owner => range.2 = last,
                _ => ranges.push((owner, first, last)),
            }
            first = last + 1;
        }
        ranges
    }

    /// This server, unless it stops.
    pub(super) fn own(&self) -> Option<&Node> {
        self.nodes.get(self.own?)
    }

    /// Whether a slot is this server's.
    pub(super) fn owns(&self, slot: u16) -> bool {
        let owner = self.owners.get(usize::from(slot / BLOCK_SLOTS));
        self.own.is_some() && self.own == owner.copied().map(usize::from)
    }

    /// The node of this id, in any case.
    pub(super) fn find(&self, id: &[u8]) -> Option<&Node> {
        let is_it = |node: &&Node| node.id.as_bytes() == id;
        self.nodes.iter().find(is_it)
    }

    /// Whether there is another node.
    pub(super) fn has_others(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Whether another node answers requests that clients send to every node and add up. That is
    /// the oldest node with slots, because clients know no others.
    pub(super) fn is_answered_elsewhere(&self) -> bool {
        let answering = self.owners.iter().min().copied().map(usize::from);
        self.own.is_some() && self.own != answering
    }

    /// The node that clients with keys of a slot should use, if it is another one and other servers
    /// should know it.
    pub(super) fn better_node(&self, slot: u16) -> Option<&Node> {
        let owner = self.owners.get(usize::from(slot / BLOCK_SLOTS))?;
        let owner = usize::from(*owner);
        let is_better = Some(owner) != self.own && self.since.elapsed() >= SETTLED_AFTER;
        is_better.then(|| self.nodes.get(owner)).flatten()
    }
}

/// For each block of slots, the index of the server that owns it. All versions of Quoin must
/// compute the same.
pub(super) fn owners_of_blocks<'s>(servers: impl Iterator<Item = &'s LiveServer>) -> [u8; BLOCKS] {
    let servers: Vec<&LiveServer> = servers.collect();
    let room = BLOCKS.div_ceil(servers.len().max(1));
    let room = room + room.div_ceil(EXTRA_SHARE);
    let mut taken = vec![0; servers.len()];
    let mut owners = [0; BLOCKS];
    for (block, owner) in owners.iter_mut().enumerate() {
        let name = format!("block {block}");
        let free = taken.iter().zip(&servers).enumerate();
        let free = free.filter(|(_, (taken, _))| **taken < room);
        // The start decides between equal scores.
        let best = free
            .max_by_key(|(_, (_, server))| (server.row.score(name.as_bytes()), server.instance))
            .map_or(0, |(place, _)| place);
        if let Some(taken) = taken.get_mut(best) {
            *taken += 1;
        }
        // The roster has at most 256 servers.
        *owner = u8::try_from(best).unwrap_or(u8::MAX);
    }
    owners
}

/// The views of the two kinds of clients.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    plain: LastView,
    tls: LastView,
}

impl Cluster {
    /// The nodes for clients with TLS or without. `None` while this server does not know who is
    /// alive.
    pub(super) fn view(&self, membership: &Membership, speaks_tls: bool) -> Option<Arc<View>> {
        let roster = membership.roster()?;
        match speaks_tls {
            false => &self.plain,
            true => &self.tls,
        }
        .of(roster, speaks_tls)
    }
}

/// The last view, since the nodes change rarely, and the roster every second: its beats are new.
#[derive(Debug, Default)]
struct LastView(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    roster: Option<Arc<Roster>>,
    view: Option<Arc<View>>,
}

impl LastView {
    fn of(&self, roster: Arc<Roster>, speaks_tls: bool) -> Option<Arc<View>> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_seen = |one: &Arc<Roster>| Arc::ptr_eq(one, &roster);
        if !seen.roster.as_ref().is_some_and(is_seen) {
            let servers = roster.servers().iter();
            let nodes: Vec<Node> = servers
                .filter_map(|server| Node::of(server, speaks_tls))
                .collect();
            let is_same = |view: &Arc<View>| view.nodes == nodes;
            if !seen.view.as_ref().is_some_and(is_same) {
                seen.view = View::of(&roster, nodes).map(Arc::new);
            }
            seen.roster = Some(roster);
        }
        seen.view.clone()
    }
}
