//! The port on which the server acts as Redis Sentinel. The form of its replies is compared with
//! Redis in tests/differential.

use std::net::{SocketAddr, TcpListener};

use redis::Commands;
use redis::sentinel::{Sentinel, SentinelNodeConnectionInfo};

use crate::server::{Server, Socket, free_port, is_on_foundationdb, wait_until};

struct Scene {
    server: Server,
    sentinel: SocketAddr,
}

impl Scene {
    fn start(flags: &[&str]) -> Self {
        let port = free_port();
        let text = port.to_string();
        let server = Server::start_with(&[&["--sentinel-port", text.as_str()], flags].concat());
        Self {
            server,
            sentinel: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }

    fn connect(&self) -> Socket {
        Socket::connect(self.sentinel)
    }

    fn master(&self) -> String {
        let port = self.server.address().port();
        format!("*2\r\n$9\r\n127.0.0.1\r\n$5\r\n{port}\r\n")
    }
}

const ASK: &str = "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster";

#[test]
fn a_server_names_itself_and_its_port() {
    let scene = Scene::start(&[]);
    assert_eq!(scene.connect().run(ASK), scene.master());
    let other = scene
        .connect()
        .run("SENTINEL GET-MASTER-ADDR-BY-NAME other");
    assert_eq!(other, "*-1\r\n");
    let info = scene.connect().run("INFO server");
    let port = scene.sentinel.port();
    assert!(info.contains("\r\nredis_mode:sentinel\r\n"), "{info}");
    assert!(info.contains(&format!("\r\ntcp_port:{port}\r\n")), "{info}");
    // The other ports are unchanged.
    let mut data = scene.server.connect();
    assert!(
        data.run("INFO server")
            .contains("\r\nredis_mode:standalone\r\n")
    );
    assert_eq!(data.run("ROLE"), "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    assert_eq!(
        data.run("SENTINEL MASTERS"),
        "-ERR unknown command 'SENTINEL', with args beginning with: 'MASTERS' \r\n"
    );
}

#[test]
fn names_are_those_of_the_setting_and_addresses_those_that_are_announced() {
    let scene = Scene::start(&[
        "--sentinel-masters",
        "mail web",
        "--announce-ip",
        "10.1.2.3",
        "--announce-port",
        "6379",
    ]);
    let mut socket = scene.connect();
    assert_eq!(socket.run(ASK), "*-1\r\n");
    for name in ["mail", "web"] {
        let master = socket.run(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {name}"));
        assert_eq!(master, "*2\r\n$8\r\n10.1.2.3\r\n$4\r\n6379\r\n");
    }
    assert_eq!(
        socket.run("ROLE"),
        "*2\r\n$8\r\nsentinel\r\n*2\r\n$4\r\nmail\r\n$3\r\nweb\r\n"
    );
    assert_eq!(socket.run("SENTINEL RESET *"), ":2\r\n");
    assert_eq!(socket.run("SENTINEL RESET W*"), ":1\r\n");
}

#[test]
fn only_what_changes_something_needs_the_password() {
    let scene = Scene::start(&["--requirepass", "secret"]);
    let mut socket = scene.connect();
    assert_eq!(socket.run(ASK), scene.master());
    for line in [
        "PING",
        "ROLE",
        "INFO",
        "CLIENT SETNAME me",
        "SENTINEL MASTERS",
        "HELLO 2",
    ] {
        let reply = socket.run(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    let failover = "SENTINEL FAILOVER mymaster";
    assert_eq!(socket.run(failover), "-NOAUTH Authentication required.\r\n");
    assert!(socket.run("AUTH wrong").starts_with("-WRONGPASS "));
    assert_eq!(socket.run("AUTH secret"), "+OK\r\n");
    assert_eq!(
        socket.run(failover),
        "-NOGOODSLAVE No suitable replica to promote\r\n"
    );
    // A user needs the right to it.
    let mut admin = scene.server.connect();
    assert_eq!(admin.run("AUTH secret"), "+OK\r\n");
    assert_eq!(
        admin.run("ACL SETUSER bob on >p ~* +@all -@admin"),
        "+OK\r\n"
    );
    assert_eq!(socket.run("AUTH bob p"), "+OK\r\n");
    assert!(socket.run(failover).starts_with("-NOPERM "));
    assert_eq!(socket.run(ASK), scene.master());
}

#[test]
fn nothing_of_the_data_is_reached_from_the_port() {
    let scene = Scene::start(&[]);
    let mut socket = scene.connect();
    for line in [
        "GET a",
        "SET a b",
        "FLUSHALL",
        "EVAL return 0",
        "CONFIG GET *",
        "ACL LIST",
        "SHUTDOWN",
        "MULTI",
        "MONITOR",
        "PUBLISH a b",
        "COMMAND",
    ] {
        let reply = socket.run(line);
        assert!(
            reply.starts_with("-ERR unknown command "),
            "{line}: {reply}"
        );
    }
    for line in [
        "CLIENT LIST",
        "CLIENT KILL ID 1",
        "CLIENT PAUSE 1000",
        "CLIENT TRACKING ON",
    ] {
        let reply = socket.run(line);
        assert!(
            reply.starts_with("-ERR unknown subcommand "),
            "{line}: {reply}"
        );
    }
}

#[test]
fn channels_of_the_port_are_its_own() {
    let scene = Scene::start(&[]);
    let mut listening = scene.connect();
    let confirmed = listening.run("PSUBSCRIBE *");
    assert_eq!(confirmed, "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n");
    let mut data = scene.server.connect();
    assert_eq!(data.run("PUBLISH +switch-master forged"), ":0\r\n");
    assert_eq!(data.run("PUBSUB NUMPAT"), ":0\r\n");
    assert_eq!(listening.run("PING"), "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    assert_eq!(listening.run("RESET"), "+RESET\r\n");
    assert_eq!(listening.run("PING"), "+PONG\r\n");
}

#[test]
fn a_paused_or_monitored_server_answers_there_as_ever() {
    let scene = Scene::start(&[]);
    let mut data = scene.server.connect();
    let mut monitor = scene.server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    assert_eq!(data.run("ECHO text"), "$4\r\ntext\r\n");
    let shown = monitor.reply();
    assert!(shown.contains("\"ECHO\" \"text\""), "{shown}");
    assert_eq!(data.run("CLIENT PAUSE 60000 ALL"), "+OK\r\n");
    assert_eq!(scene.connect().run(ASK), scene.master());
    assert!(monitor.is_silent_for(std::time::Duration::from_millis(100)));
}

#[test]
fn clients_of_the_port_are_clients_like_others() {
    let scene = Scene::start(&["--maxclients", "2"]);
    let mut sentinel = scene.connect();
    let mut data = scene.server.connect();
    assert_eq!(sentinel.run("PING"), "+PONG\r\n");
    let list = data.run("CLIENT LIST");
    let port = scene.sentinel.port();
    assert!(
        list.contains(&format!(" laddr=127.0.0.1:{port} ")),
        "{list}"
    );
    assert!(list.contains(" cmd=ping "), "{list}");
    let refused = scene.connect().rest();
    assert_eq!(refused, "-ERR max number of clients reached\r\n");
    assert_eq!(sentinel.run(ASK), scene.master());
    let list = data.run("CLIENT LIST");
    assert!(
        list.contains(" cmd=sentinel|get-master-addr-by-name "),
        "{list}"
    );
    let counted = data.run("INFO commandstats");
    assert!(
        counted.contains("cmdstat_sentinel|get-master-addr-by-name:calls=1,"),
        "{counted}"
    );
}

#[test]
fn a_port_that_is_taken_is_named_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let log = Server::start_in(folder.path(), &["--sentinel-port", &port]);
    let log = log.err().unwrap();
    assert!(
        log.contains(&format!("cannot listen on 127.0.0.1:{port}")),
        "{log}"
    );
}

#[test]
fn the_client_of_redis_rs_finds_the_server_again_after_a_restart() {
    if is_on_foundationdb() {
        // There the name has another master meanwhile, if other servers share the store.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (port, sentinel_port) = (free_port(), free_port());
    let start = || {
        let (port, sentinel_port) = (port.to_string(), sentinel_port.to_string());
        let flags = [
            "--port",
            port.as_str(),
            "--sentinel-port",
            sentinel_port.as_str(),
        ];
        Server::start_in(folder.path(), &flags).unwrap_or_else(|log| panic!("no server: {log}"))
    };
    let mut server = start();
    let address = format!("redis://127.0.0.1:{sentinel_port}");
    let mut sentinel = Sentinel::build(vec![address]).unwrap();
    let info = SentinelNodeConnectionInfo::default();
    let master = sentinel.master_for("mymaster", Some(&info)).unwrap();
    let mut connection = master.get_connection().unwrap();
    let _: () = connection.rpush("jobs", "a").unwrap();
    assert!(sentinel.master_for("nosuch", Some(&info)).is_err());
    server.signal("KILL");
    server.wait();
    assert!(connection.llen::<_, usize>("jobs").is_err());
    drop(server);
    let _server = start();
    wait_until("the master is found again", || {
        let Ok(master) = sentinel.master_for("mymaster", Some(&info)) else {
            return false;
        };
        let Ok(mut connection) = master.get_connection() else {
            return false;
        };
        connection.llen::<_, usize>("jobs") == Ok(1)
    });
}
