//! A plain client for tests: it shows replies as they came over the wire, without judging them.
//!
//! Included by `#[path]` from the test crates that need it.
#![allow(dead_code, unreachable_pub)]

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A request: its arguments, the command's name first.
pub type Words = Vec<Vec<u8>>;

/// How long a reply may take before the test fails.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Request bytes that are written without reading replies meanwhile; less than socket buffers.
const WRITE_AT_ONCE_BYTES: usize = 32 * 1024;

/// A reply, with nothing of its bytes lost.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// One line behind its kind (`+ - : , # ( _`).
    Line(u8, Vec<u8>),
    /// Bytes with their length in front (`$ = !`); `None` is the length −1.
    Blob(u8, Option<Vec<u8>>),
    /// Values with their number in front (`* % ~ >`), a map's names and values in turn; `None`
    /// is the number −1.
    Aggregate(u8, Option<Vec<Value>>),
}

impl Value {
    /// The integer of an integer reply.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Line(b':', text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The bytes of a bulk string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Blob(_, bytes) => bytes.as_deref(),
            _ => None,
        }
    }

    /// The values of an array, set, map or push.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Value::Aggregate(_, items) => items.as_deref(),
            _ => None,
        }
    }

    /// The line of an error.
    pub fn error(&self) -> Option<&[u8]> {
        match self {
            Value::Line(b'-', text) => Some(text),
            _ => None,
        }
    }
}

/// Text for people: bytes escaped, long runs cut.
pub fn show_bytes(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    match bytes.get(..SHOWN) {
        Some(first) if bytes.len() > SHOWN + 20 => {
            format!("\"{}…\"({} bytes)", first.escape_ascii(), bytes.len())
        }
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Line(kind, text) => write!(out, "{}{}", char::from(*kind), text.escape_ascii()),
            Value::Blob(kind, None) => write!(out, "{}-1", char::from(*kind)),
            Value::Blob(b'$', Some(bytes)) => write!(out, "{}", show_bytes(bytes)),
            Value::Blob(kind, Some(bytes)) => {
                write!(out, "{}{}", char::from(*kind), show_bytes(bytes))
            }
            Value::Aggregate(kind, None) => write!(out, "{}-1", char::from(*kind)),
            Value::Aggregate(kind, Some(items)) => {
                write!(out, "{}", char::from(*kind))?;
                out.debug_list().entries(items).finish()
            }
        }
    }
}

/// A connection to a server.
pub struct Connection {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
}

impl Connection {
    /// Connects over TCP.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::open_with_timeout(address, REPLY_TIMEOUT)
    }

    /// Connects over TCP; no part of a reply may take longer than the timeout.
    pub fn open_with_timeout(address: SocketAddr, reply_timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(reply_timeout))?;
        Ok(Self::over(Box::new(stream.try_clone()?), Box::new(stream)))
    }

    /// Connects to a Unix socket.
    pub fn open_unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self::over(Box::new(stream.try_clone()?), Box::new(stream)))
    }

    fn over(reader: Box<dyn Read + Send>, writer: Box<dyn Write + Send>) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            writer,
        }
    }

    /// Sends one command and reads its reply.
    pub fn command<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Value> {
        self.writer.write_all(&encode(words))?;
        self.read()
    }

    /// Sends commands in one go and reads all their replies.
    pub fn pipeline(&mut self, commands: &[Words]) -> io::Result<Vec<Value>> {
        let bytes: Vec<u8> = commands.iter().flat_map(|words| encode(words)).collect();
        let Self { reader, writer } = self;
        let read_all =
            |reader: &mut BufReader<_>| commands.iter().map(|_| read_value(reader)).collect();
        if bytes.len() <= WRITE_AT_ONCE_BYTES {
            writer.write_all(&bytes)?;
            return read_all(reader);
        }
        // A server may stop reading while nobody reads its replies.
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| writer.write_all(&bytes));
            let replies = read_all(reader);
            match writing.join() {
                Ok(written) => written.and(replies),
                Err(_) => Err(io::Error::other("the writing thread panicked")),
            }
        })
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// Reads one reply.
    pub fn read(&mut self) -> io::Result<Value> {
        read_value(&mut self.reader)
    }
}

/// A request as clients send it.
pub fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

fn read_value(reader: &mut impl BufRead) -> io::Result<Value> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let Some((&kind, text)) = line.split_first() else {
        return Err(wrong("empty line", line));
    };
    match kind {
        b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => Ok(Value::Line(kind, text.to_vec())),
        b'$' | b'=' | b'!' => {
            let Some(length) = read_length(text)? else {
                return Ok(Value::Blob(kind, None));
            };
            let mut bytes = vec![0; length + 2];
            reader.read_exact(&mut bytes)?;
            if bytes.split_off(length) != b"\r\n" {
                return Err(wrong("no line end behind a bulk", line));
            }
            Ok(Value::Blob(kind, Some(bytes)))
        }
        b'*' | b'~' | b'>' | b'%' => {
            let Some(length) = read_length(text)? else {
                return Ok(Value::Aggregate(kind, None));
            };
            let count = if kind == b'%' { length * 2 } else { length };
            let items: io::Result<Vec<Value>> = (0..count).map(|_| read_value(reader)).collect();
            Ok(Value::Aggregate(kind, Some(items?)))
        }
        _ => Err(wrong("unknown kind of reply", line)),
    }
}

/// A length in the one form that servers write; `None` for −1.
fn read_length(text: &[u8]) -> io::Result<Option<usize>> {
    if text == b"-1" {
        return Ok(None);
    }
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| {
            text.parse::<usize>()
                .ok()
                .filter(|number| number.to_string() == text)
        })
        .map(Some)
        .ok_or_else(|| wrong("not a length", text))
}

fn wrong(what: &str, line: &[u8]) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{what}: {}", line.escape_ascii()),
    )
}
