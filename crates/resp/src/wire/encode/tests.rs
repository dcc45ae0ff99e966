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

/// What a RESP3 client reads, without maps, whose order the decoder's frames do not keep.
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
