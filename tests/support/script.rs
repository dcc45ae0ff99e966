//! Conversations of several clients with a server, written as scripts. They are played to Quoin and
//! to `redis-server`, and compared with the expected bytes.
//!
//! A line of a script is one of
//!
//! ```text
//! a: LPUSH k x y => :2|      client a sends this and gets that reply; | is CR LF
//! a> BLPOP k 0               client a sends this, and is blocked then
//! a>> PING                   client a sends this, and nothing more is looked at
//! a>> MULTI ; PING ; EXEC    it sends several commands in one write
//! a< *2|$1|k|$1|x|           client a gets this, which it has not asked for just now
//! a.                         client a gets nothing for a while
//! a!                         client a closes its connection, and the server has seen it
//! a~ => closed               the server has closed client a's connection
//! sleep 20                   milliseconds
//! ```
//!
//! After a line, `7.0=> …` gives the reply of Redis before 7.2 if it differs. `*` at the end of a
//! reply matches any rest. `''` is an empty argument. `@b` is the id of client b, which is
//! requested when it is first named.
//!
//! Included by `#[path]` from the test crates that need it. Needs `server` and `redis_server` next
//! to it.
#![allow(dead_code, unreachable_pub)] // no crate needs all of it

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::redis_server::Redis;
use crate::server::{PATIENCE, Server, reply_end, request, wait_until};

/// How long to check that a client gets nothing.
const SILENCE: Duration = Duration::from_millis(60);

/// Where a server listens.
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

trait Stream: Read + Write {
    fn set_timeout(&self, timeout: Duration);
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

impl Stream for UnixStream {
    fn set_timeout(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
}

/// One client of a script.
struct Client {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
    id: Option<String>,
}

impl Client {
    fn connect(address: &Address) -> Self {
        let stream: Box<dyn Stream> = match address {
            Address::Tcp(address) => Box::new(TcpStream::connect(address).unwrap()),
            Address::Unix(path) => Box::new(UnixStream::connect(path).unwrap()),
        };
        stream.set_timeout(PATIENCE);
        Self {
            stream,
            received: Vec::new(),
            id: None,
        }
    }

    fn id(&mut self) -> String {
        if let Some(id) = &self.id {
            return id.clone();
        }
        self.send("CLIENT ID");
        let id = self.reply();
        let id = id.trim_matches(|c| c == ':' || c == '|').to_owned();
        self.id.insert(id).clone()
    }

    fn send(&mut self, line: &str) {
        let words = |command: &str| {
            let words = command.split(' ');
            let words = words.map(|word| if word == "''" { "" } else { word });
            request(&words.collect::<Vec<_>>())
        };
        let bytes: Vec<u8> = line.split(" ; ").flat_map(words).collect();
        self.stream.write_all(&bytes).unwrap();
    }

    fn reply(&mut self) -> String {
        loop {
            if let Some(end) = reply_end(&self.received, 0) {
                let bytes: Vec<u8> = self.received.drain(..end).collect();
                return String::from_utf8_lossy(&bytes).replace("\r\n", "|");
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return "closed".to_owned(),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) => return format!("no reply: {error}"),
            }
        }
    }

    fn is_silent(&mut self) -> bool {
        self.stream.set_timeout(SILENCE);
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        self.stream.set_timeout(PATIENCE);
        match read {
            Ok(count) => {
                self.received.extend_from_slice(&byte[..count]);
                false
            }
            Err(_) => self.received.is_empty(),
        }
    }
}

/// Plays scripts to one server.
struct Player {
    name: &'static str,
    is_before_72: bool,
    address: Address,
    clients: HashMap<String, Client>,
    probe: Client,
}

impl Player {
    fn new(name: &'static str, is_before_72: bool, address: Address) -> Self {
        Self {
            name,
            is_before_72,
            probe: Client::connect(&address),
            address,
            clients: HashMap::new(),
        }
    }

    fn client(&mut self, name: &str) -> &mut Client {
        let address = &self.address;
        self.clients
            .entry(name.trim().to_owned())
            .or_insert_with(|| Client::connect(address))
    }

    /// A number of `INFO clients`.
    fn figure(&mut self, name: &str) -> u64 {
        self.probe.send("INFO clients");
        let info = self.probe.reply();
        let field = info
            .split('|')
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        field.unwrap().parse().unwrap()
    }

    fn play(&mut self, script: &str) {
        let lines: Vec<&str> = script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with("7.0=>") {
                continue;
            }
            let alternative = lines
                .get(at + 1)
                .and_then(|next| next.strip_prefix("7.0=>"));
            let alternative = alternative.filter(|_| self.is_before_72);
            self.play_line(line, alternative);
        }
    }

    /// A line with the numbers of the clients that it names.
    fn with_numbers(&mut self, line: &str) -> String {
        let mut parts = line.split('@');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric());
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            text.push_str(&self.client(name).id());
            text.push_str(rest);
        }
        text
    }

    fn play_line(&mut self, line: &str, alternative: Option<&str>) {
        let line = &self.with_numbers(line);
        let expect = |expected: &str, reply: String, name: &str| {
            let expected = alternative.unwrap_or(expected).trim();
            let is_met = match expected.strip_suffix('*') {
                Some(beginning) => reply.starts_with(beginning),
                None => reply == expected,
            };
            assert!(is_met, "{name}: {line}\nanswered: {reply}");
        };
        let name = self.name;
        if let Some(pause_ms) = line.strip_prefix("sleep ") {
            std::thread::sleep(Duration::from_millis(pause_ms.parse().unwrap()));
        } else if let Some(client) = line.strip_suffix('!') {
            let before = self.figure("connected_clients");
            assert!(self.clients.remove(client.trim()).is_some(), "{line}");
            wait_until(line, || self.figure("connected_clients") < before);
        } else if let Some(client) = line.strip_suffix("~ => closed") {
            expect("closed", self.client(client).reply(), name);
        } else if let Some(client) = line.strip_suffix('.').filter(|name| !name.contains(' ')) {
            assert!(self.client(client).is_silent(), "{name}: {line}");
        } else if let Some((client, words)) = line.split_once(": ") {
            let (words, expected) = words.rsplit_once("=>").unwrap();
            let client = self.client(client);
            client.send(words.trim());
            expect(expected, client.reply(), name);
        } else if let Some((client, words)) = line.split_once(">> ") {
            self.client(client).send(words.trim());
        } else if let Some((client, words)) = line.split_once("> ") {
            let before = self.figure("blocked_clients");
            self.client(client).send(words.trim());
            wait_until(line, || self.figure("blocked_clients") > before);
        } else if let Some((client, expected)) = line.split_once("< ") {
            expect(expected, self.client(client).reply(), name);
        } else {
            panic!("{line} is no line of a script");
        }
    }
}

/// Plays a script to a Quoin with these flags, and to a Redis if there is one.
pub fn play(script: &str) {
    play_to_quoin(&Server::start(), script);
    // If there is none, the differential test says so.
    if let Ok(redis) = Redis::start() {
        let address = Address::Unix(redis.socket().to_owned());
        Player::new("redis", redis.version() < (7, 2), address).play(script);
    }
}

/// Plays a script only to a Quoin, because it describes Redis 7.2 or only Quoin.
pub fn play_to_quoin(server: &Server, script: &str) {
    Player::new("quoin", false, Address::Tcp(server.address())).play(script);
}
