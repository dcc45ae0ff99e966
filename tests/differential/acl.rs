//! Random rules of users and their effect, compared with Redis's.

use std::collections::BTreeSet;
use std::io::Write;

use crate::number_of_environment;
use crate::servers::Servers;
use crate::words::Dice;

/// Users that are compared.
const USERS: u64 = 250;

const COMMANDS: &[&str] = &[
    "get",
    "set",
    "GETRANGE",
    "lpush",
    "lpop",
    "blpop",
    "config|get",
    "config|set",
    "config",
    "client",
    "client|id",
    "client|kill",
    "eval",
    "publish",
    "subscribe",
    "xread",
    "zunionstore",
    "sort",
    "auth",
    "acl",
    "acl|list",
    "nosuch",
    "config|nosuch",
    "get|",
    "config|",
    "",
    "config|get|x",
];

const CATEGORIES: &[&str] = &[
    "read",
    "WRITE",
    "list",
    "string",
    "keyspace",
    "slow",
    "fast",
    "admin",
    "dangerous",
    "connection",
    "scripting",
    "blocking",
    "pubsub",
    "sortedset",
    "nosuch",
    "all",
];

const RULES: &[&str] = &[
    "on",
    "off",
    "ON",
    "nopass",
    "resetpass",
    ">p",
    ">q",
    "<p",
    "<q",
    "!abc",
    "#abc",
    "#148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940",
    "reset",
    "clearselectors",
    "allkeys",
    "resetkeys",
    "~*",
    "~a*",
    "~b",
    "%R~a*",
    "%W~a*",
    "%RW~c",
    "%r~b",
    "%w~b",
    "%X~a",
    "%~a",
    "%RR~a",
    "~a b",
    "allchannels",
    "resetchannels",
    "&*",
    "&a*",
    "&b",
    "&a b",
    "allcommands",
    "nocommands",
    "+@all",
    "-@all",
    "+select|0",
    "+set|a",
    "-select|0",
    "(~a* +get)",
    "(%W~b +@write)",
    "(+@all -set ~c)",
    "(&a* +publish)",
    "()",
    "(bad)",
    "(~a",
    "+get)",
    "bad",
    "sanitize-payload",
    "skip-sanitize-payload",
];

const CALLS: &[&str] = &[
    "GET a",
    "GET b",
    "SET a 1",
    "SET b 1",
    "SET a 1 GET",
    "SET c 1 XX",
    "LPUSH a 1",
    "LPOP a",
    "EXISTS a",
    "DEL a b",
    "MGET a b c",
    "MSET a 1 b 2",
    "COPY a b",
    "RENAME a c",
    "BITFIELD a GET u8 0",
    "BITFIELD a SET u8 0 1",
    "SORT a STORE b",
    "SORT a BY x*",
    "ZUNIONSTORE c 2 a b",
    "ZUNIONSTORE c 9 a b",
    "EVAL x 1 a",
    "EVAL x 0",
    "EVAL_RO x 1 b",
    "XREAD STREAMS a b 0 0",
    "XADD a * f v",
    "MIGRATE h 1 a 0 9",
    "MIGRATE h 1 '' 0 9",
    "PUBLISH a m",
    "PUBLISH b m",
    "SPUBLISH ab m",
    "SUBSCRIBE a b",
    "PSUBSCRIBE a*",
    "PSUBSCRIBE ab",
    "UNSUBSCRIBE x",
    "CONFIG GET x",
    "CONFIG SET x y",
    "CLIENT ID",
    "CLIENT KILL a",
    "SELECT 0",
    "SELECT 1",
    "AUTH x",
    "PING",
    "ACL LIST",
    "ACL WHOAMI",
    "KEYS *",
    "SCAN 0",
    "RANDOMKEY",
    "FLUSHALL",
    "BLPOP a b 0",
    "BLMOVE a b LEFT LEFT 0",
    "OBJECT ENCODING a",
    "TOUCH a",
    "PFCOUNT a b",
    "PFMERGE a b",
    "GEOSEARCHSTORE a b x",
    "GET",
    "NOSUCH",
];

fn rule(dice: &mut Dice) -> String {
    let sign = if dice.one_in(3) { '-' } else { '+' };
    match dice.below(6) {
        0 | 1 => format!("{sign}{}", dice.pick(COMMANDS)),
        2 => format!("{sign}@{}", dice.pick(CATEGORIES)),
        _ => dice.pick(RULES).to_owned(),
    }
}

fn words(line: &str) -> Vec<&[u8]> {
    let words = line.split(' ');
    words
        .map(|word| if word == "''" { b"" } else { word.as_bytes() })
        .collect()
}

/// The part of a denial that both versions have: Redis 7.0 does not name the user in DRYRUN.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.replace("This user has", "User u has")
}

#[test]
fn random_rules_mean_what_they_mean_in_redis() {
    let mut servers = match Servers::start() {
        Ok(servers) => servers,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let first = number_of_environment("QUOIN_TEST_SEED").unwrap_or(1);
    servers.reset();
    for seed in first..first + USERS {
        let mut dice = Dice::new(seed);
        let mut given = Vec::new();
        servers.ask(true, &[b"ACL", b"DELUSER", b"u"]);
        servers.ask(false, &[b"ACL", b"DELUSER", b"u"]);
        for _ in 0..8 {
            let rules: Vec<String> = (0..=dice.below(4)).map(|_| rule(&mut dice)).collect();
            let mut command: Vec<&[u8]> = vec![b"ACL", b"SETUSER", b"u"];
            command.extend(rules.iter().map(|rule| rule.as_bytes()));
            let [ours, theirs] = [true, false].map(|is_ours| servers.ask(is_ours, &command));
            given.push(rules.join(" "));
            assert_eq!(ours, theirs, "seed {seed}: {given:?}");
        }
        for line in CALLS {
            let mut command: Vec<&[u8]> = vec![b"ACL", b"DRYRUN", b"u"];
            command.extend(words(line));
            let answers = [true, false].map(|is_ours| {
                let answer = servers.ask(is_ours, &command);
                let text = answer.bytes().or(answer.status()).or(answer.error());
                text.map(plain)
            });
            assert_eq!(
                answers[0], answers[1],
                "seed {seed}: {line} after {given:?}"
            );
        }
        let shown = [true, false].map(|is_ours| {
            let shown = servers.ask(is_ours, &[b"ACL", b"GETUSER", b"u"]);
            let fields = shown.items().unwrap_or_default();
            let field = |name: &str| {
                let at = fields
                    .iter()
                    .position(|one| one.bytes() == Some(name.as_bytes()));
                at.and_then(|at| fields.get(at + 1)).cloned()
            };
            ["passwords", "keys", "channels"].map(field)
        });
        assert_eq!(shown[0], shown[1], "seed {seed}: {given:?}");
    }
}

#[test]
fn commands_have_the_categories_of_redis() {
    let Ok(mut servers) = Servers::start() else {
        return;
    };
    servers.reset();
    let mut ask = |words: &[&[u8]]| {
        [true, false].map(|is_ours| {
            let names = servers.ask(is_ours, words).into_strings().unwrap();
            names.into_iter().collect::<BTreeSet<Vec<u8>>>()
        })
    };
    let [known, _] = ask(&[b"COMMAND", b"LIST"]);
    let [mut ours, categories] = ask(&[b"ACL", b"CAT"]);
    for own in ["pqueue", "taskqueue"] {
        assert!(ours.remove(own.as_bytes()), "{own}");
    }
    assert_eq!(ours, categories);
    let [_, theirs_known] = ask(&[b"COMMAND", b"LIST"]);
    for category in categories {
        let [ours, theirs] = ask(&[b"ACL", b"CAT", &category]);
        let ours: BTreeSet<_> = ours.intersection(&theirs_known).collect();
        let theirs: BTreeSet<_> = theirs.intersection(&known).collect();
        let category = String::from_utf8_lossy(&category).into_owned();
        let both = |set: &BTreeSet<&Vec<u8>>| {
            let names = set
                .iter()
                .map(|name| String::from_utf8_lossy(name).into_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(both(&ours), both(&theirs), "{category}");
    }
}
