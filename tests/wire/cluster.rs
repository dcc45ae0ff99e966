//! The port on which the server acts as a node of Redis Cluster. The form of its replies is
//! compared with Redis in tests/differential, and several servers are in
//! `crates/server/src/cluster/tests.rs`.

use std::net::SocketAddr;

use crate::server::{Server, Socket, free_port};

struct Scene {
    server: Server,
    node: SocketAddr,
}

impl Scene {
    fn start(flags: &[&str]) -> Self {
        let port = free_port();
        let text = port.to_string();
        let server = Server::start_with(&[&["--cluster-port", text.as_str()], flags].concat());
        Self {
            server,
            node: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }

    fn connect(&self) -> Socket {
        Socket::connect(self.node)
    }
}

#[test]
fn both_ports_serve_the_same_data() {
    let scene = Scene::start(&[]);
    let (mut node, mut plain) = (scene.connect(), scene.server.connect());
    assert_eq!(node.run("RPUSH list a b"), ":2\r\n");
    assert_eq!(plain.run("LPOP list"), "$1\r\na\r\n");
    assert_eq!(plain.run("SELECT 1"), "+OK\r\n");
    assert_eq!(plain.run("SET other 1"), "+OK\r\n");
    assert_eq!(node.run("DBSIZE"), ":1\r\n");
    node.send("BLPOP queue 0\r\n");
    assert_eq!(plain.run("SELECT 0"), "+OK\r\n");
    assert_eq!(plain.run("RPUSH queue c"), ":1\r\n");
    assert_eq!(node.reply(), "*2\r\n$5\r\nqueue\r\n$1\r\nc\r\n");
    node.send("SUBSCRIBE channel\r\n");
    assert!(node.reply().starts_with("*3\r\n$9\r\nsubscribe\r\n"));
    assert_eq!(plain.run("PUBLISH channel text"), ":1\r\n");
    assert_eq!(
        node.reply(),
        "*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$4\r\ntext\r\n"
    );
    let info = scene.connect().run("INFO server");
    let port = scene.node.port();
    assert!(info.contains(&format!("\r\ntcp_port:{port}\r\n")), "{info}");
}

#[test]
fn transactions_may_use_keys_of_several_slots_and_ask_for_the_slots() {
    let scene = Scene::start(&[]);
    let mut socket = scene.connect();
    assert_eq!(socket.run("WATCH a b"), "+OK\r\n");
    assert_eq!(socket.run("MULTI"), "+OK\r\n");
    for line in ["SET a 1", "SET b 2", "CLUSTER KEYSLOT a", "SELECT 1"] {
        assert_eq!(socket.run(line), "+QUEUED\r\n", "{line}");
    }
    assert_eq!(
        socket.run("EXEC"),
        "*4\r\n+OK\r\n+OK\r\n:15495\r\n-ERR SELECT is not allowed in cluster mode\r\n"
    );
    assert_eq!(socket.run("MGET a b"), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
    let script = "return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}";
    let run = socket.command(&["EVAL", script, "2", "a", "b"]);
    assert_eq!(run, "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

#[test]
fn a_password_and_rights_hold_as_on_the_main_port() {
    let scene = Scene::start(&["--requirepass", "secret"]);
    let mut socket = scene.connect();
    let refused = "-NOAUTH Authentication required.\r\n";
    for line in ["GET a", "CLUSTER SLOTS", "READONLY"] {
        assert_eq!(socket.run(line), refused, "{line}");
    }
    assert_eq!(socket.run("AUTH secret"), "+OK\r\n");
    assert!(socket.run("CLUSTER SLOTS").starts_with("*1\r\n"));
    assert_eq!(
        socket.run("ACL SETUSER bob on >p ~a* +get +cluster|slots"),
        "+OK\r\n"
    );
    assert_eq!(socket.run("AUTH bob p"), "+OK\r\n");
    assert!(socket.run("CLUSTER SLOTS").starts_with("*1\r\n"));
    assert!(socket.run("CLUSTER NODES").starts_with("-NOPERM "));
    assert!(socket.run("GET b").starts_with("-NOPERM "));
    assert_eq!(socket.run("GET a"), "$-1\r\n");
}

#[test]
fn the_keys_of_slots_are_counted() {
    let scene = Scene::start(&[]);
    let mut socket = scene.connect();
    // Slots 15495, 3300 and 7365.
    socket.run("MSET {a}1 x {a}2 x {a}3 x {b}1 x {c}1 x {c}2 x");
    let slot = |slot, keys| format!("*2\r\n:{slot}\r\n*2\r\n$9\r\nkey-count\r\n:{keys}\r\n");
    for (options, slots) in [
        (
            "SLOTSRANGE 3299 3301",
            &[(3299, 0), (3300, 1), (3301, 0)][..],
        ),
        ("SLOTSRANGE 7365 7365", &[(7365, 2)]),
        (
            "ORDERBY key-count LIMIT 4",
            &[(15495, 3), (7365, 2), (3300, 1), (0, 0)],
        ),
        ("ORDERBY KEY-COUNT ASC LIMIT 2", &[(0, 0), (1, 0)]),
    ] {
        let reply = socket.run(&format!("CLUSTER SLOT-STATS {options}"));
        let slots = slots.iter().map(|(number, keys)| slot(number, keys));
        let slots: Vec<String> = slots.collect();
        assert_eq!(
            reply,
            format!("*{}\r\n{}", slots.len(), slots.concat()),
            "{options}"
        );
    }
    let all = socket.run("CLUSTER SLOT-STATS ORDERBY key-count");
    assert!(all.starts_with("*16384\r\n"));
}
