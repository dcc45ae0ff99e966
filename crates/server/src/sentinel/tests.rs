//! Several servers on one store, and clients of their Sentinel ports.

use std::time::Duration;

use super::*;
use crate::fleet::{Client, Fleet, TestServer, wait_until};
use crate::metrics;

impl TestServer {
    async fn connect(&self) -> Client {
        Client::connect(self.sentinel_port()).await
    }
}

impl Client {
    /// The port of a master.
    async fn master(&mut self, name: &str) -> Option<u16> {
        let reply = self
            .run(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {name}"))
            .await;
        let fields: Vec<&str> = reply.split("\r\n").collect();
        match fields.as_slice() {
            ["*2", "$9", "127.0.0.1", _, port, ""] => Some(port.parse().unwrap()),
            ["*-1", ""] => None,
            _ => panic!("{reply}"),
        }
    }
}

/// The index of a name's master, once all servers agree.
async fn master_among(servers: &[TestServer], name: &str) -> usize {
    let mut agreed = None;
    wait_until("all name one master", async || {
        let mut places = Vec::new();
        for server in servers {
            let port = server.connect().await.master(name).await;
            let mut ports = servers.iter().map(TestServer::port);
            places.push(ports.position(|one| Some(one) == port));
        }
        agreed = places[0];
        agreed.is_some() && places.iter().all(|place| *place == agreed)
    })
    .await;
    agreed.unwrap()
}

#[tokio::test]
async fn all_servers_name_one_master_and_the_other_sentinels() {
    let fleet = Fleet::new();
    let servers = fleet.start_all::<3>().await;
    for name in ["mymaster", "other"] {
        master_among(&servers, name).await;
    }
    let mut client = servers[0].connect().await;
    let others = client.run("SENTINEL SENTINELS mymaster").await;
    assert!(
        others.starts_with("*2\r\n*28\r\n$4\r\nname\r\n$40\r\n"),
        "{others}"
    );
    // The reply of redis-server 7.0 when it knows another Sentinel. Clients read some fields by
    // position.
    let texts = others
        .split("\r\n")
        .skip(2)
        .filter(|line| !line.starts_with('$'));
    let fields: Vec<&str> = texts.step_by(2).take(14).collect();
    assert_eq!(
        fields.join(" "),
        "name ip port runid flags link-pending-commands link-refcount last-ping-sent \
         last-ok-ping-reply last-ping-reply down-after-milliseconds last-hello-message voted-leader \
         voted-leader-epoch"
    );
    for server in &servers[1..] {
        let port = format!(
            "\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n{}\r\n",
            server.sentinel_port()
        );
        assert!(others.contains(&port), "{others}");
    }
    let quorum = client.run("SENTINEL CKQUORUM mymaster").await;
    assert!(quorum.starts_with("+OK 3 usable Sentinels. "), "{quorum}");
    let info = client.run("INFO sentinel").await;
    assert!(info.contains("\r\nsentinel_masters:2\r\n"), "{info}");
    assert!(
        info.contains(",slaves=0,sentinels=3\r\nmaster1:name=other,"),
        "{info}"
    );
    let masters = client.run("SENTINEL MASTERS").await;
    assert!(
        masters.contains("$19\r\nnum-other-sentinels\r\n$1\r\n2\r\n$6\r\nquorum\r\n$1\r\n2\r\n"),
        "{masters}"
    );
}

#[tokio::test]
async fn a_dead_master_is_replaced_and_subscribers_hear_of_it() {
    let fleet = Fleet::new();
    let servers = fleet.start_all::<3>().await;
    let dead = master_among(&servers, "mymaster").await;
    let alive = (dead + 1) % 3;
    let mut listening = servers[alive].connect().await;
    listening.send("PSUBSCRIBE *").await;
    listening.until("psubscribe").await;
    servers[dead].cut_off();
    let old = servers[dead].port();
    let master = async || servers[alive].connect().await.master("mymaster").await;
    wait_until("another is master", async || master().await != Some(old)).await;
    let next = master().await.unwrap();
    let switch = format!("\r\nmymaster 127.0.0.1 {old} 127.0.0.1 {next}\r\n");
    let received = listening.until(&switch).await;
    assert!(
        received.contains(&format!("\r\nmaster mymaster 127.0.0.1 {old}\r\n")),
        "{received}"
    );
    // A server that is cut off sends its clients elsewhere.
    assert_eq!(servers[dead].connect().await.master("mymaster").await, None);
    let mut client = servers[dead].connect().await;
    assert_eq!(client.run("SENTINEL MASTERS").await, "*0\r\n");
    let unknown = client.run("SENTINEL MASTER mymaster").await;
    assert_eq!(unknown, "-ERR No such master with that name\r\n");
}

#[tokio::test]
async fn one_server_is_the_leader_of_a_name_and_none_that_is_cut_off() {
    let fleet = Fleet::new();
    let servers = fleet.start_all::<3>().await;
    let leaders = |query: Option<&str>| -> Vec<usize> {
        let answers = servers
            .iter()
            .map(|server| metrics::leader(query, &server.state).0);
        let answers = answers.enumerate();
        let leading = answers.filter(|(_, status)| status.is_success());
        leading.map(|(place, _)| place).collect()
    };
    let first = master_among(&servers, "mymaster").await;
    assert_eq!(leaders(Some("name=mymaster")), [first]);
    assert_eq!(leaders(None), [first]);
    assert_eq!(leaders(Some("a=b&name=any-name")).len(), 1);
    servers[first].cut_off();
    wait_until("another leads", async || {
        let now = leaders(Some("name=mymaster"));
        assert!(now.len() < 2, "{now:?}");
        now.first().is_some_and(|place| *place != first)
    })
    .await;
    let (status, why) = metrics::leader(None, &servers[first].state);
    assert_eq!(status.as_u16(), 503);
    assert_eq!(why, "this server does not know which servers are alive\n");
}

/// A client that pushes to the master that sentinels name.
struct Pusher {
    sentinel_ports: Vec<u16>,
    connection: Option<Client>,
    acknowledged: Vec<String>,
    /// Number of pushes without a reply.
    unknown: usize,
}

impl Pusher {
    /// Pushes once. Whether the push is acknowledged.
    async fn push(&mut self, value: &str) -> bool {
        if self.connection.is_none() {
            self.connection = self.find_master().await;
        }
        let Some(connection) = &mut self.connection else {
            return false;
        };
        match connection.try_run(&format!("RPUSH jobs {value}")).await {
            Some(reply) if reply.starts_with(':') => {
                self.acknowledged.push(value.to_owned());
                true
            }
            reply => {
                self.unknown += usize::from(reply.is_none());
                self.connection = None;
                false
            }
        }
    }

    async fn find_master(&self) -> Option<Client> {
        for port in &self.sentinel_ports {
            let Some(mut sentinel) = Client::try_connect(*port).await else {
                continue;
            };
            let ask = "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster";
            let Some(reply) = sentinel.try_run(ask).await else {
                continue;
            };
            let port = reply
                .split("\r\n")
                .nth(4)
                .and_then(|port| port.parse().ok());
            if let Some(port) = port
                && let Some(client) = Client::try_connect(port).await
            {
                return Some(client);
            }
        }
        None
    }
}

#[tokio::test]
async fn no_acknowledged_push_is_lost_while_masters_are_killed() {
    let fleet = Fleet::new();
    let mut servers: Vec<TestServer> = fleet.start_all::<3>().await.into();
    let mut pusher = Pusher {
        sentinel_ports: servers.iter().map(TestServer::sentinel_port).collect(),
        connection: None,
        acknowledged: Vec::new(),
        unknown: 0,
    };
    let mut number = 0;
    for kills in 1..=2 {
        for _ in 0..50 {
            number += 1;
            assert!(pusher.push(&format!("before{kills}-{number}")).await);
        }
        let place = master_among(&servers, "mymaster").await;
        servers.remove(place).kill().await;
        let killed_at = std::time::Instant::now();
        loop {
            number += 1;
            if pusher.push(&format!("during{kills}-{number}")).await {
                break;
            }
            // Three seconds of silence, plus up to one beat, on a machine that may be slow.
            assert!(killed_at.elapsed() < Duration::from_secs(15));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let mut reader = Client::connect(servers[0].port()).await;
    let mut pushed = reader.run("LRANGE jobs 0 -1").await;
    for value in &pusher.acknowledged {
        let line = format!("\r\n{value}\r\n");
        assert_eq!(pushed.matches(&line).count(), 1, "{value}");
        pushed = pushed.replacen(&line, "\r\n", 1);
    }
    // Others were pushed without their reply.
    assert!(pushed.matches("\r\n$").count() <= pusher.acknowledged.len() + pusher.unknown);
    assert!(pusher.acknowledged.len() > 100);
}

#[tokio::test]
async fn clients_hear_of_a_server_that_joins() {
    let fleet = Fleet::new();
    let [first] = fleet.start_all::<1>().await;
    let mut listening = first.connect().await;
    listening.send("SUBSCRIBE +sentinel").await;
    listening.until("subscribe").await;
    let second = fleet.start().await;
    let received = listening.until("@ other 127.0.0.1").await;
    let (id, port) = (&second.state.run_id, second.sentinel_port());
    let joined = format!("\r\nsentinel {id} 127.0.0.1 {port} @ mymaster 127.0.0.1 ");
    assert!(received.contains(&joined), "{received}");
}

#[tokio::test]
async fn a_master_is_moved_by_hand_and_all_servers_know() {
    let fleet = Fleet::new();
    let servers = fleet.start_all::<2>().await;
    let before = master_among(&servers, "mymaster").await;
    let other = master_among(&servers, "other").await;
    let mut client = servers[0].connect().await;
    let mut listening = servers[1].connect().await;
    listening.send("SUBSCRIBE +switch-master").await;
    listening.until("subscribe").await;
    assert_eq!(client.run("SENTINEL FAILOVER mymaster").await, "+OK\r\n");
    let received = listening.until("mymaster 127.0.0.1").await;
    assert!(!received.contains("other"), "{received}");
    wait_until("both know", async || {
        let mut ports = Vec::new();
        for server in &servers {
            ports.push(server.connect().await.master("mymaster").await);
        }
        ports
            .iter()
            .all(|port| *port == Some(servers[1 - before].port()))
    })
    .await;
    assert_eq!(master_among(&servers, "other").await, other);
    assert_eq!(client.run("SENTINEL FAILOVER mymaster").await, "+OK\r\n");
    wait_until("it is back", async || {
        let master = servers[0].connect().await.master("mymaster").await;
        master == Some(servers[before].port())
    })
    .await;
}

#[tokio::test]
async fn a_server_alone_has_nobody_to_hand_a_master_to() {
    let fleet = Fleet::new();
    let [server] = fleet.start_all::<1>().await;
    let mut client = server.connect().await;
    assert_eq!(
        client.run("SENTINEL FAILOVER mymaster").await,
        "-NOGOODSLAVE No suitable replica to promote\r\n"
    );
    assert_eq!(
        client.run("SENTINEL FAILOVER nosuch").await,
        "-ERR No such master with that name\r\n"
    );
}

#[tokio::test]
async fn a_server_that_leaves_is_nobodys_master_at_once() {
    let fleet = Fleet::new();
    let servers = fleet.start_all::<2>().await;
    let master = master_among(&servers, "mymaster").await;
    let mut client = servers[master].connect().await;
    servers[master].state.membership.leave().await;
    let next = Some(servers[1 - master].port());
    assert_eq!(client.master("mymaster").await, next);
    let started = std::time::Instant::now();
    wait_until("the other knows", async || {
        servers[1 - master].connect().await.master("mymaster").await == next
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn clients_with_tls_get_the_port_with_tls_where_there_is_one() {
    let row = ServerRow {
        ip: "10.0.0.1".to_owned(),
        port: 1,
        tls_port: 2,
        sentinel_tls_port: 4,
        ..ServerRow::default()
    };
    let address = |row: &ServerRow, speaks_tls| ServerAddress::of_data(row, speaks_tls).to_string();
    assert_eq!(address(&row, false), "10.0.0.1 1");
    assert_eq!(address(&row, true), "10.0.0.1 2");
    let only_tls = ServerRow {
        port: 0,
        ..row.clone()
    };
    assert_eq!(address(&only_tls, false), "10.0.0.1 2");
    let only_plain = ServerRow {
        tls_port: 0,
        ..row.clone()
    };
    assert_eq!(address(&only_plain, true), "10.0.0.1 1");
    assert_eq!(ServerAddress::of_sentinel(&row, false), None);
    let named = ServerRow {
        hostname: "a.b".to_owned(),
        ..row
    };
    assert_eq!(
        ServerAddress::of_sentinel(&named, true)
            .unwrap()
            .to_string(),
        "a.b 4"
    );
}
