//! How a server starts and ends.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::server::{PATIENCE, Server, Socket, is_on_foundationdb, request, wait_until};

#[test]
fn the_port_that_was_taken_is_told() {
    let server = Server::start();
    assert_ne!(server.address().port(), 0);
    let mut socket = server.connect();
    let port = server.address().port().to_string();
    let expected = format!("*2\r\n$4\r\nport\r\n${}\r\n{port}\r\n", port.len());
    assert_eq!(socket.run("CONFIG GET port"), expected);
    assert!(
        socket
            .run("INFO server")
            .contains(&format!("\r\ntcp_port:{port}\r\n"))
    );
    let store = if is_on_foundationdb() {
        "foundationdb"
    } else {
        "embedded"
    };
    assert!(server.log().contains(store), "{}", server.log());
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    if is_on_foundationdb() {
        // There, any number of servers share a cluster.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut first = Server::start_in(folder.path(), &[]).unwrap();
    let refusal = Server::start_in(folder.path(), &[]).err().unwrap();
    assert!(refusal.contains("data"), "{refusal}");
    assert_eq!(first.connect().run("PING"), "+PONG\r\n");
    first.signal("TERM");
    assert!(first.wait().success());
    assert!(Server::start_in(folder.path(), &[]).is_ok());
}

#[test]
fn an_address_in_use_is_told_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["--bind", "127.0.0.1", "--port", &port, "--data-dir"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = format!(
        "quoin: cannot listen on 127.0.0.1:{port}: Address already in use (os error 98); another \
         program listens there"
    );
    assert!(said.contains(&expected), "{said}");
    // A refused start creates no store.
    assert!(!folder.path().join("data").exists());
}

fn length_of(reply: &str) -> usize {
    reply.trim_start_matches(':').trim_end().parse().unwrap()
}

#[test]
fn sigterm_finishes_what_is_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let mut idle = server.connect();
    assert_eq!(idle.run("PING"), "+PONG\r\n");
    let address = server.address();
    // Pushes as fast as it can until the server ends, and counts the replies.
    let pusher = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut reader = stream.try_clone().unwrap();
        reader.set_read_timeout(Some(PATIENCE)).unwrap();
        let counting = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut reader, &mut text);
            text.matches("\r\n").count()
        });
        let one = request(&["RPUSH", "list", "value"]);
        while stream.write_all(&one).is_ok() {}
        counting.join().unwrap()
    });
    let mut probe = server.connect();
    wait_until("there are pushes", || {
        length_of(&probe.run("LLEN list")) > 100
    });
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(idle.rest(), "");
    let acknowledged = pusher.join().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let length = length_of(&server.connect().run("LLEN list"));
    assert!(length >= acknowledged, "{length} of {acknowledged}");
}

#[test]
fn signals_that_redis_ignores_do_not_end_the_server() {
    let mut server = Server::start();
    for name in ["HUP", "PIPE", "HUP"] {
        server.signal(name);
    }
    wait_until("it is logged", || server.log().contains("SIGHUP"));
    assert_eq!(server.connect().run("RPUSH list x"), ":1\r\n");
    assert!(server.ending().is_none());
    server.signal("TERM");
    assert!(server.wait().success());
}

#[test]
fn shutdown_ends_the_server_without_a_reply() {
    for line in ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN SAVE NOW FORCE"] {
        let mut server = Server::start();
        let mut socket = server.connect();
        assert_eq!(socket.run("SHUTDOWN FOO"), "-ERR syntax error\r\n");
        assert_eq!(
            socket.run("SHUTDOWN ABORT"),
            "-ERR No shutdown in progress.\r\n"
        );
        socket.send(format!("{line}\r\n"));
        assert_eq!(socket.rest(), "");
        assert!(server.wait().success(), "{line}");
    }
}

#[test]
fn clients_that_do_not_read_do_not_hold_up_the_end() {
    // Far longer than any wait here.
    let flags = ["--shutdown-timeout", "600", "--requirepass", "secret"];
    let mut server = Server::start_with(&flags);
    let mut probe = server.connect();
    assert_eq!(probe.run("AUTH secret"), "+OK\r\n");
    probe.command(&["RPUSH", "list", &"x".repeat(1_000_000)]);
    let mut stranger = Socket::connect_with_buffers(server.address(), 16 * 1024);
    let mut reader = Socket::connect_with_buffers(server.address(), 16 * 1024);
    assert_eq!(reader.run("AUTH secret"), "+OK\r\n");
    reader.send(request(&["LRANGE", "list", "0", "-1"]).repeat(1_000));
    let pings = request(&["PING"]).repeat(2_000);
    wait_until("the server waits for both", || {
        stranger.send(&pings);
        let list = probe.run("CLIENT LIST");
        let waits = |socket: &Socket| {
            let address = format!(" addr={} ", socket.local_address());
            let line = list.lines().find(|line| line.contains(&address)).unwrap();
            !line.contains(" obl=0 ") && !line.contains(" qbuf=0 ")
        };
        waits(&stranger) && waits(&reader)
    });
    server.signal("TERM");
    assert!(server.wait().success());
    let log = server.log();
    assert!(!log.contains("still busy"), "{log}");
}

#[test]
fn a_client_that_waits_does_not_hold_up_the_end() {
    let mut server = Server::start();
    let mut waiting = server.connect();
    waiting.send("WAIT 1 0\r\n");
    let mut sleeping = server.connect();
    sleeping.send("DEBUG SLEEP 1000\r\n");
    let mut probe = server.connect();
    wait_until("one is blocked", || {
        probe
            .run("INFO clients")
            .contains("\r\nblocked_clients:1\r\n")
    });
    server.signal("TERM");
    assert!(server.wait().success());
}

/// A server whose clients wait for a script that never ends.
struct Spinning {
    folder: tempfile::TempDir,
    server: Server,
    running: Socket,
    probe: Socket,
}

/// Runs until it is ended, after it has written.
const WRITES_AND_SPINS: &str = "redis.call('RPUSH', KEYS[1], 'x') while true do end";
/// The same, without any Lua instructions.
const SPINS_IN_C: &str = "return string.find(('a'):rep(60), ('a*'):rep(20) .. 'b')";

impl Spinning {
    fn start(script: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = [&["--busy-reply-threshold", "50"], flags].concat();
        let server = Server::start_in(folder.path(), &flags).unwrap();
        let mut running = server.connect();
        running.send(request(&["EVAL", script, "1", "list"]));
        let mut spinning = Self {
            probe: server.connect(),
            folder,
            server,
            running,
        };
        wait_until("the server is busy", || spinning.is_busy());
        spinning
    }

    fn is_busy(&mut self) -> bool {
        self.probe.run("PING").starts_with("-BUSY Redis is busy")
    }

    /// The server ends soon, and what the script has written is gone.
    fn ends_without_a_trace(mut self) {
        assert!(self.server.wait().success(), "{}", self.server.log());
        let again = Server::start_in(self.folder.path(), &[]).unwrap();
        assert_eq!(again.connect().run("EXISTS list"), ":0\r\n");
    }
}

#[test]
fn of_a_busy_server_shutdown_nosave_is_the_end() {
    for script in ["while true do end", WRITES_AND_SPINS, SPINS_IN_C] {
        let mut spinning = Spinning::start(script, &["--shutdown-timeout", "600"]);
        for line in ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOW FORCE"] {
            let busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                        NOSAVE.\r\n";
            assert_eq!(spinning.probe.run(line), busy, "{line}");
        }
        spinning.probe.send("SHUTDOWN NOSAVE\r\n");
        assert_eq!(spinning.probe.rest(), "");
        spinning.ends_without_a_trace();
    }
}

#[test]
fn a_signal_waits_for_scripts_while_clients_are_served() {
    for name in ["TERM", "INT"] {
        let mut spinning = Spinning::start("while true do end", &["--shutdown-timeout", "600"]);
        spinning.server.signal(name);
        wait_until("it is logged", || {
            spinning.server.log().contains("shutting down")
        });
        // A client that connects now can end the script, and is told how.
        spinning.probe = spinning.server.connect();
        assert!(spinning.is_busy());
        assert!(spinning.server.ending().is_none());
        assert_eq!(spinning.probe.run("SCRIPT KILL"), "+OK\r\n");
        assert!(
            spinning
                .running
                .reply()
                .starts_with("-ERR Script killed by user")
        );
        spinning.ends_without_a_trace();
    }
}

#[test]
fn shutdown_waits_for_scripts_while_clients_are_served() {
    for ending in ["SCRIPT KILL", "SHUTDOWN NOSAVE"] {
        // It is never busy until it has been asked to stop.
        let flags = ["--shutdown-timeout", "600", "--busy-reply-threshold", "0"];
        let mut server = Server::start_with(&flags);
        let mut running = server.connect();
        // It has left the thread that serves clients when it says so.
        let script = "for number = 1, 3e7 do end redis.log(redis.LOG_WARNING, 'still here') while true do end";
        running.send(request(&["EVAL", script, "0"]));
        wait_until("the script runs", || server.log().contains("still here"));
        let mut probe = server.connect();
        probe.send("SHUTDOWN\r\n");
        assert_eq!(probe.rest(), "");
        let mut late = server.connect();
        assert_eq!(late.run("CONFIG SET busy-reply-threshold 1"), "+OK\r\n");
        wait_until("the server is busy", || {
            late.run("PING").starts_with("-BUSY")
        });
        assert!(server.ending().is_none());
        late.send(format!("{ending}\r\n"));
        if ending == "SCRIPT KILL" {
            assert_eq!(late.reply(), "+OK\r\n");
        }
        assert!(server.wait().success(), "{}", server.log());
    }
}

#[test]
fn a_script_that_outlives_the_time_of_a_shutdown_is_ended() {
    for script in [WRITES_AND_SPINS, SPINS_IN_C] {
        let spinning = Spinning::start(script, &["--shutdown-timeout", "1"]);
        spinning.server.signal("TERM");
        spinning.ends_without_a_trace();
    }
}

#[test]
fn after_a_signal_shutdown_nosave_is_the_end() {
    let mut spinning = Spinning::start(WRITES_AND_SPINS, &["--shutdown-timeout", "600"]);
    spinning.server.signal("TERM");
    spinning.probe.send("SHUTDOWN NOSAVE\r\n");
    spinning.ends_without_a_trace();
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let mut spinning = Spinning::start(WRITES_AND_SPINS, &["--shutdown-timeout", "600"]);
        spinning.server.signal(first);
        wait_until("it is logged", || {
            spinning.server.log().contains("shutting down")
        });
        // Some send each signal twice.
        std::thread::sleep(Duration::from_millis(150));
        spinning.server.signal(second);
        assert_eq!(spinning.server.wait().code(), Some(1));
        let again = Server::start_in(spinning.folder.path(), &[]).unwrap();
        assert_eq!(again.connect().run("EXISTS list"), ":0\r\n");
    }
}
