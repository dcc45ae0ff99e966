//! What the Sentinel port shows of servers (docs/understand/decisions/040-servers.md): addresses in
//! the form that its clients want, and messages about changes.

use std::sync::Arc;

use bytes::Bytes;

use crate::clients::Delivery;
use crate::pubsub::PubSub;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};
use quoin_engine::roster::{LiveServer, Roster, RosterWatch};
use quoin_layout::ServerRow;

#[cfg(test)]
mod tests;

/// What all clients of the Sentinel port share.
pub(super) struct Sentinel {
    /// The names of masters, in the order of the setting.
    pub(super) names: Vec<String>,
    plain: PubSub,
    tls: PubSub,
}

impl Sentinel {
    /// For the names of a setting.
    pub(super) fn new(names: Vec<String>, delivery: &Arc<Delivery>) -> Self {
        Self {
            names,
            plain: PubSub::new(Arc::clone(delivery)),
            tls: PubSub::new(Arc::clone(delivery)),
        }
    }

    /// Subscriptions of the clients with TLS, or without: their messages have other ports.
    pub(super) fn pubsub(&self, speaks_tls: bool) -> &PubSub {
        match speaks_tls {
            false => &self.plain,
            true => &self.tls,
        }
    }

    /// Whether anybody is subscribed.
    pub(super) fn has_subscribers(&self) -> bool {
        !self.plain.is_empty() || !self.tls.is_empty()
    }
}

/// Where clients reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub(super) host: String,
    pub(super) port: u16,
}

impl ServerAddress {
    /// Of the server with its data. A server without the port that the client prefers has the other.
    pub(super) fn of_data(row: &ServerRow, speaks_tls: bool) -> Self {
        let port = match (speaks_tls, row.port, row.tls_port) {
            (true, plain, 0) => plain,
            (true, _, tls) => tls,
            (false, 0, tls) => tls,
            (false, plain, _) => plain,
        };
        Self::at(row, port)
    }

    /// Of the server's Sentinel port. `None` if it has none of this kind.
    pub(super) fn of_sentinel(row: &ServerRow, speaks_tls: bool) -> Option<Self> {
        let port = match speaks_tls {
            false => row.sentinel_port,
            true => row.sentinel_tls_port,
        };
        (port != 0).then(|| Self::at(row, port))
    }

    fn at(row: &ServerRow, port: u16) -> Self {
        let host = match row.hostname.as_str() {
            "" => &row.ip,
            hostname => hostname,
        };
        Self {
            host: host.to_owned(),
            port,
        }
    }
}

/// `host port`, as in messages.
impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.host, self.port)
    }
}

/// Notifies subscribers of the Sentinel port when servers come and go, and when masters change.
pub(super) struct Announcer {
    rosters: RosterWatch,
    announced: Option<Arc<Roster>>,
}

impl Announcer {
    /// Begins with the first roster, which is no change.
    pub(super) fn new(rosters: RosterWatch) -> Self {
        Self {
            rosters,
            announced: None,
        }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(&mut self, sentinel: &Sentinel) {
        loop {
            let roster = self.rosters.known().await;
            self.tell(sentinel, roster);
            self.rosters.changed().await;
        }
    }

    /// Announces what has changed by now.
    pub(super) fn catch_up(&mut self, sentinel: &Sentinel) {
        if let Some(roster) = self.rosters.latest() {
            self.tell(sentinel, roster);
        }
    }

    fn tell(&mut self, sentinel: &Sentinel, roster: Arc<Roster>) {
        let before = self.announced.replace(Arc::clone(&roster));
        let Some(before) = before else {
            return;
        };
        if Arc::ptr_eq(&before, &roster) || before == roster || !sentinel.has_subscribers() {
            return;
        }
        for speaks_tls in [false, true] {
            let pubsub = sentinel.pubsub(speaks_tls);
            if pubsub.is_empty() {
                continue;
            }
            for (channel, payload) in changes(&sentinel.names, &before, &roster, speaks_tls) {
                pubsub.deliver(&Message {
                    kind: ChannelKind::Global,
                    channel: Bytes::from_static(channel.as_bytes()),
                    payload: payload.into(),
                });
            }
        }
    }
}

/// Redis Sentinel's messages about the changes: channels and payloads.
fn changes(
    names: &[String],
    before: &Roster,
    after: &Roster,
    speaks_tls: bool,
) -> Vec<(&'static str, String)> {
    let gone = missing_in(before, after);
    let new = missing_in(after, before);
    let mut announced = Vec::new();
    for name in names {
        let old = before.master_of(name.as_bytes());
        let master = after.master_of(name.as_bytes());
        let (Some(old), Some(master)) = (old, master) else {
            continue;
        };
        let address = ServerAddress::of_data(&master.row, speaks_tls);
        let old_address = ServerAddress::of_data(&old.row, speaks_tls);
        if gone.iter().any(|server| server.instance == old.instance) {
            announced.push(("+sdown", format!("master {name} {old_address}")));
        }
        if address != old_address {
            announced.push(("+switch-master", format!("{name} {old_address} {address}")));
        }
        for (channel, servers) in [("+sdown", &gone), ("+sentinel", &new)] {
            for row in servers.iter().map(|server| &server.row) {
                if let Some(sentinel) = ServerAddress::of_sentinel(row, speaks_tls) {
                    let id = &row.run_id;
                    let text = format!("sentinel {id} {sentinel} @ {name} {address}");
                    announced.push((channel, text));
                }
            }
        }
    }
    announced
}

/// The servers of a roster that another lacks.
fn missing_in<'r>(roster: &'r Roster, other: &Roster) -> Vec<&'r LiveServer> {
    let is_missing = |server: &&LiveServer| {
        let mut others = other.servers().iter();
        !others.any(|other| other.instance == server.instance)
    };
    roster.servers().iter().filter(is_missing).collect()
}
