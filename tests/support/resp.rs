//! A simple client for tests. It shows replies as they came over the wire, without interpreting
//! them.
//!
//! Included by `#[path]` from the test crates that need it.
#![allow(dead_code, unreachable_pub)]

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use quoin_resp::wire::reply_reader::read_reply;
pub use quoin_resp::wire::reply_reader::{Value, encode_request as encode};

/// A request: its arguments, the command's name first.
pub type Words = Vec<Vec<u8>>;

/// How long a reply may take before the test fails.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Request bytes that are written without reading replies meanwhile. Less than socket buffers hold.
const WRITE_AT_ONCE_BYTES: usize = 32 * 1024;

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

    /// Sends commands together and reads all their replies.
    pub fn pipeline(&mut self, commands: &[Words]) -> io::Result<Vec<Value>> {
        let bytes: Vec<u8> = commands.iter().flat_map(|words| encode(words)).collect();
        let Self { reader, writer } = self;
        let read_all =
            |reader: &mut BufReader<_>| commands.iter().map(|_| read_reply(reader)).collect();
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
        read_reply(&mut self.reader)
    }
}
