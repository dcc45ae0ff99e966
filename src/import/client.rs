//! A small client of the Redis protocol: commands are queued, sent together, and their replies
//! read one by one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::ImportError;
use super::address::Address;
use crate::limits::{
    IMPORT_CONNECT_TIMEOUT_MS, IMPORT_REPLY_TIMEOUT_MS, REQUEST_BULK_BYTES_MAX,
    REQUEST_INLINE_BYTES_MAX,
};

/// Arrays within arrays that a reply may have.
const DEPTH_MAX: usize = 4;
/// Places that an announced count reserves.
const RESERVED_ITEMS_MAX: usize = 1024;
const BUFFER_BYTES: usize = 64 * 1024;

/// A reply of RESP2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A status or an error line, with its mark in front.
    Line(String),
    Integer(i64),
    Bytes(Vec<u8>),
    Nil,
    Array(Vec<Value>),
}

impl Value {
    pub(crate) fn is_ok(&self) -> bool {
        matches!(self, Value::Line(line) if line == "+OK")
    }

    /// The text of an error, without its mark.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Value::Line(line) => line.strip_prefix('-'),
            _ => None,
        }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The strings of an array of strings.
    pub(crate) fn into_strings(self) -> Option<Vec<Vec<u8>>> {
        let Value::Array(items) = self else {
            return None;
        };
        let string = |item| match item {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        items.into_iter().map(string).collect()
    }
}

/// What came of the commands between MULTI and EXEC.
#[derive(Debug)]
pub(crate) enum Transaction {
    /// They ran; a reply each, of which some may be errors.
    Done(Vec<Value>),
    /// None of them ran: a watched key had changed.
    Changed,
    /// None of them ran; the server's error.
    Refused(Value),
}

/// A connection.
pub(crate) struct Client {
    address: Address,
    reader: BufReader<TcpStream>,
    queued: Vec<u8>,
}

impl Client {
    /// Connects and logs in.
    pub(crate) fn connect(address: &Address) -> Result<Self, ImportError> {
        let stream = open(address).map_err(|source| ImportError::Connect {
            address: address.clone(),
            source,
        })?;
        let mut client = Self {
            address: address.clone(),
            reader: BufReader::with_capacity(BUFFER_BYTES, stream),
            queued: Vec::new(),
        };
        if let Some(password) = &address.password {
            let user = address.user.as_ref().map(String::as_bytes);
            let words: Vec<&[u8]> = std::iter::once(&b"AUTH"[..])
                .chain(user)
                .chain([password.as_bytes()])
                .collect();
            client.call_ok(&words)?;
        }
        Ok(client)
    }

    /// Puts a command behind those that are sent next.
    pub(crate) fn queue<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.queued
            .extend(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            let word = word.as_ref();
            self.queued
                .extend(format!("${}\r\n", word.len()).as_bytes());
            self.queued.extend_from_slice(word);
            self.queued.extend_from_slice(b"\r\n");
        }
    }

    /// Bytes that are queued.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued.len()
    }

    /// Sends what is queued.
    pub(crate) fn send(&mut self) -> Result<(), ImportError> {
        let sent = self.reader.get_mut().write_all(&self.queued);
        self.queued.clear();
        self.queued.shrink_to(BUFFER_BYTES);
        sent.map_err(|source| self.lost(source))
    }

    /// The next reply.
    pub(crate) fn read(&mut self) -> Result<Value, ImportError> {
        read_value(&mut self.reader, 0).map_err(|source| self.lost(source))
    }

    /// Sends a command and reads its reply.
    pub(crate) fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, ImportError> {
        self.queue(words);
        self.send()?;
        self.read()
    }

    /// Sends a command that must be answered with OK.
    pub(crate) fn call_ok<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<(), ImportError> {
        let reply = self.call(words)?;
        if reply.is_ok() {
            return Ok(());
        }
        Err(self.unexpected(&reply))
    }

    /// Puts commands between MULTI and EXEC behind those that are sent next.
    pub(crate) fn queue_transaction(&mut self, commands: &[&[&[u8]]]) {
        self.queue(&["MULTI"]);
        for words in commands {
            self.queue(words);
        }
        self.queue(&["EXEC"]);
    }

    /// What came of so many commands between MULTI and EXEC.
    pub(crate) fn read_transaction(&mut self, commands: usize) -> Result<Transaction, ImportError> {
        let mut refusal = None;
        for _ in 0..=commands {
            let reply = self.read()?;
            // OK, and then QUEUED. A server without MULTI runs the commands at once.
            if !matches!(&reply, Value::Line(line) if line.starts_with('+')) {
                refusal.get_or_insert(reply);
            }
        }
        Ok(match (self.read()?, refusal) {
            (_, Some(refusal)) => Transaction::Refused(refusal),
            (Value::Array(replies), None) if replies.len() == commands => {
                Transaction::Done(replies)
            }
            (Value::Nil, None) => Transaction::Changed,
            (other, None) => Transaction::Refused(other),
        })
    }

    /// A section of INFO.
    pub(crate) fn info(&mut self, section: &str) -> Result<String, ImportError> {
        match self.call(&["INFO", section])? {
            Value::Bytes(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The error for a reply that makes no sense here.
    pub(crate) fn unexpected(&self, reply: &Value) -> ImportError {
        ImportError::Refused {
            address: self.address.clone(),
            reply: match reply.error() {
                Some(line) => line.to_owned(),
                None => "a reply of another kind than expected".to_owned(),
            },
        }
    }

    fn lost(&self, source: io::Error) -> ImportError {
        ImportError::Lost {
            address: self.address.clone(),
            source,
        }
    }
}

fn open(address: &Address) -> io::Result<TcpStream> {
    let timeout = Duration::from_millis(IMPORT_CONNECT_TIMEOUT_MS);
    let mut last_error = io::Error::other("the name has no address");
    for place in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                let timeout = Some(Duration::from_millis(IMPORT_REPLY_TIMEOUT_MS));
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)?;
                return Ok(stream);
            }
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_value(reader: &mut impl BufRead, depth: usize) -> io::Result<Value> {
    let line = read_line(reader)?;
    let number = || {
        line.get(1..)
            .and_then(|text| text.parse::<i64>().ok())
            .ok_or_else(|| wrong("a reply without its number"))
    };
    match line.as_bytes().first() {
        Some(b'+' | b'-') => Ok(Value::Line(line)),
        Some(b':') => Ok(Value::Integer(number()?)),
        Some(b'$') => match number()? {
            -1 => Ok(Value::Nil),
            length => read_bytes(reader, length).map(Value::Bytes),
        },
        Some(b'*') => match number()? {
            -1 => Ok(Value::Nil),
            count if depth < DEPTH_MAX => {
                let count = usize::try_from(count).map_err(|_| wrong("a negative count"))?;
                let mut items = Vec::with_capacity(count.min(RESERVED_ITEMS_MAX));
                for _ in 0..count {
                    items.push(read_value(reader, depth + 1)?);
                }
                Ok(Value::Array(items))
            }
            _ => Err(wrong("a reply of too many levels")),
        },
        _ => Err(wrong("what came is not the Redis protocol")),
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    let limit = REQUEST_INLINE_BYTES_MAX as u64;
    reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        None => Err(wrong("a line that does not end")),
    }
}

fn read_bytes(reader: &mut impl BufRead, length: i64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= REQUEST_BULK_BYTES_MAX)
        .ok_or_else(|| wrong("a string of an impossible length"))?;
    let mut bytes = Vec::with_capacity(length.min(BUFFER_BYTES));
    reader
        .by_ref()
        .take(length as u64)
        .read_to_end(&mut bytes)?;
    let mut end = [0; 2];
    reader.read_exact(&mut end)?;
    if bytes.len() == length && &end == b"\r\n" {
        Ok(bytes)
    } else {
        Err(wrong("a string that does not end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<Value> {
        read_value(&mut bytes, 0)
    }

    #[test]
    fn replies_of_every_kind_are_read() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Value::Line("+OK".to_owned()));
        assert_eq!(read(b"-ERR no\r\n").unwrap().error(), Some("ERR no"));
        assert_eq!(read(b":-7\r\n").unwrap(), Value::Integer(-7));
        assert_eq!(read(b"$-1\r\n").unwrap(), Value::Nil);
        let strings = read(b"*2\r\n$3\r\n\r\nx\r\n$0\r\n\r\n")
            .unwrap()
            .into_strings();
        assert_eq!(strings, Some(vec![b"\r\nx".to_vec(), Vec::new()]));
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        for bytes in [
            &b""[..],
            b"HTTP/1.1 400\r\n",
            b"+OK",
            b"$3\r\nab",
            b"$3\r\nabcde\r\n",
            b"$-2\r\n",
            b"$9999999999999\r\n",
            b"*-2\r\n",
            b"*9223372036854775807\r\n",
            b":x\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ] {
            assert!(read(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
