//! Members that a key of the store cannot hold.

use super::on_both_stores;
use quoin_engine::testing::bulks;
use quoin_resp::reply::Reply;

/// Members that a key of the store cannot hold, in order.
fn long_members() -> Vec<Vec<u8>> {
    let prefix = vec![0xff; 900];
    let mut members = vec![Vec::new(), vec![0], vec![0, 0xff], prefix.clone()];
    for tail in [
        &b"\0"[..],
        b"\0\0",
        b"a",
        b"aa",
        b"b",
        &[b'x'; 200_000],
        b"\xff",
    ] {
        members.push([&prefix[..], tail].concat());
    }
    members
}

#[test]
fn long_members_keep_their_order_and_their_bytes() {
    on_both_stores(|bench| {
        let members = long_members();
        // Each gets a place between existing ones.
        for at in [4, 10, 7, 5, 6, 0, 9, 8, 1, 3, 2] {
            let reply = bench.run_words(&[b"ZADD", b"z", b"7", &members[at]]);
            assert_eq!(reply, Reply::Integer(1));
        }
        let all =
            |members: &[Vec<u8>]| Reply::Array(members.iter().cloned().map(Reply::bulk).collect());
        assert_eq!(bench.run("ZRANGE z 0 -1"), all(&members));
        for (at, member) in members.iter().enumerate() {
            let from = [b"[", &member[..]].concat();
            let behind = [b"(", &member[..]].concat();
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", &from, b"+"]);
            assert_eq!(reply, all(&members[at..]));
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", &behind, b"+"]);
            assert_eq!(reply, all(&members[at + 1..]));
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", b"-", &from]);
            assert_eq!(reply, all(&members[..=at]));
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", b"-", &behind]);
            assert_eq!(reply, all(&members[..at]));
        }
        // A bound that is not a member.
        let bound = [b"(", &[0xff; 900][..], b"ab"].concat();
        let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", &bound, b"+"]);
        assert_eq!(reply, all(&members[8..]));
    });
}

#[test]
fn long_members_change_their_score_and_go_without_a_trace() {
    on_both_stores(|bench| {
        let members = long_members();
        for member in &members {
            bench.run_words(&[b"ZADD", b"z", b"1", member]);
        }
        for member in &members {
            let reply = bench.run_words(&[b"ZADD", b"z", b"CH", b"2", member]);
            assert_eq!(reply, Reply::Integer(1));
            let reply = bench.run_words(&[b"ZSCORE", b"z", member]);
            assert_eq!(reply, Reply::Double(2.0));
        }
        assert_eq!(bench.run("ZRANGESTORE d z 0 -1"), Reply::Integer(11));
        assert_eq!(bench.run("ZRANGE d 0 -1"), bench.run("ZRANGE z 0 -1"));
        for member in &members {
            assert_eq!(bench.run_words(&[b"ZREM", b"z", member]), Reply::Integer(1));
        }
        assert_eq!(bench.run("ZRANGE z 0 -1"), bulks(&[]));
        let Reply::Pairs(popped) = bench.run("ZPOPMAX d 20") else {
            panic!("not pairs");
        };
        let popped: Vec<Reply> = popped.into_iter().map(|(member, _)| member).collect();
        let expected: Vec<Reply> = members.into_iter().rev().map(Reply::bulk).collect();
        assert_eq!(popped, expected);
        assert_eq!(bench.run("ZCARD d"), Reply::Integer(0));
    });
}
