//! What a client sends while the server waits for something else: until its output is taken, or
//! its blocking command has ended. It is taken in, so that a client which writes everything before
//! it reads comes to its end (docs/understand/decisions/015-reading-ahead.md).

use std::collections::VecDeque;
use std::io;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::ReadHalf;

use crate::limits::{READ_AHEAD_CHUNK_BYTES, READ_BYTES};

/// Bytes that were read and come behind those that are being parsed. They lie in chunks, so that
/// much of it is neither moved when more comes nor kept until all is done.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    chunks: VecDeque<BytesMut>,
    bytes: usize,
    capacity: usize,
}

impl ReadAhead {
    /// How many bytes there are.
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

    /// Waits for bytes from a client and takes them in; answers how many, 0 at the end. Nothing is
    /// lost where the answer is not waited for.
    pub(super) async fn receive(&mut self, reader: &mut ReadHalf<'_>) -> io::Result<usize> {
        // A client that sends nothing costs no chunk.
        reader.readable().await?;
        let count = match self.room() {
            Some(room) => reader.read_buf(room).await?,
            None => 0,
        };
        self.bytes += count;
        Ok(count)
    }

    /// Takes the oldest of the bytes.
    pub(super) fn pop(&mut self) -> Option<BytesMut> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        self.capacity -= chunk.capacity();
        if self.chunks.is_empty() {
            self.chunks = VecDeque::new();
        }
        Some(chunk)
    }

    /// A chunk that has room. There always is one.
    fn room(&mut self) -> Option<&mut BytesMut> {
        let is_full = |chunk: &BytesMut| chunk.len() == chunk.capacity();
        if self.chunks.back().is_none_or(is_full) {
            let chunk = BytesMut::with_capacity(match self.chunks.is_empty() {
                true => READ_BYTES,
                false => READ_AHEAD_CHUNK_BYTES,
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

    #[tokio::test]
    async fn what_was_taken_in_comes_out_in_order() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
        let to_send = sent.clone();
        let sending = tokio::spawn(async move { client.write_all(&to_send).await });
        let mut ahead = ReadAhead::default();
        let (mut reader, _) = stream.split();
        while ahead.receive(&mut reader).await.unwrap() > 0 {}
        sending.await.unwrap().unwrap();
        assert_eq!(ahead.len(), sent.len());
        assert!(ahead.capacity() < sent.len() + 2 * READ_AHEAD_CHUNK_BYTES);
        let mut received = Vec::new();
        while let Some(chunk) = ahead.pop() {
            received.extend_from_slice(&chunk);
        }
        assert!(received == sent);
        assert!(ahead.is_empty());
        assert_eq!(ahead.capacity(), 0);
    }
}
