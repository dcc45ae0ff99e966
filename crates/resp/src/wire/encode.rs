//! Encodes replies for clients that speak RESP2 or RESP3.
//!
//! The crate `redis-protocol` is named only here. It encodes what it can exactly as Redis does:
//! statuses, errors, nulls and booleans. The rest is written by hand:
//!
//! - RESP2's null array, `*-1`: the crate has no frame for it.
//! - Doubles: the crate prints with Rust's `Display`, Redis with Grisu2 (`wire::number`).
//! - Maps and sets: the crate keeps them in hash tables, which lose the order of a reply.
//! - Integers, and everything with a length: the crate sizes its output with a floating-point
//!   logarithm. The result is one too large for integers such as 999,999,999,999,999,999, which
//!   leaves a NUL byte after them. These replies also have to be fast.
//! - Arrays: the crate needs a tree of frames first. Here a header is written, then each element
//!   straight from the reply.

use std::borrow::Cow;

use bytes::BytesMut;
use redis_protocol::error::RedisProtocolError;
use redis_protocol::{resp2, resp3};

use crate::reply::Reply;
use quoin_base::number::format_double;

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
/// Recursive, because replies come from commands and nest only a few levels.
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
        Reply::Decimal(number) => put_double(&number.to_string(), protocol, output),
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
        Reply::Encoded(bytes) => output.extend_from_slice(bytes),
        Reply::Silence => {}
    }
}

/// Appends the header of a message of `count` elements: a push in RESP3, an array in RESP2.
pub fn encode_push_header(elements: usize, protocol: Protocol, output: &mut BytesMut) {
    put_length(resp3_or(protocol, b'>', b'*'), elements, output);
}

/// Appends an error whose line (the part after the `-`) may contain bytes that are not text, such
/// as the line of a `ProtocolError`. As in Redis, line breaks in it become blanks.
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
    // Grows once for the whole element: its bytes, `$`, the length and both line ends.
    output.reserve(bytes.len().saturating_add(LINE_BYTES_MAX + CRLF.len()));
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
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    put_number_line(kind, false, length, output);
}

fn put_integer(kind: u8, number: i64, output: &mut BytesMut) {
    put_number_line(kind, number < 0, number.unsigned_abs(), output);
}

/// Maximum bytes of a line with a number: its kind, a sign, digits and the line end.
const LINE_BYTES_MAX: usize = INTEGER_DIGITS_MAX + 4;

/// The line is built from its end, so that it can be appended at once.
fn put_number_line(kind: u8, is_negative: bool, number: u64, output: &mut BytesMut) {
    let mut line = [0; LINE_BYTES_MAX];
    let mut begin = LINE_BYTES_MAX;
    let mut put = |byte: u8| {
        // There is room for the longest number.
        begin = begin.saturating_sub(1);
        if let Some(place) = line.get_mut(begin) {
            *place = byte;
        }
    };
    put(b'\n');
    put(b'\r');
    let mut rest = number;
    loop {
        // A digit fits in a byte.
        put(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if is_negative {
        put(b'-');
    }
    put(kind);
    output.extend_from_slice(line.get(begin..).unwrap_or_default());
}

/// Statuses, errors and nulls. Except for the null, the bytes are the same in both versions.
fn put_simple(text: &str, output: &mut BytesMut) {
    let frame = resp2::types::BorrowedFrame::SimpleString(text.as_bytes());
    carry(output, |output| {
        resp2::encode::extend_encode_borrowed(output, &frame, false)
    });
}

fn put_error(line: &str, output: &mut BytesMut) {
    // The code that builds error lines removes line breaks. Otherwise bytes from a client could
    // look like a reply.
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

/// Lets the crate append a frame. It can fail only if it exceeds the space that it reserved. A
/// client must then still get one whole reply.
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
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use redis_protocol::resp3::types::{DecodedFrame, OwnedFrame};

    use super::*;

    fn resp2_text(reply: &Reply) -> String {
        text(reply, Protocol::Resp2)
    }

    fn resp3_text(reply: &Reply) -> String {
        text(reply, Protocol::Resp3)
    }

    fn text(reply: &Reply, protocol: Protocol) -> String {
        let mut output = BytesMut::new();
        encode(reply, protocol, &mut output);
        String::from_utf8(output.to_vec()).unwrap()
    }

    #[test]
    fn replies_that_are_the_same_in_both_versions() {
        for (reply, expected) in [
            (Reply::OK, "+OK\r\n"),
            (
                Reply::Error("ERR syntax error".to_owned()),
                "-ERR syntax error\r\n",
            ),
            (Reply::Integer(0), ":0\r\n"),
            (Reply::Integer(-12), ":-12\r\n"),
            (Reply::Integer(i64::MAX), ":9223372036854775807\r\n"),
            (Reply::Integer(i64::MIN), ":-9223372036854775808\r\n"),
            (
                Reply::Integer(999_999_999_999_999_999),
                ":999999999999999999\r\n",
            ),
            (Reply::bulk("abc"), "$3\r\nabc\r\n"),
            (Reply::bulk(""), "$0\r\n\r\n"),
            (Reply::Array(vec![]), "*0\r\n"),
            (
                Reply::Array(vec![
                    Reply::Integer(1),
                    Reply::Array(vec![Reply::bulk("a")]),
                ]),
                "*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
            ),
            (Reply::Silence, ""),
        ] {
            assert_eq!(resp2_text(&reply), expected);
            assert_eq!(resp3_text(&reply), expected);
        }
    }

    #[test]
    fn replies_that_resp2_has_to_say_otherwise() {
        let pairs = vec![
            (Reply::bulk("b"), Reply::Integer(1)),
            (Reply::bulk("a"), Reply::Integer(2)),
        ];
        for (reply, resp2, resp3) in [
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::NullArray, "*-1\r\n", "_\r\n"),
            (Reply::Boolean(true), ":1\r\n", "#t\r\n"),
            (Reply::Boolean(false), ":0\r\n", "#f\r\n"),
            (Reply::Double(3.5), "$3\r\n3.5\r\n", ",3.5\r\n"),
            (Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
            (
                Reply::Double(f64::NEG_INFINITY),
                "$4\r\n-inf\r\n",
                ",-inf\r\n",
            ),
            (Reply::Double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n"),
            (
                Reply::Set(vec![Reply::bulk("x")]),
                "*1\r\n$1\r\nx\r\n",
                "~1\r\n$1\r\nx\r\n",
            ),
            (
                Reply::Push(vec![Reply::bulk("x")]),
                "*1\r\n$1\r\nx\r\n",
                ">1\r\n$1\r\nx\r\n",
            ),
            (
                Reply::Verbatim("txt", Bytes::from_static(b"hi")),
                "$2\r\nhi\r\n",
                "=6\r\ntxt:hi\r\n",
            ),
            (
                Reply::Map(pairs),
                "*4\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n:2\r\n",
                "%2\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n:2\r\n",
            ),
        ] {
            assert_eq!(resp2_text(&reply), resp2);
            assert_eq!(resp3_text(&reply), resp3);
        }
    }

    #[test]
    fn pairs_nest_in_resp3_and_are_flat_in_resp2() {
        let reply = Reply::Pairs(vec![
            (Reply::bulk("a"), Reply::Double(1.5)),
            (Reply::bulk("b"), Reply::Double(2.0)),
        ]);
        assert_eq!(
            resp2_text(&reply),
            "*4\r\n$1\r\na\r\n$3\r\n1.5\r\n$1\r\nb\r\n$1\r\n2\r\n"
        );
        assert_eq!(
            resp3_text(&reply),
            "*2\r\n*2\r\n$1\r\na\r\n,1.5\r\n*2\r\n$1\r\nb\r\n,2\r\n"
        );
        assert_eq!(resp3_text(&Reply::Pairs(Vec::new())), "*0\r\n");
    }

    #[test]
    fn keyed_pairs_are_a_map_in_resp3_and_nest_in_resp2() {
        let reply = Reply::Keyed(vec![(Reply::bulk("a"), Reply::Array(Vec::new()))]);
        assert_eq!(resp2_text(&reply), "*1\r\n*2\r\n$1\r\na\r\n*0\r\n");
        assert_eq!(resp3_text(&reply), "%1\r\n$1\r\na\r\n*0\r\n");
    }

    #[test]
    fn the_version_reaches_nested_replies() {
        let reply = Reply::Array(vec![
            Reply::Null,
            Reply::Map(vec![(Reply::bulk("k"), Reply::Null)]),
        ]);
        assert_eq!(resp2_text(&reply), "*2\r\n$-1\r\n*2\r\n$1\r\nk\r\n$-1\r\n");
        assert_eq!(resp3_text(&reply), "*2\r\n_\r\n%1\r\n$1\r\nk\r\n_\r\n");
    }

    #[test]
    fn an_error_line_cannot_smuggle_in_another_reply() {
        let reply = Reply::Error("ERR unknown command 'a\r\n+OK'".to_owned());
        assert_eq!(resp2_text(&reply), "-ERR unknown command 'a  +OK'\r\n");
    }

    #[test]
    fn an_error_line_may_hold_any_byte_but_line_breaks() {
        let mut output = BytesMut::new();
        encode_error_line(b"ERR \xff\r\n", &mut output);
        assert_eq!(output.as_ref(), b"-ERR \xff  \r\n");
    }

    #[test]
    fn replies_are_appended() {
        let mut output = BytesMut::from("x");
        encode(&Reply::OK, Protocol::Resp2, &mut output);
        encode(&Reply::Null, Protocol::Resp2, &mut output);
        assert_eq!(output.as_ref(), b"x+OK\r\n$-1\r\n");
    }

    fn any_reply() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Reply::Integer),
            any::<Vec<u8>>().prop_map(Reply::bulk),
            any::<bool>().prop_map(Reply::Boolean),
            any::<f64>()
                .prop_filter("nan", |number| !number.is_nan())
                .prop_map(Reply::Double),
            any::<i64>().prop_map(Reply::Whole),
            "[ -~]{0,20}".prop_map(Reply::Error),
            Just(Reply::OK),
            Just(Reply::Null),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Reply::Array),
                prop::collection::vec(inner.clone(), 0..6).prop_map(Reply::Push),
                // The decoder takes only simple names.
                prop::collection::vec((any::<Vec<u8>>().prop_map(Reply::bulk), inner), 0..6)
                    .prop_map(Reply::Map),
            ]
        })
    }

    /// Whether a RESP3 client reads this reply. Without maps, because the decoder's frames do not
    /// keep their order.
    fn matches_frame(reply: &Reply, frame: &OwnedFrame) -> bool {
        match (reply, frame) {
            (Reply::Integer(left) | Reply::Whole(left), OwnedFrame::Number { data, .. }) => {
                left == data
            }
            (Reply::Bulk(left), OwnedFrame::BlobString { data, .. }) => left == data,
            (Reply::Boolean(left), OwnedFrame::Boolean { data, .. }) => left == data,
            (Reply::Double(left), OwnedFrame::Double { data, .. }) => left == data,
            (Reply::Error(left), OwnedFrame::SimpleError { data, .. }) => left == data,
            (Reply::Simple(left), OwnedFrame::SimpleString { data, .. }) => left.as_bytes() == data,
            (Reply::Null, OwnedFrame::Null) => true,
            (Reply::Map(left), OwnedFrame::Map { data, .. }) => data.len() <= left.len(),
            (Reply::Array(left), OwnedFrame::Array { data, .. })
            | (Reply::Push(left), OwnedFrame::Push { data, .. }) => {
                left.len() == data.len()
                    && left
                        .iter()
                        .zip(data)
                        .all(|(left, right)| matches_frame(left, right))
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn an_independent_decoder_reads_back_every_reply(reply in any_reply()) {
            let mut output = BytesMut::new();
            encode(&reply, Protocol::Resp3, &mut output);
            let decoded = resp3::decode::streaming::decode(&output).unwrap();
            let Some((DecodedFrame::Complete(frame), consumed)) = decoded else {
                panic!("not one complete frame: {output:?}");
            };
            prop_assert_eq!(consumed, output.len());
            prop_assert!(matches_frame(&reply, &frame), "{:?} became {:?}", reply, frame);
        }

        #[test]
        fn resp2_replies_are_one_whole_frame(reply in any_reply()) {
            let mut output = BytesMut::new();
            encode(&reply, Protocol::Resp2, &mut output);
            let decoded = resp2::decode::decode(&output).unwrap();
            prop_assert_eq!(decoded.map(|(_, consumed)| consumed), Some(output.len()));
        }
    }
}
