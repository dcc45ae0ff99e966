//! Clients that make short histories, one after the other, each on keys of its own.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};

use quoin::limits;
use rand::RngExt;

use super::checker::{OPERATIONS_MAX, Verdict};
use super::commands::{Keys, draw, read, read_reply};
use super::history::{self, Record, show};
use super::model::{Ask, Exactness, KEYS};
use crate::client::{Answer, Client};

/// Clients of a history.
pub const CLIENTS: usize = 5;

/// Commands of a client in a history. Each may become three steps of the search.
const COMMANDS: usize = 8;

const _: () = assert!(CLIENTS * COMMANDS * 3 + KEYS <= OPERATIONS_MAX);

/// Histories in the making.
pub struct Rounds {
    barrier: Barrier,
    goes_on: AtomicBool,
    number: AtomicU32,
    /// What the clients of the present round have done.
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
    /// One of the clients, until it is told to stop.
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
            for _ in 0..COMMANDS {
                client.wander();
                let (ask, lines) = draw(&mut client.random, &mut keys);
                self.carry_out(client, number, &keys, ask, &lines);
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
        let invoked = client.now();
        let answer = match (&ask, lines) {
            (Ask::Transaction(_), lines) => client.transaction(lines),
            (_, [line]) => client.call(line),
            _ => unreachable!("a command has one line"),
        };
        let (ended, reply) = match answer {
            Answer::Refused => return,
            Answer::Unknown => (None, None),
            Answer::Reply(value) => {
                let ended = client.now();
                let reply = read_reply(keys, &ask, &value);
                if reply.is_none() {
                    client.report(format!("{lines:?} was answered {value:?}"));
                }
                (reply.is_some().then_some(ended), reply)
            }
        };
        self.present.lock().unwrap().push(Record {
            client: number,
            invoked,
            ended,
            ask,
            reply,
        });
    }

    /// All histories.
    pub fn histories(self) -> Vec<Vec<Record>> {
        self.finished.into_inner().unwrap()
    }
}

/// Checks histories, and tells how many there were.
pub fn check(rounds: Rounds, is_cluster: bool) -> Result<String, String> {
    let exactness = if is_cluster {
        Exactness::CLUSTER
    } else {
        Exactness::ALL
    };
    let histories = rounds.histories();
    let (mut undecided, mut troubled) = (0, 0);
    // What a pop without a reply has taken may be back after that time (docs/semantics.md).
    let returns_after_ns = limits::STAGED_CLAIM_LAPSE_MS.unsigned_abs() * 1_000_000;
    for records in &histories {
        let begun = records.iter().map(|record| record.invoked).min();
        let ended = records.iter().filter_map(|record| record.ended).max();
        let duration_ns = ended.unwrap_or(0).saturating_sub(begun.unwrap_or(0));
        if is_cluster && duration_ns > returns_after_ns {
            undecided += 1;
            continue;
        }
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
