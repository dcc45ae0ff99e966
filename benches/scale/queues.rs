//! The queues of a case: their names, filling and emptying them.

use std::io;
use std::net::SocketAddr;

use futures_util::future::try_join_all;

use crate::ledger::{Ledger, Ticket};
use crate::settings::Load;
use crate::wire::{Client, Piece, walk, write_command};
use crate::workload::Shared;

/// Elements of one command when queues are filled.
const FILL_ELEMENTS: usize = 100;
/// Such commands that a connection sends at once.
const FILL_PIPELINE: usize = 8;
/// Elements of one command when queues are emptied, and queues at once.
const DRAIN_ELEMENTS: &[u8] = b"200";
const DRAIN_QUEUES: usize = 16;

/// The keys of a case.
pub struct Names {
    load: Load,
    queues: Vec<Vec<u8>>,
    times: Vec<Vec<u8>>,
    done: Vec<Vec<u8>>,
}

impl Names {
    pub fn new(load: Load, count: usize) -> Self {
        let names = |kind: &str| {
            let name = |number| format!("{kind}:{number}").into_bytes();
            (0..count).map(name).collect()
        };
        Self {
            load,
            queues: names("queue"),
            times: names("times"),
            done: names("done"),
        }
    }

    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// A queue, counted round and round.
    pub fn queue(&self, number: usize) -> &[u8] {
        &self.queues[number % self.queues.len()]
    }

    /// The sorted set beside a queue.
    pub fn times(&self, number: usize) -> &[u8] {
        &self.times[number % self.times.len()]
    }

    /// The list beside a queue.
    pub fn done(&self, number: usize) -> &[u8] {
        &self.done[number % self.done.len()]
    }

    /// Every key in use, and whether it is a sorted set.
    fn all(&self) -> Vec<(&[u8], bool)> {
        let of = |names, is_set| {
            let names: &[Vec<u8>] = names;
            names.iter().map(move |name| (name.as_slice(), is_set))
        };
        let mut all: Vec<_> = of(&self.queues, self.load.uses_sets()).collect();
        if self.load == Load::Multi {
            all.extend(of(&self.times, true).chain(of(&self.done, false)));
        }
        all
    }
}

/// The score of an element, in digits: in no order.
pub fn score(ticket: Ticket) -> String {
    (ticket.number.wrapping_mul(2_654_435_761) % 1_000_000).to_string()
}

/// Puts so many elements into the queues, the same number into each.
pub async fn fill(
    addresses: &[SocketAddr],
    names: &Names,
    count: usize,
    ledger: &mut Ledger,
    source: u32,
) -> io::Result<()> {
    let of_each = count.div_ceil(names.count());
    let mut commands = vec![Vec::new(); addresses.len().clamp(2, 4)];
    let lanes = commands.len();
    let payload_bytes = ledger.payload_bytes();
    let mut payload = vec![b'.'; payload_bytes];
    let mut left = vec![of_each; if count == 0 { 0 } else { names.count() }];
    let mut turn = 0;
    // All queues grow at once, as they would with clients.
    while left.iter().any(|left| *left > 0) {
        for (queue, left) in left.iter_mut().enumerate() {
            let now = (*left).min(FILL_ELEMENTS);
            if now == 0 {
                continue;
            }
            *left -= now;
            let mut words = vec![b"RPUSH".to_vec(), names.queue(queue).to_vec()];
            if names.load.uses_sets() {
                words[0] = b"ZADD".to_vec();
            }
            for _ in 0..now {
                let ticket = ledger.issue(source, 0);
                ledger.pushed(ticket, true);
                ticket.write(&mut payload);
                if names.load.uses_sets() {
                    words.push(score(ticket).into_bytes());
                }
                words.push(payload.clone());
            }
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let mut command = Vec::new();
            write_command(&mut command, &words);
            commands[turn % lanes].push(command);
            turn += 1;
        }
    }
    let sending = commands.into_iter().enumerate().map(|(lane, commands)| {
        let address = addresses[lane % addresses.len()];
        send_all(address, commands)
    });
    try_join_all(sending).await.map(drop)
}

async fn send_all(address: SocketAddr, commands: Vec<Vec<u8>>) -> io::Result<()> {
    let mut client = Client::connect(address).await?;
    for some in commands.chunks(FILL_PIPELINE) {
        let mut error = None;
        client
            .exchange(&some.concat(), some.len(), |_, reply| {
                if reply.first() == Some(&b'-') {
                    error = Some(String::from_utf8_lossy(reply).into_owned());
                }
            })
            .await?;
        if let Some(error) = error {
            return Err(io::Error::other(format!("filling a queue: {error}")));
        }
    }
    Ok(())
}

/// Takes what is left out of the queues, or counts it where nothing was popped before, and
/// removes the keys. Answers how many were counted.
pub async fn drain(addresses: &[SocketAddr], shared: &Shared) -> io::Result<u64> {
    let mut client = Client::connect(addresses[0]).await?;
    let mut counted = 0;
    let all = shared.names.all();
    for some in all.chunks(DRAIN_QUEUES) {
        match shared.load {
            Load::Push | Load::Zadd => counted += count(&mut client, some).await?,
            _ => empty(&mut client, some, shared).await?,
        }
    }
    let flushed = client.command(&[b"FLUSHALL"]).await?;
    assert_eq!(flushed, b"+OK\r\n");
    Ok(counted)
}

async fn count(client: &mut Client, keys: &[(&[u8], bool)]) -> io::Result<u64> {
    let mut requests = Vec::new();
    for (key, is_set) in keys {
        let command: &[u8] = if *is_set { b"ZCARD" } else { b"LLEN" };
        write_command(&mut requests, &[command, key]);
    }
    let mut sum = 0;
    client
        .exchange(&requests, keys.len(), |_, reply| {
            walk(reply, 0, &mut |piece| {
                if let Piece::Integer(length) = piece {
                    sum += length as u64;
                }
            });
        })
        .await?;
    Ok(sum)
}

async fn empty(client: &mut Client, keys: &[(&[u8], bool)], shared: &Shared) -> io::Result<()> {
    let mut keys = keys.to_vec();
    while !keys.is_empty() {
        // A few queues are asked several times at once.
        let rounds = DRAIN_QUEUES / keys.len();
        let mut requests = Vec::new();
        for (key, is_set) in keys.repeat(rounds) {
            let command: &[u8] = if is_set { b"ZPOPMIN" } else { b"LPOP" };
            write_command(&mut requests, &[command, key, DRAIN_ELEMENTS]);
        }
        let mut is_empty = vec![false; keys.len()];
        client
            .exchange(&requests, keys.len() * rounds, |number, reply| {
                let is_empty = &mut is_empty[number % keys.len()];
                walk(reply, 0, &mut |piece| match piece {
                    Piece::Bulk(payload) => drop(shared.ledger.borrow_mut().popped(payload)),
                    Piece::Nil => *is_empty = true,
                    Piece::Error(line) => {
                        shared.note_error(line);
                        *is_empty = true;
                    }
                    Piece::Integer(_) | Piece::Other => {}
                });
            })
            .await?;
        let mut is_empty = is_empty.into_iter();
        keys.retain(|_| !is_empty.next().unwrap_or(true));
    }
    Ok(())
}
