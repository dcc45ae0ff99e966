//! The stream of a connection: TCP, TCP with TLS, or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::address::Address;
use quoin_tls::ClientStream;

/// Longest time until a server accepts the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time until it answers.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// The stream of a connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<ClientStream>),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to a server that must answer within this time.
    pub(super) fn open(address: &Address, reply_timeout: Duration) -> io::Result<Self> {
        if address.host.starts_with('/') {
            return Self::unix(UnixStream::connect(&address.host)?, reply_timeout);
        }
        let stream = open_tcp(address, reply_timeout)?;
        Ok(match &address.tls {
            None => Stream::Tcp(stream),
            Some(tls) => {
                let encrypted = tls.wrap(&address.host, stream);
                Stream::Tls(Box::new(encrypted.map_err(io::Error::other)?))
            }
        })
    }

    /// A socket whose other end must answer within this time.
    pub(super) fn unix(stream: UnixStream, reply_timeout: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(reply_timeout))?;
        stream.set_write_timeout(Some(reply_timeout))?;
        Ok(Stream::Unix(stream))
    }
}

fn open_tcp(address: &Address, reply_timeout: Duration) -> io::Result<TcpStream> {
    let mut last_error = io::Error::other("the name has no address");
    for socket in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT.min(reply_timeout)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(reply_timeout))?;
                stream.set_write_timeout(Some(reply_timeout))?;
                return Ok(stream);
            }
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
        }
    }
}
