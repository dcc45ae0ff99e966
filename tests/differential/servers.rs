//! The two servers that are compared, and the sessions that both see.

use std::collections::BTreeSet;

use quoin_resp::wire::reply_reader::show_bytes;

use crate::differences::{agree, plain_score, sorted, upper};
use crate::keys::Step;
use crate::redis_server::Redis;
use crate::resp::{Connection, Value, Words};
use crate::server::Server;
use crate::transactions::Queue;

/// One connection for each protocol.
pub const PROTOCOLS: [&str; 2] = ["2", "3"];

/// An iteration that has not ended after this many calls is a failure.
const ITERATION_CALLS_MAX: usize = 5_000;

/// What one connection sends together.
pub struct Batch {
    /// An index into [`PROTOCOLS`].
    pub connection: usize,
    pub steps: Vec<Step>,
}

/// A difference between the servers.
pub struct Mismatch {
    /// Of the step within its batch.
    pub step: usize,
    pub text: String,
}

pub struct Servers {
    quoin: Server,
    redis: Redis,
    sessions: Vec<(Connection, Connection)>,
    /// What each connection has queued since MULTI.
    queues: Vec<Queue>,
}

impl Servers {
    pub fn start() -> std::io::Result<Self> {
        Ok(Self::beside(Redis::start()?))
    }

    /// Quoin, and this.
    pub fn beside(redis: Redis) -> Self {
        Self::beside_with(redis, &[])
    }

    /// Quoin with flags, and this.
    pub fn beside_with(redis: Redis, flags: &[&str]) -> Self {
        Self {
            quoin: Server::start_with(flags),
            redis,
            sessions: Vec::new(),
            queues: Vec::new(),
        }
    }

    /// Version of the Redis compared with.
    pub fn version(&self) -> (u32, u32) {
        self.redis.version()
    }

    /// Empties both servers and opens new connections.
    pub fn reset(&mut self) {
        self.queues = PROTOCOLS.iter().map(|_| Queue::default()).collect();
        self.sessions = PROTOCOLS
            .iter()
            .map(|protocol| {
                let mut ours = Connection::open(self.quoin.address()).unwrap();
                let mut theirs = Connection::open_unix(self.redis.socket()).unwrap();
                for connection in [&mut ours, &mut theirs] {
                    let greeted = connection.command(&["HELLO", protocol]).unwrap();
                    assert_eq!(greeted.error(), None);
                    // Small enough for commands to reach the ends of nodes.
                    for (name, value) in [
                        ("stream-node-max-entries", "4"),
                        ("stream-node-max-bytes", "64"),
                    ] {
                        let set = connection.command(&["CONFIG", "SET", name, value]);
                        assert_eq!(set.unwrap().error(), None);
                    }
                    let flushed = connection.command(&["FLUSHALL"]).unwrap();
                    assert_eq!(flushed.error(), None);
                }
                (ours, theirs)
            })
            .collect();
    }

    /// Another connection to each.
    pub fn others(&self) -> [Connection; 2] {
        [
            Connection::open(self.quoin.address()).unwrap(),
            Connection::open_unix(self.redis.socket()).unwrap(),
        ]
    }

    /// The reply of Quoin, or of Redis.
    pub fn ask(&mut self, ours: bool, words: &[&[u8]]) -> Value {
        let (quoin, redis) = self.sessions.first_mut().unwrap();
        let connection = if ours { quoin } else { redis };
        connection.command(words).unwrap()
    }

    /// Sends a batch to both and compares the replies.
    pub fn compare(&mut self, batch: &Batch) -> Option<Mismatch> {
        let commands: Option<Vec<Words>> = batch.steps.iter().map(as_command).collect();
        match commands {
            Some(commands) => self.compare_pipeline(batch.connection, &commands),
            None => batch.steps.iter().enumerate().find_map(|(at, step)| {
                let mismatch = match step {
                    Step::Command(words) => {
                        self.compare_pipeline(batch.connection, std::slice::from_ref(words))
                    }
                    Step::Iteration(words, cursor_at) => {
                        self.compare_iteration(batch.connection, words, *cursor_at)
                    }
                };
                mismatch.map(|mismatch| Mismatch {
                    step: at,
                    ..mismatch
                })
            }),
        }
    }

    fn compare_pipeline(&mut self, connection: usize, commands: &[Words]) -> Option<Mismatch> {
        let version = self.version();
        let (ours, theirs) = self.sessions.get_mut(connection)?;
        let queue = self.queues.get_mut(connection)?;
        let our_replies = ours.pipeline(commands);
        let their_replies = theirs.pipeline(commands).unwrap();
        let our_replies = match our_replies {
            Ok(replies) => replies,
            Err(error) => {
                return Some(Mismatch {
                    step: commands.len() - 1,
                    text: format!("quoin does not answer: {error}"),
                });
            }
        };
        let replies = our_replies.iter().zip(&their_replies);
        replies
            .zip(commands)
            .position(
                |((ours, theirs), command)| match queue.note(command, theirs) {
                    Some(queued) => !agree_within_exec(&queued, version, ours, theirs),
                    None => !agree(command, version, ours, theirs),
                },
            )
            .map(|step| Mismatch {
                step,
                text: format!(
                    "quoin: {:?}\nredis: {:?}",
                    our_replies[step], their_replies[step]
                ),
            })
    }

    /// Compares the results of whole iterations, whose pages may differ.
    fn compare_iteration(
        &mut self,
        connection: usize,
        words: &Words,
        cursor_at: usize,
    ) -> Option<Mismatch> {
        let (ours, theirs) = self.sessions.get_mut(connection)?;
        let ours = iterate(ours, words, cursor_at);
        let theirs = iterate(theirs, words, cursor_at);
        (ours != theirs).then(|| Mismatch {
            step: 0,
            text: format!("quoin: {ours:?}\nredis: {theirs:?}"),
        })
    }

    /// Compares everything in the servers.
    pub fn compare_contents(&mut self) -> Option<String> {
        let version = self.version();
        let (ours, theirs) = self.sessions.last_mut()?;
        for database in ["0", "1", "2", "15"] {
            let mut run = |words: &[&[u8]]| {
                let ours = ours.command(words).unwrap();
                (ours, theirs.command(words).unwrap())
            };
            run(&[b"SELECT", database.as_bytes()]);
            let (our_keys, their_keys) = run(&[b"KEYS", b"*"]);
            if sorted(&our_keys) != sorted(&their_keys) {
                return Some(format!(
                    "keys of {database}: {our_keys:?}\nredis: {their_keys:?}"
                ));
            }
            for key in their_keys.items()?.iter().filter_map(Value::bytes) {
                let questions: [&[&[u8]]; 15] = [
                    &[b"GET", key],
                    &[b"STRLEN", key],
                    &[b"TYPE", key],
                    &[b"LRANGE", key, b"0", b"-1"],
                    &[b"LLEN", key],
                    &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
                    &[b"ZCARD", key],
                    &[b"HGETALL", key],
                    &[b"SMEMBERS", key],
                    &[b"XRANGE", key, b"-", b"+"],
                    &[b"XINFO", b"STREAM", key],
                    &[b"XINFO", b"GROUPS", key],
                    &[b"XPENDING", key, b"g", b"-", b"+", b"1000"],
                    &[b"XPENDING", key, b"h"],
                    &[b"PEXPIRETIME", key],
                ];
                for words in questions {
                    let (ours, theirs) = run(words);
                    let command: Words = words.iter().map(|word| word.to_vec()).collect();
                    if !agree(&command, version, &ours, &theirs) {
                        let text = show(&command);
                        return Some(format!("{text}\nquoin: {ours:?}\nredis: {theirs:?}"));
                    }
                }
            }
        }
        None
    }
}

fn agree_within_exec(queued: &[Words], version: (u32, u32), ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Aggregate(b'*', Some(ours)), Value::Aggregate(b'*', Some(theirs))) => {
            ours.len() == theirs.len()
                && queued.len() == ours.len()
                && std::iter::zip(ours, theirs)
                    .zip(queued)
                    .all(|((ours, theirs), command)| agree(command, version, ours, theirs))
        }
        _ => ours == theirs,
    }
}

fn as_command(step: &Step) -> Option<Words> {
    match step {
        Step::Command(words) => Some(words.clone()),
        Step::Iteration(..) => None,
    }
}

/// The result of an iteration, or its error.
fn iterate(
    connection: &mut Connection,
    words: &Words,
    cursor_at: usize,
) -> Result<BTreeSet<Vec<Value>>, Value> {
    let mut words = words.clone();
    let mut found = BTreeSet::new();
    for _ in 0..ITERATION_CALLS_MAX {
        let reply = connection.command(&words).unwrap();
        let Some([Value::Blob(b'$', Some(cursor)), items]) = reply.items() else {
            return Err(reply);
        };
        let items = items.items().unwrap_or_default();
        if upper(&words, 0) == "ZSCAN" {
            for pair in items.chunks(2) {
                let score = pair.get(1).map(plain_score);
                found.insert(pair.iter().take(1).cloned().chain(score).collect());
            }
        } else if upper(&words, 0) == "HSCAN" && !has_word(&words, b"NOVALUES") {
            found.extend(items.chunks(2).map(<[Value]>::to_vec));
        } else {
            found.extend(items.iter().map(|item| vec![item.clone()]));
        }
        if cursor == b"0" {
            return Ok(found);
        }
        words[cursor_at].clone_from(cursor);
    }
    panic!("the iteration does not end: {}", show(&words));
}

fn has_word(words: &Words, wanted: &[u8]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(wanted))
}

/// A command in readable form.
pub fn show(words: &Words) -> String {
    let words: Vec<String> = words.iter().map(Vec::as_slice).map(show_bytes).collect();
    words.join(" ")
}
