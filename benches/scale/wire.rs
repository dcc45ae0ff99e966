//! A lean client: sends whole pipelines as raw bytes, and parses only as much of the replies as is
//! counted.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const RECEIVE_BYTES: usize = 64 * 1024;

/// The parts of a reply that callers need.
pub enum Piece<'r> {
    /// A bulk string.
    Bulk(&'r [u8]),
    /// No element, or no elements.
    Nil,
    /// An error's line.
    Error(&'r [u8]),
    /// An integer.
    Integer(i64),
    /// Anything else.
    Other,
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::with_capacity(RECEIVE_BYTES),
        })
    }

    /// Sends requests together, and passes each reply to `show` with its number as it arrives.
    pub async fn exchange(
        &mut self,
        requests: &[u8],
        replies: usize,
        mut seen: impl FnMut(usize, &[u8]),
    ) -> io::Result<()> {
        self.stream.write_all(requests).await?;
        self.received.clear();
        let mut at = 0;
        let mut number = 0;
        while number < replies {
            if let Some(end) = walk(&self.received, at, &mut |_| {}) {
                seen(number, &self.received[at..end]);
                number += 1;
                at = end;
                continue;
            }
            self.received.reserve(RECEIVE_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Sends one command and returns its reply.
    pub async fn command(&mut self, words: &[&[u8]]) -> io::Result<Vec<u8>> {
        let mut request = Vec::new();
        write_command(&mut request, words);
        let mut reply = Vec::new();
        let keep = |_, bytes: &[u8]| reply.extend_from_slice(bytes);
        self.exchange(&request, 1, keep).await?;
        Ok(reply)
    }
}

/// Appends a command as clients send it.
pub fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    write_header(out, b'*', words.len());
    for word in words {
        write_header(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_header(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    let start = out.len();
    let mut left = count;
    loop {
        out.push(b'0' + (left % 10) as u8);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out[start..].reverse();
    out.extend_from_slice(b"\r\n");
}

/// Passes the pieces of the reply at `start` to `show`. Returns the reply's end if it is complete.
pub fn walk(bytes: &[u8], start: usize, show: &mut dyn FnMut(Piece<'_>)) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let length = rest.iter().position(|byte| *byte == b'\n')?;
    let end = start + length + 1;
    let (kind, text) = (rest[0], &rest[1..length - 1]);
    match kind {
        b'$' => match number(text) {
            -1 => show(Piece::Nil),
            count => {
                let behind = end + count as usize + 2;
                show(Piece::Bulk(
                    bytes.get(end..behind)?.split_last_chunk::<2>()?.0,
                ));
                return Some(behind);
            }
        },
        b'*' => match number(text) {
            -1 | 0 => show(Piece::Nil),
            count => return (0..count).try_fold(end, |at, _| walk(bytes, at, show)),
        },
        b'-' => show(Piece::Error(text)),
        b':' => show(Piece::Integer(number(text))),
        _ => show(Piece::Other),
    }
    Some(end)
}

fn number(text: &[u8]) -> i64 {
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = digits
        .iter()
        .fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    if is_negative { -magnitude } else { magnitude }
}
