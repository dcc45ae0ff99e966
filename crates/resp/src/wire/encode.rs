//! Replies to bytes, for clients that speak RESP2 or RESP3.
//!
//! The crate `redis-protocol` is named only here. It encodes what it can say exactly as Redis
//! does: statuses, errors, nulls and booleans. The rest is written by hand:
//!
//! - RESP2's null array, `*-1`, is no frame of the crate.
//! - Doubles: the crate prints with Rust's `Display`, Redis with Grisu2 (`wire::number`).
//! - Maps and sets: the crate keeps them in hash tables, which forget the order of a reply.
//! - Whatever has a length or is an integer: the crate sizes its output with a floating-point
//!   logarithm, which is one too many for integers such as 999,999,999,999,999,999 and then leaves
//!   a NUL byte behind them; and these are the replies that have to be fast.
//! - Arrays: the crate wants a tree of frames first; here a header is written, then each element
//!   straight from the reply.

use std::borrow::Cow;

use bytes::BytesMut;
use redis_protocol::error::RedisProtocolError;
use redis_protocol::{resp2, resp3};

use crate::reply::Reply;
use quoin_base::number::{LongDouble, format_double};

/// The version of RESP that a client asked for with HELLO. A new connection speaks RESP2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Version 2: no maps, sets, doubles, booleans or pushes.
    #[default]
    Resp2,
    /// Version 3.
    Resp3,
}

const CRLF: &[u8] = b"\r\n";
/// Digits of the largest 64-bit integer.
const INTEGER_DIGITS_MAX: usize = 20;

/// Appends a reply to `output` as Redis 7.2 sends it.
///
/// Calls itself for the elements of a reply; replies are made by commands and nest a few levels.
pub fn encode(reply: &Reply, protocol: Protocol, output: &mut BytesMut) {
    match reply {
        Reply::Bulk(bytes) => put_bulk(bytes, output),
        Reply::Integer(number) => put_integer(b':', *number, output),
        Reply::Array(items) => put_items(b'*', items, protocol, output),
        Reply::Set(items) => put_items(resp3_or(protocol, b'~', b'*'), items, protocol, output),
        Reply::Push(items) => put_items(resp3_or(protocol, b'>', b'*'), items, protocol, output),
        Reply::Map(pairs) => {
            match protocol {
                Protocol::Resp2 => put_length(b'*', pairs.len().saturating_mul(2), output),
                Protocol::Resp3 => put_length(b'%', pairs.len(), output),
            }
            for (name, value) in pairs {
                encode(name, protocol, output);
                encode(value, protocol, output);
            }
        }
        Reply::Keyed(pairs) => {
            put_length(resp3_or(protocol, b'%', b'*'), pairs.len(), output);
            for (name, value) in pairs {
                if protocol == Protocol::Resp2 {
                    put_length(b'*', 2, output);
                }
                encode(name, protocol, output);
                encode(value, protocol, output);
            }
        }
        Reply::Pairs(pairs) => {
            let is_nested = protocol == Protocol::Resp3;
            let length = if is_nested { 1 } else { 2 };
            put_length(b'*', pairs.len().saturating_mul(length), output);
            for (first, second) in pairs {
                if is_nested {
                    put_length(b'*', 2, output);
                }
                encode(first, protocol, output);
                encode(second, protocol, output);
            }
        }
        Reply::Simple(text) => put_simple(text, output),
        Reply::Status(text) => {
            output.extend_from_slice(b"+");
            output.extend_from_slice(text);
            output.extend_from_slice(CRLF);
        }
        Reply::Error(line) => put_error(line, output),
        Reply::Null => put_null(protocol, output),
        Reply::NullArray => match protocol {
            Protocol::Resp2 => output.extend_from_slice(b"*-1\r\n"),
            Protocol::Resp3 => put_null(protocol, output),
        },
        Reply::Double(number) => put_double(&format_double(*number), protocol, output),
        Reply::Decimal(number) => {
            put_double(&LongDouble::from(*number).to_string(), protocol, output);
        }
        Reply::Whole(number) => match protocol {
            Protocol::Resp2 => put_bulk(number.to_string().as_bytes(), output),
            Protocol::Resp3 => put_integer(b':', *number, output),
        },
        Reply::Boolean(value) => match protocol {
            Protocol::Resp2 => put_integer(b':', i64::from(*value), output),
            Protocol::Resp3 => put_boolean(*value, output),
        },
        Reply::Verbatim(format, bytes) => {
            put_verbatim(format.as_bytes(), bytes, protocol, output);
        }
        Reply::FormattedVerbatim(format, bytes) => put_verbatim(format, bytes, protocol, output),
        Reply::BigNumber(digits) => match protocol {
            Protocol::Resp2 => put_bulk(digits, output),
            Protocol::Resp3 => {
                output.extend_from_slice(b"(");
                output.extend_from_slice(digits);
                output.extend_from_slice(CRLF);
            }
        },
        Reply::Several(replies) => {
            for reply in replies {
                encode(reply, protocol, output);
            }
        }
        Reply::Silence => {}
    }
}

/// Appends the header of a message of so many elements: a push in RESP3, an array in RESP2.
pub fn encode_push_header(elements: usize, protocol: Protocol, output: &mut BytesMut) {
    put_length(resp3_or(protocol, b'>', b'*'), elements, output);
}

/// Appends an error whose line (what is behind the `-`) may hold bytes that are not text, such as
/// that of a `ProtocolError`. Line breaks in it become blanks, as in Redis.
pub fn encode_error_line(line: &[u8], output: &mut BytesMut) {
    output.extend_from_slice(b"-");
    output.extend(line.iter().map(|byte| match byte {
        b'\r' | b'\n' => b' ',
        other => *other,
    }));
    output.extend_from_slice(CRLF);
}

fn resp3_or(protocol: Protocol, resp3: u8, resp2: u8) -> u8 {
    match protocol {
        Protocol::Resp2 => resp2,
        Protocol::Resp3 => resp3,
    }
}

fn put_items(kind: u8, items: &[Reply], protocol: Protocol, output: &mut BytesMut) {
    put_length(kind, items.len(), output);
    for item in items {
        encode(item, protocol, output);
    }
}

fn put_bulk(bytes: &[u8], output: &mut BytesMut) {
    // One growth for the whole element: its bytes, `$`, the length and both line ends.
    output.reserve(bytes.len().saturating_add(INTEGER_DIGITS_MAX + 5));
    put_length(b'$', bytes.len(), output);
    output.extend_from_slice(bytes);
    output.extend_from_slice(CRLF);
}

fn put_verbatim(format: &[u8], bytes: &[u8], protocol: Protocol, output: &mut BytesMut) {
    match protocol {
        Protocol::Resp2 => put_bulk(bytes, output),
        Protocol::Resp3 => {
            let length = format.len().saturating_add(1).saturating_add(bytes.len());
            put_length(b'=', length, output);
            output.extend_from_slice(format);
            output.extend_from_slice(b":");
            output.extend_from_slice(bytes);
            output.extend_from_slice(CRLF);
        }
    }
}

fn put_double(text: &str, protocol: Protocol, output: &mut BytesMut) {
    match protocol {
        Protocol::Resp2 => put_bulk(text.as_bytes(), output),
        Protocol::Resp3 => {
            output.extend_from_slice(b",");
            output.extend_from_slice(text.as_bytes());
            output.extend_from_slice(CRLF);
        }
    }
}

fn put_length(kind: u8, length: usize, output: &mut BytesMut) {
    output.extend_from_slice(&[kind]);
    put_digits(u64::try_from(length).unwrap_or(u64::MAX), output);
    output.extend_from_slice(CRLF);
}

fn put_integer(kind: u8, number: i64, output: &mut BytesMut) {
    output.extend_from_slice(&[kind]);
    if number < 0 {
        output.extend_from_slice(b"-");
    }
    put_digits(number.unsigned_abs(), output);
    output.extend_from_slice(CRLF);
}

fn put_digits(number: u64, output: &mut BytesMut) {
    let mut digits = [b'0'; INTEGER_DIGITS_MAX];
    let mut rest = number;
    let mut count = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    output.extend_from_slice(digits.get(INTEGER_DIGITS_MAX - count..).unwrap_or_default());
}

/// Statuses, errors and nulls are the same bytes in both versions, but for the null.
fn put_simple(text: &str, output: &mut BytesMut) {
    let frame = resp2::types::BorrowedFrame::SimpleString(text.as_bytes());
    carry(output, |output| {
        resp2::encode::extend_encode_borrowed(output, &frame, false)
    });
}

fn put_error(line: &str, output: &mut BytesMut) {
    // The place that makes error lines removes line breaks; one that slipped through would let a
    // client's bytes pass for a reply.
    let line = if line.contains(['\r', '\n']) {
        Cow::Owned(line.replace(['\r', '\n'], " "))
    } else {
        Cow::Borrowed(line)
    };
    let frame = resp2::types::BorrowedFrame::Error(&line);
    carry(output, |output| {
        resp2::encode::extend_encode_borrowed(output, &frame, false)
    });
}

fn put_null(protocol: Protocol, output: &mut BytesMut) {
    carry(output, |output| match protocol {
        Protocol::Resp2 => {
            let frame = resp2::types::BorrowedFrame::Null;
            resp2::encode::extend_encode_borrowed(output, &frame, false)
        }
        Protocol::Resp3 => {
            let frame = resp3::types::BorrowedFrame::Null;
            resp3::encode::complete::extend_encode_borrowed(output, &frame, false)
        }
    });
}

fn put_boolean(value: bool, output: &mut BytesMut) {
    let frame = resp3::types::BorrowedFrame::Boolean {
        data: value,
        attributes: None,
    };
    carry(output, |output| {
        resp3::encode::complete::extend_encode_borrowed(output, &frame, false)
    });
}

/// Lets the crate append a frame. It fails only if it runs out of the room that it made itself; a
/// client must then still read one reply, and not half of one.
fn carry(
    output: &mut BytesMut,
    append: impl FnOnce(&mut BytesMut) -> Result<usize, RedisProtocolError>,
) {
    let before = output.len();
    if append(output).is_err() {
        output.truncate(before);
        encode_error_line(b"ERR reply could not be encoded", output);
    }
}

#[cfg(test)]
mod tests;
