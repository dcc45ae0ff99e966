//! COMMAND INFO beside that of a Redis server, where there is one on the PATH. Debian's is 7.0, so
//! what changed with 7.2 is left out.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::server::{Server, Socket};

/// Commands that Redis 7.2 describes otherwise than 7.0 does.
const CHANGED_SINCE: &[&str] = &[
    // Scripts may call what blocks, which then does not.
    "blmove",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzpopmax",
    "bzpopmin",
    "client|setname",
    "command|getkeys",
    "command|getkeysandflags",
    "config|resetstat",
    "config|rewrite",
    "latency|reset",
    "randomkey",
    "scan",
    "wait",
    "zrank",
    "zrevrank",
];

struct Redis {
    child: Child,
    socket: Socket,
    _folder: tempfile::TempDir,
}

impl Redis {
    fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new("redis-server")
            .args(["--port", &port.port().to_string(), "--save", ""])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        crate::server::wait_until("Redis listens", || {
            std::net::TcpStream::connect(port).is_ok()
        });
        Some(Self {
            child,
            socket: Socket::connect(port),
            _folder: folder,
        })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A description without subcommands, of which Quoin need not have all.
fn without_subcommands(reply: &str) -> &str {
    let description = reply.strip_prefix("*1\r\n*10\r\n").unwrap_or(reply);
    // They are the last element, and the only one in which a description stands.
    let elements = description.find("*10\r\n").unwrap_or(description.len());
    let before = &description[..elements];
    match before.len() < description.len() {
        true => before.rfind('*').map_or(before, |at| &before[..at]),
        false => before
            .strip_suffix("*0\r\n")
            .or(before.strip_suffix("~0\r\n"))
            .unwrap_or(before),
    }
}

#[test]
fn commands_are_described_as_redis_describes_them() {
    let Some(mut redis) = Redis::start() else {
        // Written past the capture of a passing test's output.
        let _ = writeln!(
            std::io::stderr(),
            "COMMAND INFO is not compared: there is no redis-server on the PATH"
        );
        return;
    };
    let server = Server::start();
    let mut quoin = server.connect();
    let list = quoin.run("COMMAND LIST");
    let names: Vec<&str> = list
        .split("\r\n")
        .filter(|line| !line.is_empty() && !line.starts_with(['$', '*']))
        .collect();
    assert!(names.len() > 100, "{list}");
    let mut compared = 0;
    for protocol in ["HELLO 2", "HELLO 3"] {
        quoin.run(protocol);
        redis.socket.run(protocol);
        for name in &names {
            let theirs = redis.socket.command(&["COMMAND", "INFO", name]);
            let is_unknown =
                ["*1\r\n*-1\r\n", "*1\r\n$-1\r\n", "*1\r\n_\r\n"].contains(&theirs.as_str());
            if is_unknown || CHANGED_SINCE.contains(name) {
                continue;
            }
            let ours = quoin.command(&["COMMAND", "INFO", name]);
            assert_eq!(
                without_subcommands(&ours),
                without_subcommands(&theirs),
                "{name}"
            );
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}
