//! What Redis 7.4 and later write: DUMP payloads and files written by a Redis 8.2.3, and a running
//! one, if `QUOIN_TEST_LATER_REDIS` names its program.

use std::io::Write;

use crate::files::import;
use crate::importing::{contents, knowledge, large_stream, run};
use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;
use crate::values::{Held, Values};

const SEED: u64 = 12;

/// A packed hash of `a` and `b` that has had a field with an expiry.
const PACKED: &str =
    "1900409452a3030000151500000006008162020201000181610201010001ff0c00d158842bdd33cad2";
/// The same with one.
const PACKED_EXPIRING: &str = "1900409452a30300001d1d00000006008161020101f400409452a30300000981620202010001ff0c\
                               007e68574060828b47";
const TABLE_EXPIRING: &str = "1800409452a303000002000162c002010161c0010c003b78449f38a0832d";
/// A stream with a pending entry and a deleted one.
const STREAM: &str = "1501100000000000000001000000000000000128280000000f000101010101018161020001020100010001\
                      81620204010301010100018163020401ff01020101010201020101670101010100000000000000010000\
                      000000000001454e2a13a201000001010163454e2a13a2010000454e2a13a20100000100000000000000\
                      0100000000000000010c007d7670cd9c8599f2";
/// All of these, a list, a string that expires in 2096 and a library of functions.
const FILE: &str = "524544495330303132fa0972656469732d76657205382e322e33fa0a72656469732d62697473c040fa0563\
                    74696d65c24df4066bfa08757365642d6d656dc298661900fa08616f662d62617365c000f5404923216c75\
                    61206e616d653d6c0a72656469732e72656769737465725f66756e6374696f6e282766272c2066756e6374\
                    696f6e28292072657475726e202766726f6d20662720656e6429fe00fb050112016c01020d0d0000000200\
                    817802817902ff180374616200409452a303000002000162c002010161c001fc00409452a3030000000174\
                    017619047061636b00409452a30300001d1d00000006008161020101f400409452a3030000098162020201\
                    0001ff15017301100000000000000001000000000000000128280000000f00010101010101816102000102\
                    01000100018162020401030101010001816302\
                    0401ff01020101010201020101670101010100000000000000010000000000000001454e2a13a201000001\
                    010163454e2a13a2010000454e2a13a20100000100000000000000\
                    0100000000000000\
                    01ff1b91b652c8f2da9b";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| byte.is_ascii_hexdigit())
        .collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// When two fields of a hash expire, in milliseconds since the epoch.
fn expiries(connection: &mut Connection, name: &str, fields: &str) -> Vec<Option<i64>> {
    let reply = run(
        connection,
        &format!("HPEXPIRETIME {name} FIELDS 2 {fields}"),
    );
    reply.items().unwrap().iter().map(Value::integer).collect()
}

#[test]
fn payloads_of_redis_8_are_restored() {
    let server = Server::start();
    let mut quoin = Connection::open(server.address()).unwrap();
    let mut restore = |name: &str, payload: &str| {
        let payload = bytes(payload);
        let words = [b"RESTORE", name.as_bytes(), b"0", &payload];
        quoin.command(&words).unwrap()
    };
    assert_eq!(restore("hash", PACKED).error(), None);
    assert_eq!(restore("stream", STREAM).error(), None);
    for (name, payload) in [("packed", PACKED_EXPIRING), ("table", TABLE_EXPIRING)] {
        assert_eq!(restore(name, payload).error(), None);
    }
    let fields = vec![
        (b"a".to_vec(), b"1".to_vec()),
        (b"b".to_vec(), b"2".to_vec()),
    ];
    assert_eq!(Held::get(&mut quoin, b"hash"), Some(Held::Hash(fields)));
    assert_eq!(run(&mut quoin, "XLEN stream").integer(), Some(1));
    let pending = run(&mut quoin, "XPENDING stream g - + 10");
    assert_eq!(pending.items().unwrap().len(), 1);
    for name in ["packed", "table"] {
        assert_eq!(
            expiries(&mut quoin, name, "a b"),
            [Some(4_000_000_000_000), Some(-1)]
        );
    }
}

#[test]
fn a_file_of_redis_8_arrives_with_the_expiries_of_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.rdb");
    std::fs::write(&path, bytes(FILE)).unwrap();
    let server = Server::start();
    let (code, text) = import(&path, &server, &[]);
    assert!(code == 0 && text.contains("5 keys copied"), "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(5));
    for name in ["pack", "tab"] {
        assert_eq!(
            expiries(&mut quoin, name, "a b"),
            [Some(4_000_000_000_000), Some(-1)]
        );
    }
    assert_eq!(run(&mut quoin, "FCALL f 0").bytes(), Some(&b"from f"[..]));
    let at = run(&mut quoin, "PEXPIRETIME t").integer();
    assert_eq!(at, Some(4_000_000_000_000));
    let (code, text) = import(&path, &server, &["--replace", "--skip"]);
    assert_eq!(code, 0, "{text}");
}

/// A running Redis of 7.4 or later. Without one, the test says so and ends.
fn start(folder: &std::path::Path) -> Option<Redis> {
    let Some(program) = std::env::var_os("QUOIN_TEST_LATER_REDIS") else {
        // Written past the capture of a passing test's output.
        let _ = writeln!(
            std::io::stderr(),
            "nothing comes from a running Redis 7.4 or later"
        );
        return None;
    };
    let path = folder.to_str().unwrap();
    Some(Redis::start_other(&program, folder, &["--dir", path]).unwrap())
}

#[test]
fn a_later_redis_is_imported_from_as_a_server_and_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(source) = start(folder.path()) else {
        return;
    };
    let mut redis = Connection::open(source.address().unwrap()).unwrap();
    let mut values = Values::new(SEED);
    for number in 0..80 {
        values
            .next()
            .put(&mut redis, format!("key{number}").as_bytes());
    }
    large_stream(&mut redis, "stream");
    for line in [
        "XADD small 1-1 a b",
        "HSET no-longer a 1 b 2",
        "HPEXPIREAT no-longer 4000000000000 FIELDS 1 a",
        "HPERSIST no-longer FIELDS 1 a",
    ] {
        assert_eq!(run(&mut redis, line).error(), None, "{line}");
    }
    let many: Vec<String> = (0..2_000).map(|number| format!("f{number}")).collect();
    for field in &many {
        redis.command(&["HSET", "large", field, "v"]).unwrap();
    }
    for line in [
        "HSET expiring a 1 b 2",
        "HPEXPIREAT expiring 4000000000000 FIELDS 1 b",
        "HPEXPIREAT large 4000000000000 FIELDS 1 f1999",
    ] {
        assert_eq!(run(&mut redis, line).error(), None, "{line}");
    }
    // A payload that is written in parts.
    let long = vec![b'v'; 3_000_000];
    for field in ["a", "b"] {
        redis
            .command(&[b"HSET", b"long", field.as_bytes(), &long])
            .unwrap();
    }
    run(&mut redis, "HPEXPIREAT long 4000000000001 FIELDS 1 a");
    let expected = (contents(&mut redis, 0), knowledge(&mut redis, "stream"));
    assert_eq!(run(&mut redis, "SAVE").error(), None);
    let address = format!("redis://{}", source.address().unwrap());
    for from in [
        address,
        folder.path().join("dump.rdb").display().to_string(),
    ] {
        let server = Server::start();
        let (code, text) = import(from.as_ref(), &server, &[]);
        assert_eq!(code, 0, "{text}");
        let mut quoin = Connection::open(server.address()).unwrap();
        let arrived = (contents(&mut quoin, 0), knowledge(&mut quoin, "stream"));
        assert!(arrived == expected, "{from}");
        for (name, fields, at_ms) in [
            ("expiring", "b a", 4_000_000_000_000),
            ("large", "f1999 f1", 4_000_000_000_000),
            ("long", "a b", 4_000_000_000_001),
            ("no-longer", "a b", -1),
        ] {
            let found = expiries(&mut quoin, name, fields);
            assert_eq!(found, [Some(at_ms), Some(-1)], "{name}");
        }
    }
}
