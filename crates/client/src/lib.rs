//! A small client of Redis servers, for the program's tools. Commands are queued, sent together,
//! and their replies are read one by one.
//!
//! It knows the protocol and TLS. It knows neither what the commands mean nor what a tool does with
//! a reply.

mod access;
mod address;
mod beside;
mod databases;
mod progress;
mod stream;

pub use access::{ADDRESS_HELP, Access, End, Flags, login_hint, tls_flags};
pub use address::Address;
pub use beside::{Beside, BesideError, Places, connect_beside};
pub use databases::{Databases, databases_argument, match_argument};
pub use progress::Progress;

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use stream::{REPLY_TIMEOUT, Stream};

use quoin_resp::wire::reply_reader::{Value, encode_request, read_reply};

const BUFFER_BYTES: usize = 64 * 1024;

/// Why communication with a server ended.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be reached.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The server.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// The connection broke, or received something other than the Redis protocol.
    #[error("{address}: {source}")]
    Lost {
        /// The server.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// The server refused a request.
    #[error("{address} answers: {reply}{}", login_hint(reply))]
    Refused {
        /// The server.
        address: Address,
        /// Its error.
        reply: String,
    },
}

/// The outcome of the commands between MULTI and EXEC.
#[derive(Debug)]
pub enum Transaction {
    /// They ran. There is one reply each, which may be an error.
    Done(Vec<Value>),
    /// None of them ran, because a watched key had changed.
    Changed,
    /// None of them ran. Contains the server's error.
    Refused(Value),
}

/// A page of SCAN: the next cursor, or `None` after the last page, and the names of keys.
pub type ScanPage = (Option<Vec<u8>>, Vec<Vec<u8>>);

/// Fields of INFO.
#[derive(Debug, Clone)]
pub struct InfoFields(HashMap<String, String>);

impl InfoFields {
    /// A field; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A number; 0 if it is missing.
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Whether there is a field.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl<'f> FromIterator<(&'f str, &'f str)> for InfoFields {
    fn from_iter<I: IntoIterator<Item = (&'f str, &'f str)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self(fields.collect())
    }
}

/// A connection.
pub struct Client {
    address: Address,
    reader: BufReader<Stream>,
    queued: Vec<u8>,
}

impl Client {
    /// Connects and logs in.
    pub fn connect(address: &Address) -> Result<Self, ClientError> {
        Self::connect_within(address, REPLY_TIMEOUT)
    }

    /// Connects to a server that must answer everything within this time, and logs in.
    pub fn connect_within(address: &Address, reply_timeout: Duration) -> Result<Self, ClientError> {
        let stream =
            Stream::open(address, reply_timeout).map_err(|source| ClientError::Connect {
                address: address.clone(),
                source,
            })?;
        let mut client = Self::over(stream, address.clone());
        if address.user.is_some() || address.password.is_some() {
            let user = address.user.as_ref().map(String::as_bytes);
            // A user may need no password.
            let password = address.password.as_deref().unwrap_or_default();
            let words: Vec<&[u8]> = std::iter::once(&b"AUTH"[..])
                .chain(user)
                .chain([password.as_bytes()])
                .collect();
            client.call_ok(&words)?;
        }
        Ok(client)
    }

    /// A client on a connected socket, to a server that must answer everything within this time.
    pub fn on_socket(socket: UnixStream, reply_timeout: Duration) -> io::Result<Self> {
        let address = Address::unix("this server");
        Ok(Self::over(Stream::unix(socket, reply_timeout)?, address))
    }

    fn over(stream: Stream, address: Address) -> Self {
        Self {
            address,
            reader: BufReader::with_capacity(BUFFER_BYTES, stream),
            queued: Vec::new(),
        }
    }

    /// Queues a command.
    pub fn queue<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.queued.extend(encode_request(words));
    }

    /// Bytes that are queued.
    pub fn queued_bytes(&self) -> usize {
        self.queued.len()
    }

    /// Sends the queued commands.
    pub fn send(&mut self) -> Result<(), ClientError> {
        let sent = self.reader.get_mut().write_all(&self.queued);
        self.queued.clear();
        self.queued.shrink_to(BUFFER_BYTES);
        sent.map_err(|source| self.lost(source))
    }

    /// The next reply.
    pub fn read(&mut self) -> Result<Value, ClientError> {
        read_reply(&mut self.reader).map_err(|source| self.lost(source))
    }

    /// Sends a command and reads its reply.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, ClientError> {
        self.queue(words);
        self.send()?;
        self.read()
    }

    /// Sends a command that must be answered with OK.
    pub fn call_ok<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<(), ClientError> {
        let reply = self.call(words)?;
        if reply.is_ok() {
            return Ok(());
        }
        Err(self.unexpected(&reply))
    }

    /// Queues commands between MULTI and EXEC.
    pub fn queue_transaction(&mut self, commands: &[&[&[u8]]]) {
        self.queue(&["MULTI"]);
        for words in commands {
            self.queue(words);
        }
        self.queue(&["EXEC"]);
    }

    /// The outcome of `commands` commands between MULTI and EXEC.
    pub fn read_transaction(&mut self, commands: usize) -> Result<Transaction, ClientError> {
        let mut refusal = None;
        for _ in 0..=commands {
            let reply = self.read()?;
            // OK, and then QUEUED. A server without MULTI runs the commands at once.
            if reply.status().is_none() {
                refusal.get_or_insert(reply);
            }
        }
        Ok(match (self.read()?, refusal) {
            (_, Some(refusal)) => Transaction::Refused(refusal),
            (Value::Aggregate(_, Some(replies)), None) if replies.len() == commands => {
                Transaction::Done(replies)
            }
            (reply, None) if reply.is_null() => Transaction::Changed,
            (other, None) => Transaction::Refused(other),
        })
    }

    /// A section of INFO.
    pub fn info(&mut self, section: &str) -> Result<String, ClientError> {
        let reply = self.call(&["INFO", section])?;
        match reply.bytes() {
            Some(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            None => Err(self.unexpected(&reply)),
        }
    }

    /// The fields of sections of INFO.
    pub fn info_fields(&mut self, sections: &[&str]) -> Result<InfoFields, ClientError> {
        let mut fields = HashMap::new();
        for section in sections {
            let text = self.info(section)?;
            let lines = text.lines();
            let pairs = lines.filter_map(|line| line.trim_end().split_once(':'));
            fields.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        Ok(InfoFields(fields))
    }

    /// The next page of keys.
    pub fn scan(
        &mut self,
        cursor: &[u8],
        count: usize,
        pattern: Option<&str>,
    ) -> Result<ScanPage, ClientError> {
        let count = count.to_string();
        let mut words: Vec<&[u8]> = vec![b"SCAN", cursor, b"COUNT", count.as_bytes()];
        if let Some(pattern) = pattern {
            words.extend([b"MATCH", pattern.as_bytes()]);
        }
        let reply = self.call(&words)?;
        let (cursor, names) = match reply.items() {
            Some([cursor, names]) => (cursor.bytes(), names.clone().into_strings()),
            _ => (None, None),
        };
        let (Some(cursor), Some(names)) = (cursor.map(<[u8]>::to_vec), names) else {
            return Err(self.unexpected(&reply));
        };
        Ok((Some(cursor).filter(|cursor| cursor != b"0"), names))
    }

    /// The error for an unexpected reply.
    pub fn unexpected(&self, reply: &Value) -> ClientError {
        self.refused(match reply.error_text() {
            Some(line) => line.into_owned(),
            None => "a reply of an unexpected kind".to_owned(),
        })
    }

    /// The error for an unexpected answer.
    pub fn refused(&self, reply: String) -> ClientError {
        ClientError::Refused {
            address: self.address.clone(),
            reply,
        }
    }

    fn lost(&self, source: io::Error) -> ClientError {
        ClientError::Lost {
            address: self.address.clone(),
            source,
        }
    }
}
