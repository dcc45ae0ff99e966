//! The keys that COMMAND GETKEYS finds in random arguments, valid or not, compared with Redis's.

use crate::number_of_environment;
use crate::servers::{Servers, show};
use crate::words::Dice;

/// Questions about each command.
const QUESTIONS: u64 = 400;

/// The commands whose keys have no fixed positions, and some whose keys do.
const COMMANDS: &[&str] = &[
    "BITFIELD",
    "BITFIELD_RO",
    "BITOP",
    "BLMPOP",
    "BLPOP",
    "BZMPOP",
    "BZPOPMIN",
    "COPY",
    "DEL",
    "EVAL",
    "EVALSHA",
    "EVALSHA_RO",
    "EVAL_RO",
    "FCALL",
    "FCALL_RO",
    "GEORADIUS",
    "GEORADIUSBYMEMBER",
    "GEORADIUS_RO",
    "GEOSEARCHSTORE",
    "GET",
    "LMOVE",
    "LMPOP",
    "MEMORY USAGE",
    "MGET",
    "MIGRATE",
    "MSET",
    "OBJECT ENCODING",
    "PFCOUNT",
    "PFMERGE",
    "PING",
    "PUBLISH",
    "RENAME",
    "SET",
    "SINTERCARD",
    "SINTERSTORE",
    "SORT",
    "SORT_RO",
    "SPUBLISH",
    "SSUBSCRIBE",
    "WATCH",
    "XGROUP",
    "XGROUP CREATE",
    "XINFO STREAM",
    "XREAD",
    "XREADGROUP",
    "ZDIFF",
    "ZDIFFSTORE",
    "ZINTER",
    "ZINTERCARD",
    "ZINTERSTORE",
    "ZMPOP",
    "ZUNION",
    "ZUNIONSTORE",
    "NOSUCH",
    "",
];

const WORDS: &[&str] = &[
    "",
    "",
    "",
    "a",
    "b",
    "c",
    "0",
    "1",
    "1",
    "2",
    "2",
    "3",
    "4",
    "-1",
    "+1",
    " 1",
    "2x",
    "01",
    "-0",
    "9",
    "KEYS",
    "keys",
    "STREAMS",
    "streams",
    "STORE",
    "store",
    "STOREDIST",
    "GET",
    "get",
    "SET",
    "INCRBY",
    "OVERFLOW",
    "BY",
    "LIMIT",
    "BLOCK",
    "COUNT",
    "GROUP",
    "NOACK",
    "AUTH",
    "AUTH2",
    "COPY",
    "REPLACE",
    "LEFT",
    "u8",
    "m",
    "$",
];

#[test]
fn the_keys_of_random_arguments_are_those_that_redis_finds() {
    let mut servers = Servers::start().unwrap();
    servers.reset();
    let mut dice = Dice::new(number_of_environment("QUOIN_TEST_SEED").unwrap_or(1));
    let mut with_keys = 0;
    for command in COMMANDS {
        for question in 0..QUESTIONS {
            let subcommand = if question % 2 == 0 {
                "GETKEYS"
            } else {
                "GETKEYSANDFLAGS"
            };
            let mut words: Vec<Vec<u8>> = vec![b"COMMAND".to_vec(), subcommand.into()];
            words.extend(command.split(' ').map(|word| word.as_bytes().to_vec()));
            let count = dice.below(12);
            words.extend((0..count).map(|_| dice.pick(WORDS).into()));
            if words.len() < 4 {
                // Redis 7.0 asks for more.
                continue;
            }
            let asked: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let [ours, theirs] = [true, false].map(|ours| servers.ask(ours, &asked));
            with_keys += u64::from(theirs.error().is_none());
            assert_eq!(ours, theirs, "{}", show(&words));
        }
    }
    assert!(with_keys > QUESTIONS * 10, "{with_keys}");
}
