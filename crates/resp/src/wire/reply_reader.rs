//! Reading replies: for the clients of Redis servers in this program, and for tests.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};

use quoin_base::limits::{REQUEST_BULK_BYTES_MAX, REQUEST_INLINE_BYTES_MAX};

/// Arrays within arrays that a reply may have.
const DEPTH_MAX: usize = 32;
/// Places, or bytes, that an announced number reserves.
const RESERVED_MAX: usize = 1024;

/// A reply of RESP2 or RESP3, with all of its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// One line after its kind (`+ - : , # ( _`).
    Line(u8, Vec<u8>),
    /// Bytes with their length in front (`$ = !`); `None` is the length −1.
    Blob(u8, Option<Vec<u8>>),
    /// Values with their number before them (`* % ~ >`); names and values of a map alternate. `None` is the
    /// number −1.
    Aggregate(u8, Option<Vec<Value>>),
}

impl Value {
    /// Whether it is the status OK.
    pub fn is_ok(&self) -> bool {
        self.status() == Some(b"OK")
    }

    /// Whether it is RESP2's null, or null array.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Blob(b'$', None) | Value::Aggregate(b'*', None))
    }

    /// The line of a status.
    pub fn status(&self) -> Option<&[u8]> {
        match self {
            Value::Line(b'+', text) => Some(text),
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

    /// The line of an error, as text.
    pub fn error_text(&self) -> Option<Cow<'_, str>> {
        self.error().map(String::from_utf8_lossy)
    }

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

    /// The strings of an array of strings.
    pub fn into_strings(self) -> Option<Vec<Vec<u8>>> {
        let Value::Aggregate(_, Some(items)) = self else {
            return None;
        };
        let string = |item| match item {
            Value::Blob(_, bytes) => bytes,
            _ => None,
        };
        items.into_iter().map(string).collect()
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

/// A request as clients send it.
pub fn encode_request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Reads a reply. Reserves no more memory than its bytes justify.
///
/// # Errors
/// The error of the reader, or `InvalidData` if the bytes are not the Redis protocol.
pub fn read_reply(reader: &mut impl BufRead) -> io::Result<Value> {
    read_value(reader, 0)
}

fn read_value(reader: &mut impl BufRead, depth: usize) -> io::Result<Value> {
    let line = read_line(reader)?;
    let Some((&kind, text)) = line.split_first() else {
        return Err(wrong("an empty line", &line));
    };
    match kind {
        b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => Ok(Value::Line(kind, text.to_vec())),
        b'$' | b'=' | b'!' => match read_length(text)? {
            None => Ok(Value::Blob(kind, None)),
            Some(length) => Ok(Value::Blob(kind, Some(read_bytes(reader, length)?))),
        },
        b'*' | b'~' | b'>' | b'%' => {
            let Some(length) = read_length(text)? else {
                return Ok(Value::Aggregate(kind, None));
            };
            if depth >= DEPTH_MAX {
                return Err(wrong("a reply of too many levels", &line));
            }
            let count = if kind == b'%' {
                length.saturating_mul(2)
            } else {
                length
            };
            let mut items = Vec::with_capacity(count.min(RESERVED_MAX));
            for _ in 0..count {
                items.push(read_value(reader, depth + 1)?);
            }
            Ok(Value::Aggregate(kind, Some(items)))
        }
        _ => Err(wrong("what came is not the Redis protocol", &line)),
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let limit = REQUEST_INLINE_BYTES_MAX as u64;
    reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\r\n") {
        line.truncate(line.len() - 2);
        Ok(line)
    } else if line.is_empty() {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Err(wrong("a line that does not end", &line))
    }
}

/// A length in the only form that servers write. `None` for −1.
fn read_length(text: &[u8]) -> io::Result<Option<usize>> {
    if text == b"-1" {
        return Ok(None);
    }
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| {
            let length = text.parse::<usize>().ok();
            length.filter(|length| length.to_string() == text)
        })
        .map(Some)
        .ok_or_else(|| wrong("not a length", text))
}

fn read_bytes(reader: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > REQUEST_BULK_BYTES_MAX {
        return Err(wrong("a string of an impossible length", b"$"));
    }
    let mut bytes = Vec::with_capacity(length.min(RESERVED_MAX));
    reader
        .by_ref()
        .take(length as u64)
        .read_to_end(&mut bytes)?;
    let mut end = [0; 2];
    reader.read_exact(&mut end)?;
    if bytes.len() == length && &end == b"\r\n" {
        Ok(bytes)
    } else {
        Err(wrong("a string that does not end", &end))
    }
}

fn wrong(what: &str, line: &[u8]) -> io::Error {
    let text = format!("{what}: {}", show_bytes(line));
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<Value> {
        read_reply(&mut bytes)
    }

    #[test]
    fn replies_of_every_kind_are_read() {
        assert!(read(b"+OK\r\n").unwrap().is_ok());
        assert_eq!(read(b"-ERR no\r\n").unwrap().error(), Some(&b"ERR no"[..]));
        assert_eq!(read(b":-7\r\n").unwrap().integer(), Some(-7));
        assert!(read(b"$-1\r\n").unwrap().is_null());
        assert!(read(b"*-1\r\n").unwrap().is_null());
        let strings = read(b"*2\r\n$3\r\n\r\nx\r\n$0\r\n\r\n")
            .unwrap()
            .into_strings();
        assert_eq!(strings, Some(vec![b"\r\nx".to_vec(), Vec::new()]));
        let map = read(b"%1\r\n+a\r\n_\r\n").unwrap();
        assert_eq!(map.items().map(<[Value]>::len), Some(2));
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
            b"*01\r\n:1\r\n",
        ] {
            assert!(read(bytes).is_err(), "{}", bytes.escape_ascii());
        }
        let nested = [&b"*1\r\n".repeat(DEPTH_MAX + 1)[..], b":1\r\n"].concat();
        assert!(read(&nested).is_err());
        assert!(read(&nested[4..]).is_ok());
    }
}
