//! The servers that share a store, as this server sees them
//! (docs/understand/decisions/040-servers.md).
//!
//! Every server writes a row once a second and reads the rows of all others. [`Observer`] decides
//! by this server's own clock which of them are alive. The result is a [`Roster`]. Two servers may
//! see different rosters for some seconds. So a roster may direct clients, but correctness must not
//! depend on it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use quoin_base::limits::{SERVER_BEAT_INTERVAL, SERVER_DEAD_AFTER, SERVER_REMOVED_AFTER};
use quoin_data::cluster::roster::RosterRows;
use quoin_layout::ServerRow;

mod membership;
#[cfg(test)]
mod tests;

pub use membership::{Membership, RosterWatch, Sightings};

/// Minimum silence before a server counts as dead. It is half a beat shorter than the usual silence
/// by then, because reads are not exactly a beat apart.
const SILENCE_MIN: Duration = SERVER_DEAD_AFTER.saturating_sub(Duration::from_millis(
    SERVER_BEAT_INTERVAL.as_millis() as u64 / 2,
));
/// How many reads must find the same beat before a server counts as dead. Time alone is not enough:
/// a store that stalls keeps all servers from writing.
const SILENT_READS_MIN: u32 = 3;
/// How many reads must find the same beat before a row is removed, for the same reason.
const REMOVED_READS_MIN: u32 = 30;
/// How many reads to wait for a first change of beat in a row that was already there at the start.
const UNPROVEN_READS_MAX: u32 = 2;

/// A live server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveServer {
    /// The number of its start. The oldest server has the lowest.
    pub instance: u64,
    /// Its row, with its address.
    pub row: ServerRow,
}

/// The live servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster {
    servers: Vec<LiveServer>,
    choices: BTreeMap<Vec<u8>, u64>,
    own: u64,
}

impl Roster {
    /// A roster of one server.
    pub fn of_one(instance: u64, row: ServerRow) -> Self {
        Self {
            servers: vec![LiveServer { instance, row }],
            choices: BTreeMap::new(),
            own: instance,
        }
    }

    /// The live servers, the oldest first.
    pub fn servers(&self) -> &[LiveServer] {
        &self.servers
    }

    /// The live servers other than this one.
    pub fn others(&self) -> impl Iterator<Item = &LiveServer> {
        self.servers
            .iter()
            .filter(|server| server.instance != self.own)
    }

    /// Whether a live server is this one.
    pub fn is_own(&self, server: &LiveServer) -> bool {
        server.instance == self.own
    }

    /// The server that clients of a name should use: the one chosen by an operator if it is alive,
    /// otherwise the one with the highest score for the name. `None` only while the last server
    /// stops.
    pub fn master_of(&self, name: &[u8]) -> Option<&LiveServer> {
        let chosen = self.choices.get(name);
        let is_chosen = |server: &&LiveServer| Some(&server.instance) == chosen;
        let chosen = self.servers.iter().find(is_chosen);
        chosen.or_else(|| self.best(name, None))
    }

    /// The server that should take over a name from its master. `None` if there is no other.
    pub fn successor_of(&self, name: &[u8]) -> Option<&LiveServer> {
        let master = self.master_of(name)?;
        self.best(name, Some(master.instance))
    }

    fn best(&self, name: &[u8], except: Option<u64>) -> Option<&LiveServer> {
        let servers = self.servers.iter();
        servers
            .filter(|server| Some(server.instance) != except)
            // The instance breaks ties, so that all servers decide alike.
            .max_by_key(|server| (server.row.score(name), server.instance))
    }

    /// The roster without this server.
    fn without_own(&self) -> Self {
        let mut left = self.clone();
        let own = self.own;
        left.servers.retain(|server| server.instance != own);
        left
    }
}

/// What is known about another server's row.
#[derive(Debug)]
struct Seen {
    row: ServerRow,
    changed_at: Instant,
    /// Number of reads since then.
    silent_reads: u32,
    /// Whether its beat has changed, or the row is newer than this observer.
    is_proven: bool,
}

impl Seen {
    fn is_alive(&self, now: Instant) -> bool {
        let is_silent = now - self.changed_at > SILENCE_MIN;
        self.is_proven && !(is_silent && self.silent_reads >= SILENT_READS_MIN)
    }
}

/// What should be removed from the store.
#[derive(Debug, Default, PartialEq, Eq)]
struct Remains {
    servers: Vec<(u64, ServerRow)>,
    choices: Vec<(Vec<u8>, u64)>,
}

/// Decides which servers are alive.
#[derive(Debug)]
struct Observer {
    own: u64,
    seen: HashMap<u64, Seen>,
    has_observed: bool,
    is_settled: bool,
}

impl Observer {
    fn new(own: u64) -> Self {
        Self {
            own,
            seen: HashMap::new(),
            has_observed: false,
            is_settled: false,
        }
    }

    /// Processes the rows that were read. `own_row` is this server's.
    fn observe(&mut self, rows: &RosterRows, own_row: &ServerRow, now: Instant) -> Roster {
        self.seen
            .retain(|instance, _| rows.servers.iter().any(|(other, _)| other == instance));
        for (instance, row) in &rows.servers {
            if *instance == self.own {
                continue;
            }
            match self.seen.get_mut(instance) {
                Some(seen) if seen.row.beat == row.beat => seen.silent_reads += 1,
                seen => {
                    let is_proven = seen.is_some() || self.has_observed;
                    let found = Seen {
                        row: row.clone(),
                        changed_at: now,
                        silent_reads: 0,
                        is_proven,
                    };
                    self.seen.insert(*instance, found);
                }
            }
        }
        self.has_observed = true;
        self.is_settled |= self
            .seen
            .values()
            .all(|seen| seen.is_proven || seen.silent_reads >= UNPROVEN_READS_MAX);
        self.roster(rows, own_row, now)
    }

    fn roster(&self, rows: &RosterRows, own_row: &ServerRow, now: Instant) -> Roster {
        let live = self.seen.iter().filter(|(_, seen)| seen.is_alive(now));
        let mut servers: Vec<LiveServer> = live
            .map(|(instance, seen)| (*instance, &seen.row))
            .chain([(self.own, own_row)])
            .map(|(instance, row)| LiveServer {
                instance,
                row: row.clone(),
            })
            .collect();
        servers.sort_by_key(|server| server.instance);
        let restarted: Vec<u64> = servers
            .iter()
            .enumerate()
            .filter(|(place, server)| {
                let mut later = servers.iter().skip(place + 1);
                later.any(|later| later.row.has_address_of(&server.row))
            })
            .map(|(_, server)| server.instance)
            .collect();
        servers
            .retain(|server| server.instance == self.own || !restarted.contains(&server.instance));
        Roster {
            servers,
            choices: rows.choices.iter().cloned().collect(),
            own: self.own,
        }
    }

    /// Whether another live server claims the same address, which must be a configuration
    /// mistake: it has beaten since this server began to listen there.
    fn has_double(&self, own_row: &ServerRow) -> bool {
        let is_double = |seen: &Seen| {
            seen.is_proven && seen.silent_reads == 0 && seen.row.has_address_of(own_row)
        };
        self.seen.values().any(is_double)
    }

    /// Rows of servers that have long been silent, and choices that name servers without a row.
    fn remains(&self, rows: &RosterRows, now: Instant) -> Remains {
        let is_silent = |seen: &Seen| {
            now - seen.changed_at > SERVER_REMOVED_AFTER && seen.silent_reads >= REMOVED_READS_MIN
        };
        let servers = self.seen.iter().filter(|(_, seen)| is_silent(seen));
        let has_row = |instance: u64| rows.servers.iter().any(|(other, _)| *other == instance);
        let is_known = |instance: u64| instance == self.own || has_row(instance);
        // An unreadable row may belong to a chosen server.
        let choices = rows.choices.iter();
        let choices = choices.filter(|(_, instance)| rows.unreadable == 0 && !is_known(*instance));
        Remains {
            servers: servers
                .map(|(instance, seen)| (*instance, seen.row.clone()))
                .collect(),
            choices: choices.cloned().collect(),
        }
    }
}

/// A roster, and when it was last confirmed.
#[derive(Debug, Clone)]
struct Sighting {
    roster: Arc<Roster>,
    /// `None` if the roster does not age, because there are no other servers.
    at: Option<Instant>,
}

impl Sighting {
    /// The roster, unless it is so old that others may have declared this server dead.
    fn current(&self) -> Option<Arc<Roster>> {
        let is_old = self.at.is_some_and(|at| at.elapsed() > SILENCE_MIN);
        (!is_old).then(|| Arc::clone(&self.roster))
    }
}
