//! Clients of the Unix socket.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::server::{PATIENCE, Server, reply_end, request};

struct UnixClient {
    stream: UnixStream,
    received: Vec<u8>,
}

impl UnixClient {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        self.stream.write_all(&request(&words)).unwrap();
        loop {
            if let Some(end) = reply_end(&self.received, 0) {
                return String::from_utf8(self.received.drain(..end).collect()).unwrap();
            }
            let mut buffer = [0; 64 * 1024];
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed");
            self.received.extend_from_slice(&buffer[..count]);
        }
    }
}

#[test]
fn clients_of_the_unix_socket_are_shown_as_redis_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.sock");
    let shown = path.display().to_string();
    // What a dead server has left.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let mut server = Server::start_with(&[
        "--unixsocket",
        &shown,
        "--unixsocketperm",
        "700",
        "--port",
        &free_port().to_string(),
    ]);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut client = UnixClient::connect(&path);
    assert_eq!(client.run("RPUSH list a"), ":1\r\n");
    let list = client.run("CLIENT LIST");
    let expected = format!(" addr={shown}:0 laddr={shown}:0 ");
    assert!(
        list.contains(&expected) && list.contains(" flags=U "),
        "{list}"
    );
    assert_eq!(server.connect().run("LPOP list"), "$1\r\na\r\n");
    assert!(
        client
            .run("CONFIG GET unixsocketperm")
            .ends_with("$3\r\n700\r\n")
    );
    let info = client.run("INFO server");
    assert!(
        info.contains(&format!("\r\nlistener1:name=unix,bind={shown}\r\n")),
        "{info}"
    );

    // A second server does not take it away.
    let second = tempfile::tempdir().unwrap();
    let refusal = Server::start_in(second.path(), &["--unixsocket", &shown]);
    let refusal = refusal.err().unwrap();
    assert!(
        refusal.contains(&format!("cannot listen on {shown}: ")),
        "{refusal}"
    );
    assert_eq!(client.run("PING"), "+PONG\r\n");

    let mut other = UnixClient::connect(&path);
    assert_eq!(other.run(&format!("CLIENT KILL ADDR {shown}:0")), ":1\r\n");
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(!path.exists());
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
