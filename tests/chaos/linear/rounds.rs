//! Clients that make short histories, one after another, each on new keys.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};

use rand::RngExt;

use super::checker::{OPERATIONS_MAX, Verdict};
use super::commands::{Keys, draw, draw_pipeline, read, read_reply, reads_of_values};
use super::history::{self, Record, show};
use super::model::{Ask, Exactness, KEYS};
use super::values::READS;
use crate::client::{Answer, Client};

/// Clients of a history.
pub const CLIENTS: usize = 5;

/// Commands of a client in a history. Each may become three steps of the search.
const COMMANDS: usize = 8;

/// Commands that are sent at once, now and then.
const PIPELINE_COMMANDS: usize = 3;

const _: () = assert!(CLIENTS * COMMANDS * 3 + KEYS + READS <= OPERATIONS_MAX);

/// Histories in the making.
pub struct Rounds {
    barrier: Barrier,
    goes_on: AtomicBool,
    number: AtomicU32,
    /// What the clients of the current round have done.
    present: Mutex<Vec<Record>>,
    finished: Mutex<Vec<Vec<Record>>>,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            barrier: Barrier::new(CLIENTS),
            goes_on: AtomicBool::new(true),
            number: AtomicU32::new(0),
            present: Mutex::default(),
            finished: Mutex::default(),
        }
    }
}

impl Rounds {
    /// Runs one of the clients until it is told to stop.
    pub fn take_part(
        &self,
        client: &mut Client<'_>,
        number: usize,
        mut goes_on: impl FnMut() -> bool,
    ) {
        loop {
            let is_told_to = goes_on();
            if number == 0 {
                self.goes_on.store(is_told_to, Ordering::Relaxed);
            }
            self.barrier.wait();
            if !self.goes_on.load(Ordering::Relaxed) {
                return;
            }
            let round = self.number.load(Ordering::Relaxed);
            let mut keys = Keys {
                prefix: format!("linear{round}"),
                next_value: 100 * number as u32,
            };
            let mut left = COMMANDS;
            while left > 0 {
                client.wander();
                if left >= PIPELINE_COMMANDS && client.random.random_range(0..3) == 0 {
                    left -= PIPELINE_COMMANDS;
                    self.carry_out_pipeline(client, number, &mut keys);
                } else {
                    left -= 1;
                    let (ask, lines) = draw(&mut client.random, &mut keys);
                    self.carry_out(client, number, &keys, ask, &lines);
                }
                if client.random.random_range(0..4) == 0 {
                    let pause_us = client.random.random_range(0..3_000);
                    std::thread::sleep(std::time::Duration::from_micros(pause_us));
                }
            }
            self.barrier.wait();
            if number == 0 {
                for key in 0..KEYS {
                    let (ask, lines) = read(&keys, key);
                    self.carry_out(client, number, &keys, ask, &lines);
                }
                for (ask, lines) in reads_of_values(&keys) {
                    self.carry_out(client, number, &keys, ask, &lines);
                }
                let round = std::mem::take(&mut *self.present.lock().unwrap());
                self.finished.lock().unwrap().push(round);
                self.number.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn carry_out(
        &self,
        client: &mut Client<'_>,
        number: usize,
        keys: &Keys,
        ask: Ask,
        lines: &[Vec<String>],
    ) {
        let sent = Record::sent(number, client.now(), ask, None);
        let answer = match (&sent.ask, lines) {
            (Ask::Transaction(_), lines) => client.transaction(lines),
            (_, [line]) => client.call(line),
            _ => unreachable!("a command has one line"),
        };
        self.note(client, keys, sent, answer);
    }

    fn carry_out_pipeline(&self, client: &mut Client<'_>, number: usize, keys: &mut Keys) {
        let drawn = draw_pipeline(&mut client.random, keys, PIPELINE_COMMANDS);
        let (asks, lines): (Vec<Ask>, Vec<Vec<String>>) = drawn.into_iter().unzip();
        let (pipeline, invoked) = (client.next_pipeline(), client.now());
        let sent = |ask| Record::sent(number, invoked, ask, Some(pipeline));
        let mut sent = asks.into_iter().map(sent);
        client.pipeline(&lines, |client, answer| {
            let sent = sent.next().expect("one answer to each command");
            self.note(client, keys, sent, answer);
        });
    }

    /// Records the outcome of a command.
    fn note(&self, client: &Client<'_>, keys: &Keys, mut sent: Record, answer: Answer) {
        let answered = client.now();
        match answer {
            Answer::Refused => return,
            Answer::Unknown => {}
            Answer::Reply(value) => {
                sent.reply = read_reply(keys, &sent.ask, &value);
                match sent.reply {
                    Some(_) => sent.ended = Some(answered),
                    None => client.report(format!("{:?} was answered {value:?}", sent.ask)),
                }
            }
        }
        self.present.lock().unwrap().push(sent);
    }

    /// All histories.
    pub fn histories(self) -> Vec<Vec<Record>> {
        self.finished.into_inner().unwrap()
    }
}

/// Checks histories, and returns a summary.
pub fn check(rounds: Rounds, is_cluster: bool) -> Result<String, String> {
    let exactness = if is_cluster {
        Exactness::CLUSTER
    } else {
        Exactness::ALL
    };
    let histories = rounds.histories();
    let (mut undecided, mut troubled) = (0, 0);
    for records in &histories {
        troubled += usize::from(records.iter().any(|record| record.ended.is_none()));
        match history::check(records, exactness) {
            Verdict::Linearizable => {}
            Verdict::Undecided => undecided += 1,
            Verdict::NotLinearizable(longest) => {
                let history = show(records);
                let explained = longest.len();
                return Err(format!(
                    "not linearizable; at most {explained} steps can be explained of\n{history}"
                ));
            }
        }
    }
    Ok(format!(
        "{} histories linearizable, {troubled} with unknown results, {undecided} undecided",
        histories.len() - undecided
    ))
}
