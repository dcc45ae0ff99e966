//! What is asked of the servers: a row of the table each.

use std::net::SocketAddr;

use crate::resp::{Connection, Words};

pub(crate) const VALUE: &str = "v23456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
/// redis-benchmark puts a number of twelve digits in its place.
pub(crate) const RANDOM: &str = "__rand_int__";
/// Hashes of ten fields that are there.
const JOBS: u64 = 100_000;
const JOB_FIELDS: usize = 10;
/// Lists of the rows with many.
const LISTS: u64 = 100_000;
/// Keys, members or elements of one command that fills a server, and such commands in a pipeline.
const FILL_EACH: u64 = 100;
const FILL_DEPTH: usize = 8;

/// What the random numbers of a row choose from.
#[derive(Clone, Copy)]
enum Among {
    Keys,
    Jobs,
    Lists,
}

/// What a row takes out of a server, which is put in before each run.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Members,
    Scored,
    Queued,
    /// This many at a time.
    Elements(u64),
    OfLists,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    words: &'static str,
    /// What Redis is asked instead, where it does not have the command.
    of_redis: Option<&'static str>,
    among: Among,
    takes: Takes,
}

const fn row(name: &'static str, words: &'static str) -> Row {
    Row {
        name,
        words,
        of_redis: None,
        among: Among::Keys,
        takes: Takes::Nothing,
    }
}

const fn take(name: &'static str, words: &'static str, takes: Takes) -> Row {
    Row {
        takes,
        ..row(name, words)
    }
}

pub(crate) const ROWS: [Row; 24] = [
    row("PING", "PING"),
    row("SET", "SET key:RANDOM VALUE"),
    row("GET", "GET key:RANDOM"),
    row("GET of one key", "GET key:000000000007"),
    row("INCR", "INCR counter:RANDOM"),
    row("HSET", "HSET hash field:RANDOM VALUE"),
    Row {
        among: Among::Jobs,
        ..row("HGETALL of 10", "HGETALL job:RANDOM")
    },
    row("SADD", "SADD set member:RANDOM"),
    take("SPOP", "SPOP popped", Takes::Members),
    row("ZADD", "ZADD scored RANDOM member:RANDOM"),
    take("ZPOPMIN", "ZPOPMIN popped", Takes::Scored),
    row("LPUSH", "LPUSH list VALUE"),
    take("RPOP", "RPOP popped", Takes::Elements(1)),
    row("LRANGE of 100", "LRANGE ranged 0 99"),
    Row {
        among: Among::Lists,
        ..row("LPUSH, 100,000", "LPUSH list:RANDOM VALUE")
    },
    Row {
        among: Among::Lists,
        ..take("RPOP, 100,000", "RPOP list:RANDOM", Takes::OfLists)
    },
    row("LPUSH of 100", "LPUSH list HUNDRED"),
    take("RPOP COUNT 100", "RPOP popped 100", Takes::Elements(100)),
    row("XADD", "XADD stream * field VALUE"),
    Row {
        of_redis: Some("ZADD queue RANDOM member:RANDOM"),
        ..row("PQ.PUSH", "PQ.PUSH queue RANDOM member:RANDOM")
    },
    Row {
        of_redis: Some("ZPOPMIN popped"),
        ..take("PQ.POPMIN", "PQ.POPMIN popped", Takes::Queued)
    },
    row(
        "EVAL of a GET",
        "EVAL return_redis.call('GET',KEYS[1]) 1 key:RANDOM",
    ),
    row(
        "EVAL of ten",
        "EVAL local_v_for_i=1,10_do_v=redis.call('GET',KEYS[1])_end_return_v 1 key:RANDOM",
    ),
    row(
        "MSET of 10",
        "MSET key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE \
         key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE",
    ),
];

impl Row {
    /// The request's words, as redis-benchmark takes them.
    pub(crate) fn words(&self, is_redis: bool) -> Vec<String> {
        let words = self.of_redis.filter(|_| is_redis).unwrap_or(self.words);
        // Words of scripts are joined by underlines here.
        let word = |word: &str| match word {
            "HUNDRED" => vec![VALUE.to_owned(); 100],
            word if word.contains("redis.call") => vec![word.replace('_', " ")],
            word => vec![word.replace("RANDOM", RANDOM).replace("VALUE", VALUE)],
        };
        words.split(' ').flat_map(word).collect()
    }

    /// Below what its random numbers are.
    pub(crate) fn below(&self, keys: u64) -> u64 {
        match self.among {
            Among::Keys => keys,
            Among::Jobs => JOBS,
            Among::Lists => LISTS,
        }
    }

    /// Puts into a server what so many requests take out of it.
    pub(crate) fn fill(&self, address: SocketAddr, requests: u64, is_redis: bool) {
        let member = |number: u64| format!("filled:{number:012}").into_bytes();
        let score = |number: u64| number.to_string().into_bytes();
        let command = |name: &str, key: String| vec![name.into(), key.into_bytes()];
        let popped = || "popped".to_owned();
        // Some more for the lists that a run asks more often than the others.
        let per_list = (requests / LISTS) * 2 + 6;
        let (count, queue) = match self.takes {
            Takes::Nothing => return,
            Takes::Elements(each) => (requests * each, "RPUSH"),
            Takes::OfLists => (LISTS, "RPUSH"),
            Takes::Members => (requests, "SADD"),
            Takes::Queued if !is_redis => (requests, "PQ.PUSH"),
            Takes::Scored | Takes::Queued => (requests, "ZADD"),
        };
        let mut connection = Connection::open(address).unwrap();
        if self.takes == Takes::OfLists {
            let commands = (0..count).map(|number| {
                let mut words: Words = command(queue, format!("list:{number:012}"));
                words.extend((0..per_list).map(|_| VALUE.into()));
                words
            });
            return pipeline(&mut connection, commands);
        }
        connection.command(&["DEL", "popped"]).unwrap();
        let commands = (0..count).step_by(FILL_EACH as usize).map(|from| {
            let mut words: Words = command(queue, popped());
            for number in from..(from + FILL_EACH).min(count) {
                match queue {
                    "RPUSH" => words.push(VALUE.into()),
                    "SADD" => words.push(member(number)),
                    _ => words.extend([score(number % 1_000), member(number)]),
                }
            }
            words
        });
        pipeline(&mut connection, commands);
    }
}

/// Puts in what all rows read.
pub(crate) fn fill(address: SocketAddr, keys: u64) {
    let mut connection = Connection::open(address).unwrap();
    let strings = (0..keys).step_by(FILL_EACH as usize).map(|from| {
        let mut words: Words = vec![b"MSET".to_vec()];
        for number in from..(from + FILL_EACH).min(keys) {
            words.push(format!("key:{number:012}").into());
            words.push(VALUE.into());
        }
        words
    });
    let jobs = (0..JOBS).map(|number| {
        let mut words: Words = vec![b"HSET".to_vec(), format!("job:{number:012}").into()];
        for field in 0..JOB_FIELDS {
            words.push(format!("field{field}").into());
            words.push(VALUE[..20].into());
        }
        words
    });
    let mut ranged: Words = vec![b"RPUSH".to_vec(), b"ranged".to_vec()];
    ranged.extend((0..FILL_EACH * 2).map(|_| VALUE.into()));
    pipeline(&mut connection, strings.chain(jobs).chain([ranged]));
}

fn pipeline(connection: &mut Connection, commands: impl Iterator<Item = Words>) {
    let mut commands = commands.peekable();
    while commands.peek().is_some() {
        let some: Vec<Words> = commands.by_ref().take(FILL_DEPTH).collect();
        for reply in connection.pipeline(&some).unwrap() {
            assert_eq!(reply.error(), None);
        }
    }
}
