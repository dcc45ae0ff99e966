//! Input that a connection reads ahead: while the server waits for the client to take its output, or for its
//! blocking command to end. A client that writes everything before it reads can then finish
//! (docs/understand/decisions/015-reading-ahead.md).

use std::collections::VecDeque;
use std::io;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;

use crate::stream::ReadHalf;

/// Bytes that a connection reads at a time if it does not expect more.
pub(super) const READ_BYTES: usize = 16 * 1024;
/// Bytes of a chunk, except for the first, which has [`READ_BYTES`].
const CHUNK_BYTES: usize = 64 * 1024;

/// Bytes after the ones being parsed. They are stored in chunks, so that new bytes do not move
/// existing ones, and each chunk is freed once it is parsed.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    chunks: VecDeque<BytesMut>,
    bytes: usize,
    capacity: usize,
}

impl ReadAhead {
    /// The number of bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The memory that they take.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Reads bytes from a client. Returns their number, 0 at the end. Cancel-safe.
    pub(super) async fn receive(&mut self, reader: &mut ReadHalf<'_>) -> io::Result<usize> {
        // An idle client needs no chunk.
        reader.readable().await?;
        let count = match self.room() {
            Some(room) => reader.read_buf(room).await?,
            None => 0,
        };
        self.bytes += count;
        Ok(count)
    }

    /// Takes the oldest chunk.
    pub(super) fn pop(&mut self) -> Option<BytesMut> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        self.capacity -= chunk.capacity();
        if self.chunks.is_empty() {
            self.chunks = VecDeque::new();
        }
        Some(chunk)
    }

    /// A chunk with free room. There always is one.
    fn room(&mut self) -> Option<&mut BytesMut> {
        let is_full = |chunk: &BytesMut| chunk.len() == chunk.capacity();
        if self.chunks.back().is_none_or(is_full) {
            let chunk = BytesMut::with_capacity(match self.chunks.is_empty() {
                true => READ_BYTES,
                false => CHUNK_BYTES,
            });
            self.capacity += chunk.capacity();
            self.chunks.push_back(chunk);
        }
        self.chunks.back_mut()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::stream::Stream;

    #[tokio::test]
    async fn what_was_taken_in_comes_out_in_order() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = Stream::Tcp(stream);
        let sent: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
        let to_send = sent.clone();
        let sending = tokio::spawn(async move { client.write_all(&to_send).await });
        let mut ahead = ReadAhead::default();
        let (mut reader, _) = stream.split();
        while ahead.receive(&mut reader).await.unwrap() > 0 {}
        sending.await.unwrap().unwrap();
        assert_eq!(ahead.len(), sent.len());
        assert!(ahead.capacity() < sent.len() + 2 * CHUNK_BYTES);
        let mut received = Vec::new();
        while let Some(chunk) = ahead.pop() {
            received.extend_from_slice(&chunk);
        }
        assert!(received == sent);
        assert!(ahead.is_empty());
        assert_eq!(ahead.capacity(), 0);
    }
}
