//! What a client does, step by step, and how a server's later content shows it.
//!
//! Every client has its own list and sorted set with consecutive numbers. Each step that touches
//! them moves one end of a range, so their content shows exactly how many of the client's steps the
//! server has. The other steps use keys that all clients share.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::resp::{Value, Words};

pub(crate) const SHARED_LISTS: [&str; 2] = ["shared:list:a", "shared:list:b"];
pub(crate) const SHARED_SET: &str = "shared:set";
/// An own list or set is not let grow beyond about this.
const OWN_LENGTH: u64 = 150;

pub(crate) type Payload = Vec<u8>;

/// The numbers in a client's own keys. Neither is empty once the client has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) list: Range<u64>,
    pub(crate) set: Range<u64>,
}

/// When something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Its number among everything that clients sent and received.
    pub(crate) tick: u64,
    /// The length of the log of what the server did to its files.
    pub(crate) position: u64,
}

/// One command, or one transaction.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The content of the client's own keys after it.
    pub(crate) after: Own,
    /// Payloads that it puts into shared keys.
    pub(crate) pushed: Vec<Payload>,
    /// Maximum number of payloads that it takes from shared keys.
    pub(crate) pops: usize,
    /// The payloads that it took, once the reply came.
    pub(crate) popped: Vec<Payload>,
    pub(crate) sent: Stamp,
    pub(crate) answered: Option<Stamp>,
    /// Whether it will never be known if the killed server executed it.
    pub(crate) is_forgotten: bool,
}

/// A step, and what to send for it.
pub(crate) struct Plan {
    pub(crate) step: Step,
    pub(crate) commands: Vec<Words>,
    is_transaction: bool,
    /// Which of the commands' replies has payloads from a shared key.
    popping: Option<usize>,
    /// The reply that a pop from an own key must have.
    expected: Option<(usize, Vec<Payload>)>,
}

/// The keys of a client.
pub(crate) fn own_keys(client: usize) -> [String; 2] {
    [format!("own:{client}:list"), format!("own:{client}:set")]
}

/// The payload for a number in a client's own keys. Some are long, so that records and rows cover
/// many sectors and pages.
pub(crate) fn own_payload(number: u64) -> Payload {
    let padding = match number {
        _ if number % 211 == 5 => 40_000,
        _ if number % 23 == 7 => 3_000,
        _ => 10,
    };
    format!("{number}:{}", "x".repeat(padding)).into_bytes()
}

/// The number of one of a client's own payloads, if it is complete.
pub(crate) fn own_number(payload: &[u8]) -> Option<u64> {
    let digits = payload.split(|byte| *byte == b':').next()?;
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (own_payload(number) == payload).then_some(number)
}

/// Generates the steps of one client.
pub(crate) struct Planner {
    pub(crate) client: usize,
    /// Part of names, so that no two rounds push the same.
    pub(crate) round: u64,
    pub(crate) own: Own,
    pub(crate) payloads: u64,
    /// Whether some payloads are very long.
    pub(crate) is_large: bool,
    /// Whether shared keys hold so much that the client should pop more.
    pub(crate) has_enough: bool,
    pub(crate) random: StdRng,
}

fn words(line: &str) -> Words {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

impl Planner {
    pub(crate) fn plan(&mut self) -> Plan {
        let mut plan = Plan {
            step: Step {
                after: Own::default(),
                pushed: Vec::new(),
                pops: 0,
                popped: Vec::new(),
                sent: Stamp::default(),
                answered: None,
                is_forgotten: false,
            },
            commands: Vec::new(),
            is_transaction: false,
            popping: None,
            expected: None,
        };
        match self
            .random
            .random_range(0..if self.has_enough { 25 } else { 20 })
        {
            // The first must fill both.
            _ if self.own.list.is_empty() || self.own.set.is_empty() => {
                plan.is_transaction = true;
                self.push_own(&mut plan);
                self.add_own(&mut plan);
            }
            0..3 => self.push_own(&mut plan),
            3..5 => self.pop_own(&mut plan),
            5..7 => self.add_own(&mut plan),
            7..9 => self.take_own(&mut plan),
            9..11 => {
                plan.is_transaction = true;
                self.push_own(&mut plan);
                self.push_shared(&mut plan);
                self.add_own(&mut plan);
                self.pop_shared(&mut plan);
            }
            11 => {
                plan.is_transaction = true;
                let [list, _] = own_keys(self.client);
                plan.commands.push(words(&format!("DEL {list}")));
                self.own.list.start = self.own.list.end;
                self.push_own(&mut plan);
                self.take_own(&mut plan);
            }
            12..15 => self.push_shared(&mut plan),
            15 | 16 => self.add_shared(&mut plan),
            17 => self.move_shared(&mut plan),
            _ => self.pop_shared(&mut plan),
        }
        if plan.is_transaction {
            plan.commands.insert(0, words("MULTI"));
            plan.commands.push(words("EXEC"));
        }
        plan.step.after = self.own.clone();
        plan
    }

    fn push_own(&mut self, plan: &mut Plan) {
        let [list, _] = own_keys(self.client);
        let mut command = words(&format!("RPUSH {list}"));
        for _ in 0..self.random.random_range(1..4) {
            command.push(own_payload(self.own.list.end));
            self.own.list.end += 1;
        }
        plan.commands.push(command);
    }

    fn add_own(&mut self, plan: &mut Plan) {
        let [_, set] = own_keys(self.client);
        let mut command = words(&format!("ZADD {set}"));
        for _ in 0..self.random.random_range(1..4) {
            command.push(self.own.set.end.to_string().into_bytes());
            // Shorter than a key of the store may be.
            command.push(format!("{:08}", self.own.set.end).into_bytes());
            self.own.set.end += 1;
        }
        plan.commands.push(command);
    }

    /// How many to take from an own key: all but one, or a few if there are many.
    fn take(&mut self, range: &Range<u64>) -> u64 {
        let length = range.end - range.start;
        let count = self.random.random_range(1..4).min(length - 1);
        count.max(length.saturating_sub(OWN_LENGTH))
    }

    fn pop_own(&mut self, plan: &mut Plan) {
        let count = self.take(&self.own.list.clone());
        if count == 0 {
            return self.push_own(plan);
        }
        let [list, _] = own_keys(self.client);
        let begin = self.own.list.start;
        self.own.list.start += count;
        let popped = (begin..begin + count).map(own_payload).collect();
        plan.expected = Some((plan.commands.len(), popped));
        plan.commands.push(words(&format!("LPOP {list} {count}")));
    }

    fn take_own(&mut self, plan: &mut Plan) {
        let count = self.take(&self.own.set.clone());
        if count == 0 {
            return self.add_own(plan);
        }
        let [_, set] = own_keys(self.client);
        let begin = self.own.set.start;
        self.own.set.start += count;
        let popped = (begin..begin + count).flat_map(|number| {
            [
                format!("{number:08}").into_bytes(),
                number.to_string().into_bytes(),
            ]
        });
        plan.expected = Some((plan.commands.len(), popped.collect()));
        plan.commands.push(words(&format!("ZPOPMIN {set} {count}")));
    }

    fn new_payload(&mut self) -> Payload {
        self.payloads += 1;
        let padding = match self.random.random_range(0..200) {
            0..60 if self.is_large => 250_000,
            0 => 30_000,
            1..8 => 1_500,
            _ => 0,
        };
        let (round, client, number) = (self.round, self.client, self.payloads);
        format!("payload-{round}-{client}-{number}-{}", "y".repeat(padding)).into_bytes()
    }

    fn shared_list(&mut self) -> &'static str {
        SHARED_LISTS[self.random.random_range(0..SHARED_LISTS.len())]
    }

    fn push_shared(&mut self, plan: &mut Plan) {
        let end = if self.random.random() {
            "LPUSH"
        } else {
            "RPUSH"
        };
        let mut command = words(&format!("{end} {}", self.shared_list()));
        for _ in 0..self.random.random_range(1..4) {
            let payload = self.new_payload();
            command.push(payload.clone());
            plan.step.pushed.push(payload);
        }
        plan.commands.push(command);
    }

    fn add_shared(&mut self, plan: &mut Plan) {
        let mut command = words(&format!("ZADD {SHARED_SET}"));
        for _ in 0..self.random.random_range(1..3) {
            let score: i32 = self.random.random_range(-50..50);
            let mut payload = self.new_payload();
            payload.truncate(1_000);
            command.push(score.to_string().into_bytes());
            command.push(payload.clone());
            plan.step.pushed.push(payload);
        }
        plan.commands.push(command);
    }

    fn move_shared(&mut self, plan: &mut Plan) {
        let (from, to) = (self.shared_list(), self.shared_list());
        let end = if self.random.random() {
            "LEFT"
        } else {
            "RIGHT"
        };
        plan.commands
            .push(words(&format!("LMOVE {from} {to} {end} RIGHT")));
    }

    fn pop_shared(&mut self, plan: &mut Plan) {
        let count = self.random.random_range(1..5);
        let command = match self.random.random_range(0..5) {
            0 => format!("ZPOPMIN {SHARED_SET} {count}"),
            1 => format!("ZPOPMAX {SHARED_SET} {count}"),
            2 => format!("RPOP {} {count}", self.shared_list()),
            _ => format!("LPOP {} {count}", self.shared_list()),
        };
        plan.popping = Some(plan.commands.len());
        plan.step.pops = count;
        plan.commands.push(words(&command));
    }
}

impl Plan {
    /// Records the replies to the step's commands. The error says what is wrong with them.
    pub(crate) fn answered(&mut self, mut replies: Vec<Value>, at: Stamp) -> Result<(), String> {
        if let Some(error) = replies.iter().find_map(Value::error) {
            return Err(format!("answered with {}", error.escape_ascii()));
        }
        if self.is_transaction {
            let executed = replies
                .pop()
                .and_then(|reply| reply.items().map(<[_]>::to_vec));
            replies = executed.ok_or("EXEC answered no array")?;
        }
        let payloads = |index: usize| -> Vec<Payload> {
            let items = replies.get(index).and_then(Value::items);
            let items = items.unwrap_or_default().iter();
            items
                .filter_map(|item| item.bytes().map(<[u8]>::to_vec))
                .collect()
        };
        if let Some((index, expected)) = &self.expected {
            // A transaction's replies are numbered after MULTI.
            let found = payloads(*index);
            if found != *expected {
                return Err(format!(
                    "popped {} of its own, not {}",
                    found.len(),
                    expected.len()
                ));
            }
        }
        if let Some(index) = self.popping {
            let found = payloads(index).into_iter();
            self.step.popped = found.filter(|item| item.starts_with(b"payload-")).collect();
        }
        self.step.answered = Some(at);
        Ok(())
    }
}
