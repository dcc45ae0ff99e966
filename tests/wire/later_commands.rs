//! Commands of later versions of Redis, with a client library in both protocols.

use crate::server::Server;

fn ask<T: redis::FromRedisValue>(client: &mut redis::Connection, line: &str) -> T {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query(client).unwrap()
}

#[test]
fn unions_and_differences_are_counted() {
    let server = Server::start();
    for protocol in [2, 3] {
        let mut client = server.redis(protocol);
        ask::<()>(&mut client, "SADD sports football tennis golf");
        ask::<()>(&mut client, "SADD news politics football");
        for (line, count) in [
            ("SUNIONCARD 2 sports news", 4),
            ("SUNIONCARD 2 sports news LIMIT 3", 3),
            ("SUNIONCARD 2 sports news APPROX", 4),
            ("SDIFFCARD 2 sports news", 2),
            ("SDIFFCARD 2 sports news LIMIT 1", 1),
        ] {
            assert_eq!(ask::<i64>(&mut client, line), count, "{line}");
        }
        let keys: Vec<String> = ask(&mut client, "COMMAND GETKEYS SUNIONCARD 2 a b LIMIT 1");
        assert_eq!(keys, ["a", "b"]);
    }
}

#[test]
fn locks_and_several_strings_are_set() {
    let server = Server::start();
    for protocol in [2, 3] {
        let mut client = server.redis(protocol);
        assert_eq!(ask::<i64>(&mut client, "MSETEX 2 a 1 b hello EX 100"), 1);
        assert_eq!(ask::<i64>(&mut client, "MSETEX 2 b 1 c 2 NX"), 0);
        let digest: String = ask(&mut client, "DIGEST b");
        assert_eq!(digest, "9555e8555c62dcfd");
        let set: Option<String> = ask(&mut client, "SET b mine IFEQ other");
        assert_eq!(set, None);
        let set: Option<String> = ask(&mut client, &format!("SET b mine IFDEQ {digest}"));
        assert_eq!(set.as_deref(), Some("OK"));
        assert_eq!(ask::<i64>(&mut client, "DELEX b IFEQ other"), 0);
        assert_eq!(ask::<i64>(&mut client, "DELEX b IFEQ mine"), 1);
        assert_eq!(ask::<i64>(&mut client, "DELIFEQ a 1"), 1);
    }
}
