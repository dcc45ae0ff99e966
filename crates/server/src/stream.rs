//! The stream of a connection: TCP, TCP with TLS, or a Unix socket. The rest of the connection does
//! not know which one it is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{
    AsyncBufRead, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf, Ready,
};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_rustls::server::TlsStream;

use quoin_base::limits::{LINGER_BYTES_MAX, LINGER_IDLE_MAX, LINGER_MAX};

/// Interval at which [`Stream::gone`] checks a client that has sent something.
const GONE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of dropped input that are read at a time.
const LINGER_READ_BYTES: usize = 16 * 1024;

/// The socket of a connection that was accepted.
pub(super) enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

/// The stream of a connection.
pub(super) enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TCP with TLS.
    Tls(Box<Tls>),
}

impl Stream {
    /// The stream of a client after the TLS handshake.
    pub(super) fn with_tls(stream: TlsStream<TcpStream>) -> Self {
        let state = TlsState {
            stream,
            accepted_bytes: 0,
        };
        Stream::Tls(Box::new(Tls(Mutex::new(state))))
    }

    /// Both halves, for use by one task at the same time.
    pub(super) fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        match self {
            Stream::Tcp(stream) => {
                let (reader, writer) = stream.split();
                (ReadHalf::Tcp(reader), WriteHalf::Tcp(writer))
            }
            Stream::Unix(stream) => {
                let (reader, writer) = stream.split();
                (ReadHalf::Unix(reader), WriteHalf::Unix(writer))
            }
            Stream::Tls(tls) => (ReadHalf::Tls(tls), WriteHalf::Tls(tls)),
        }
    }

    /// Waits until the client has closed its connection, even if it has sent more before.
    pub(super) async fn gone(&mut self) {
        match self {
            Stream::Tcp(stream) => gone(stream).await,
            Stream::Tls(tls) => gone(tls.get_mut().stream.get_ref().0).await,
            Stream::Unix(stream) => {
                while !is_closed(stream.ready(Interest::READABLE).await) {
                    tokio::time::sleep(GONE_CHECK_INTERVAL).await;
                }
            }
        }
    }

    /// Sends a TLS client the end of the stream, if its socket accepts it at once.
    pub(super) fn close(&mut self) {
        if let Stream::Tls(tls) = self {
            let _ = tls.get_mut().stream.shutdown().now_or_never();
        }
    }

    /// Ends the output, and drops what the client still sends until the client closes. Closing a
    /// socket with unread bytes would discard what was written, and the client would not learn the
    /// reason. Bounded in time and bytes.
    pub(super) async fn linger(&mut self) {
        let (mut reader, mut writer) = self.split();
        let lingering = async {
            writer.shutdown().await?;
            let mut buffer = vec![0; LINGER_READ_BYTES];
            let mut left = LINGER_BYTES_MAX;
            while left > 0 {
                let read = tokio::time::timeout(LINGER_IDLE_MAX, reader.read(&mut buffer));
                match read.await?? {
                    0 => break,
                    count => left = left.saturating_sub(count),
                }
            }
            Ok::<(), io::Error>(())
        };
        // The client is gone, or its time is over.
        let _ = tokio::time::timeout(LINGER_MAX, lingering).await;
    }
}

async fn gone(stream: &TcpStream) {
    let mut byte = [0];
    loop {
        match stream.peek(&mut byte).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // There is something to read, so this returns immediately.
        if is_closed(stream.ready(Interest::READABLE).await) {
            return;
        }
        tokio::time::sleep(GONE_CHECK_INTERVAL).await;
    }
}

fn is_closed(ready: io::Result<Ready>) -> bool {
    ready.map_or(true, |ready| ready.is_read_closed())
}

impl From<Socket> for Stream {
    fn from(socket: Socket) -> Self {
        match socket {
            Socket::Tcp(stream) => Stream::Tcp(stream),
            Socket::Unix(stream) => Stream::Unix(stream),
        }
    }
}

/// TLS reads and writes in both directions, so both halves need the whole stream. They belong to one
/// task, so the lock is never contended.
pub(super) struct Tls(Mutex<TlsState>);

struct TlsState {
    stream: TlsStream<TcpStream>,
    /// Bytes of output that are encrypted but not all in the socket. They are not reported to the caller
    /// yet.
    accepted_bytes: usize,
}

impl Tls {
    fn lock(&self) -> MutexGuard<'_, TlsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get_mut(&mut self) -> &mut TlsState {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TlsState {
    /// Reports bytes as written when the socket has them, as with TCP. Until then the caller repeats the
    /// call with the same bytes.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = Pin::new(&mut self.stream);
        if self.accepted_bytes == 0 {
            self.accepted_bytes = ready!(stream.as_mut().poll_write(context, bytes))?;
        }
        ready!(stream.poll_flush(context))?;
        Poll::Ready(Ok(std::mem::take(&mut self.accepted_bytes)))
    }
}

/// The reading half of a stream.
pub(super) enum ReadHalf<'s> {
    Tcp(tcp::ReadHalf<'s>),
    Unix(unix::ReadHalf<'s>),
    Tls(&'s Tls),
}

impl ReadHalf<'_> {
    /// Waits until there is something to read, or the end.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            ReadHalf::Tcp(reader) => reader.readable().await,
            ReadHalf::Unix(reader) => reader.readable().await,
            // Only decrypted bytes can be read.
            ReadHalf::Tls(tls) => {
                std::future::poll_fn(|context| {
                    let mut state = tls.lock();
                    let decrypted = Pin::new(&mut state.stream).poll_fill_buf(context);
                    decrypted.map_ok(|_| ())
                })
                .await
            }
        }
    }
}

impl AsyncRead for ReadHalf<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Tcp(reader) => Pin::new(reader).poll_read(context, buffer),
            ReadHalf::Unix(reader) => Pin::new(reader).poll_read(context, buffer),
            ReadHalf::Tls(tls) => Pin::new(&mut tls.lock().stream).poll_read(context, buffer),
        }
    }
}

/// The writing half of a stream. After [`Poll::Pending`], the next write must begin with the same bytes.
pub(super) enum WriteHalf<'s> {
    Tcp(tcp::WriteHalf<'s>),
    Unix(unix::WriteHalf<'s>),
    Tls(&'s Tls),
}

impl AsyncWrite for WriteHalf<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            WriteHalf::Tcp(writer) => Pin::new(writer).poll_write(context, bytes),
            WriteHalf::Unix(writer) => Pin::new(writer).poll_write(context, bytes),
            WriteHalf::Tls(tls) => tls.lock().poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Tcp(writer) => Pin::new(writer).poll_flush(context),
            WriteHalf::Unix(writer) => Pin::new(writer).poll_flush(context),
            WriteHalf::Tls(tls) => Pin::new(&mut tls.lock().stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            WriteHalf::Tcp(writer) => Pin::new(writer).poll_shutdown(context),
            WriteHalf::Unix(writer) => Pin::new(writer).poll_shutdown(context),
            WriteHalf::Tls(tls) => Pin::new(&mut tls.lock().stream).poll_shutdown(context),
        }
    }
}
