//! A client that knows of each command whether it was carried out, was not, or may have been.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::fleet::Fleet;
use crate::history::Moment;
use crate::resp::{self, Connection, Value, Words};
use crate::run::Shared;

/// How long most clients wait for a reply, and the longest that a reply may take once nothing is
/// broken: FoundationDB's own transaction limits, plus the time that Quoin needs to learn a result.
pub const HANG: Duration = Duration::from_secs(25);

/// An error that depends on the data.
pub const NO_SUCH_KEY: &[u8] = b"ERR no such key";

/// The outcome of a command.
pub enum Answer {
    /// It was carried out.
    Reply(Value),
    /// It was not carried out, and will not be.
    Refused,
    /// The connection broke before the reply, or the server does not know either.
    Unknown,
}

/// A client with one connection at a time, to any server.
pub struct Client<'run> {
    fleet: &'run Fleet,
    shared: &'run Shared,
    connection: Option<Connection>,
    pub random: StdRng,
}

impl<'run> Client<'run> {
    pub fn new(fleet: &'run Fleet, shared: &'run Shared, random: StdRng) -> Self {
        Self {
            fleet,
            shared,
            connection: None,
            random,
        }
    }

    pub fn now(&self) -> Moment {
        self.shared.now()
    }

    /// Reports behaviour that no server may ever show.
    pub fn report(&self, wrong: String) {
        self.shared.report(wrong);
    }

    /// Occasionally moves to another server. Must not be called between commands that belong on one
    /// connection.
    pub fn wander(&mut self) {
        if self.random.random_range(0..200) == 0 {
            self.connection = None;
        }
    }

    /// Sends a command and reads its reply.
    pub fn call(&mut self, words: &[String]) -> Answer {
        match self.conversation(&[words.to_vec()]) {
            Answer::Reply(Value::Aggregate(_, Some(mut replies))) => {
                replies.pop().map_or(Answer::Unknown, Answer::Reply)
            }
            other => other,
        }
    }

    /// A number for the next pipeline.
    pub fn next_pipeline(&self) -> u64 {
        self.shared.pipelines.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends commands together and passes on the outcome of each as soon as it is known.
    pub fn pipeline(&mut self, commands: &[Vec<String>], mut on_answer: impl FnMut(&Self, Answer)) {
        let invoked = self.shared.now();
        let bytes: Vec<u8> = commands
            .iter()
            .flat_map(|words| resp::encode(words))
            .collect();
        if !self.is_connected() {
            commands
                .iter()
                .for_each(|_| on_answer(self, Answer::Refused));
            return;
        }
        let mut is_well = match &mut self.connection {
            Some(connection) => connection.send_raw(&bytes).is_ok(),
            None => false,
        };
        for words in commands {
            let reply = match &mut self.connection {
                Some(connection) if is_well => connection.read(),
                _ => Err(ErrorKind::BrokenPipe.into()),
            };
            let words: Words = words.iter().map(|word| word.clone().into_bytes()).collect();
            let answer = match reply {
                Ok(reply) => self.judge(vec![reply], &[words]),
                Err(error) => {
                    is_well = false;
                    self.fail(&error, invoked, &[words])
                }
            };
            let answer = match answer {
                Answer::Reply(Value::Aggregate(_, Some(mut replies))) => {
                    replies.pop().map_or(Answer::Unknown, Answer::Reply)
                }
                other => other,
            };
            on_answer(self, answer);
        }
    }

    /// Sends MULTI, the commands and EXEC at once. The reply is that of EXEC.
    pub fn transaction(&mut self, commands: &[Vec<String>]) -> Answer {
        let mut all = vec![vec!["MULTI".to_owned()]];
        all.extend(commands.iter().cloned());
        all.push(vec!["EXEC".to_owned()]);
        match self.conversation(&all) {
            Answer::Reply(Value::Aggregate(_, Some(mut replies))) => {
                let reply = replies.pop();
                let errors = reply.as_ref().and_then(Value::items).unwrap_or_default();
                let is_wrong =
                    |reply: &&Value| reply.error().is_some_and(|line| line != NO_SUCH_KEY);
                if let Some(error) = errors.iter().find(is_wrong) {
                    self.report(format!("within EXEC of {commands:?}: {error:?}"));
                }
                reply.map_or(Answer::Unknown, Answer::Reply)
            }
            other => other,
        }
    }

    /// Sends commands together and reads all replies. The last one determines the outcome.
    fn conversation(&mut self, commands: &[Vec<String>]) -> Answer {
        if !self.is_connected() {
            return Answer::Refused;
        }
        let Some(connection) = &mut self.connection else {
            return Answer::Refused;
        };
        let invoked = self.shared.now();
        let commands: Vec<Words> = commands
            .iter()
            .map(|words| words.iter().map(|word| word.clone().into_bytes()).collect())
            .collect();
        let replies = match connection.pipeline(&commands) {
            Ok(replies) => replies,
            Err(error) => return self.fail(&error, invoked, &commands),
        };
        self.judge(replies, &commands)
    }

    /// Connects if there is no connection.
    fn is_connected(&mut self) -> bool {
        if self.connection.is_none() {
            self.connect();
        }
        if self.connection.is_none() {
            // Long enough not to keep the processor busy while a server is away.
            std::thread::sleep(Duration::from_millis(20));
        }
        self.connection.is_some()
    }

    fn fail(&mut self, error: &std::io::Error, invoked: Moment, commands: &[Words]) -> Answer {
        self.connection = None;
        if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) {
            self.check_for_hang(invoked, commands);
        } else if error.kind() == ErrorKind::InvalidData {
            self.report(format!("not a reply to {commands:?}: {error}"));
        }
        let statistics = &self.shared.statistics;
        statistics.unknown.fetch_add(1, Ordering::Relaxed);
        Answer::Unknown
    }

    fn judge(&mut self, replies: Vec<Value>, commands: &[Words]) -> Answer {
        let statistics = &self.shared.statistics;
        let error = replies.last().and_then(Value::error);
        let Some(error) = error.filter(|line| *line != NO_SUCH_KEY) else {
            statistics.answered.fetch_add(1, Ordering::Relaxed);
            return Answer::Reply(Value::Aggregate(b'*', Some(replies)));
        };
        let line = String::from_utf8_lossy(error).into_owned();
        let is_moved = line.starts_with("MOVED ");
        self.shared
            .count_error(if is_moved { "MOVED" } else { &line });
        match line.split(' ').next() {
            Some("UNKNOWN") => {
                statistics.unknown.fetch_add(1, Ordering::Relaxed);
                Answer::Unknown
            }
            Some("TRYAGAIN" | "CLUSTERDOWN" | "MISCONF") => {
                statistics.refused.fetch_add(1, Ordering::Relaxed);
                // Clients with a library back off too.
                std::thread::sleep(Duration::from_millis(20));
                Answer::Refused
            }
            // A node of a cluster has sent the client elsewhere. It is served if it insists.
            Some("MOVED") => {
                statistics.refused.fetch_add(1, Ordering::Relaxed);
                Answer::Refused
            }
            _ => {
                self.report(format!("{commands:?} was answered {line:?}"));
                Answer::Unknown
            }
        }
    }

    fn connect(&mut self) {
        // Some clients lose patience while a server is paused.
        let patience = match self.random.random_range(0..6) {
            0 => Duration::from_millis(self.random.random_range(300..3_000)),
            _ => HANG,
        };
        let door = self.fleet.a_door(&mut self.random);
        // The proxy accepts connections to servers that are away too.
        let greeted = Connection::open_with_timeout(door, patience).and_then(|mut connection| {
            connection.command(&["PING"])?;
            Ok(connection)
        });
        self.connection = greeted.ok();
    }

    fn check_for_hang(&self, invoked: Moment, commands: &[Words]) {
        let Some(healed) = self.shared.healed() else {
            return;
        };
        let waited = self.shared.now().saturating_sub(invoked.max(healed));
        if u128::from(waited) + 1_000_000 >= HANG.as_nanos() {
            let words: Vec<String> = commands
                .iter()
                .flatten()
                .map(|w| quoin_resp::wire::reply_reader::show_bytes(w))
                .collect();
            self.report(format!(
                "no reply within {HANG:?} once all was well: {words:?}"
            ));
        }
    }
}
