//! The ways for clients to find a server: a given address, Sentinel, Redis Cluster, and `/leader`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::resp::{Connection, Value};
use crate::server::free_port;

/// How long a client waits for a reply about servers. A paused server does not reply.
const PATIENCE: Duration = Duration::from_millis(500);
/// The name whose master clients ask for.
const NAME: &str = "mymaster";

/// The ports of a server that direct clients. They stay the same when the server is killed and
/// restarted.
pub struct Doors {
    sentinel: u16,
    cluster: u16,
    metrics: u16,
    /// Where other clients connect.
    announced: SocketAddr,
}

impl Doors {
    pub fn new(announced: SocketAddr) -> Self {
        Self {
            sentinel: free_port(),
            cluster: free_port(),
            metrics: free_port(),
            announced,
        }
    }

    /// The flags to start a server with.
    pub fn flags(&self) -> Vec<String> {
        let local = |port: u16| format!("127.0.0.1:{port}");
        let flags = [
            ("--announce-ip", "127.0.0.1".to_owned()),
            ("--announce-port", self.announced.port().to_string()),
            ("--sentinel-port", self.sentinel.to_string()),
            ("--sentinel-masters", NAME.to_owned()),
            ("--cluster-port", self.cluster.to_string()),
            ("--metrics-address", local(self.metrics)),
        ];
        let flags = flags.into_iter();
        flags
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }

    /// Where a client goes after asking this server's Sentinel port.
    pub fn by_sentinel(&self) -> Option<SocketAddr> {
        let reply = ask(
            self.sentinel,
            &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME],
        )?;
        let [_, port] = reply.items()? else {
            return None;
        };
        let port = std::str::from_utf8(port.bytes()?).ok()?;
        Some(local(port.parse().ok()?))
    }

    /// Where a client goes after asking this server's cluster port: the node of the slots at this
    /// index.
    pub fn by_cluster(&self, place: usize) -> Option<SocketAddr> {
        let slots = ask(self.cluster, &["CLUSTER", "SLOTS"])?;
        let ranges = slots.items()?;
        let range = ranges.get(place.checked_rem(ranges.len())?)?.items()?;
        let port = range.get(2)?.items()?.get(1)?.integer()?;
        Some(local(u16::try_from(port).ok()?))
    }

    /// Where a client goes if this server's `/leader` says that it is the leader.
    pub fn by_leader(&self) -> Option<SocketAddr> {
        let mut stream = TcpStream::connect(local(self.metrics)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let request = format!("GET /leader?name={NAME} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?;
        (status == "200").then_some(self.announced)
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn ask(port: u16, words: &[&str]) -> Option<Value> {
    let mut connection = Connection::open_with_timeout(local(port), PATIENCE).ok()?;
    connection.command(words).ok()
}
