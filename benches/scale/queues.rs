//! The queues of a case: their names, filling and emptying them.

use std::io;
use std::net::SocketAddr;

use futures_util::future::try_join_all;

use crate::ledger::{Ledger, Ticket};
use crate::settings::{Kind, Load};
use crate::wire::{Client, Piece, walk, write_command};
use crate::workload::Shared;

/// Elements pushed by one command when queues are filled.
const FILL_ELEMENTS: usize = 100;
/// Elements that a connection sends at once, in some commands.
const FILL_PIPELINE_ELEMENTS: usize = 800;
/// The group of each stream.
pub const GROUP: &[u8] = b"group";
/// Elements popped by one command when queues are emptied, and queues at once.
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

    /// The sorted set that belongs to a queue.
    pub fn times(&self, number: usize) -> &[u8] {
        &self.times[number % self.times.len()]
    }

    /// The list that belongs to a queue.
    pub fn done(&self, number: usize) -> &[u8] {
        &self.done[number % self.done.len()]
    }

    /// Every key in use, and its type.
    fn all(&self) -> Vec<(&[u8], Kind)> {
        let of = |names, kind| {
            let names: &[Vec<u8>] = names;
            names.iter().map(move |name| (name.as_slice(), kind))
        };
        let mut all: Vec<_> = of(&self.queues, self.load.kind()).collect();
        if self.load == Load::Multi {
            all.extend(of(&self.times, Kind::SortedSet).chain(of(&self.done, Kind::List)));
        }
        all
    }
}

/// Appends a command that reads `count` new entries of a stream for a consumer.
pub fn write_group_read(requests: &mut Vec<u8>, key: &[u8], consumer: &[u8], count: &[u8]) {
    let words: [&[u8]; 9] = [
        b"XREADGROUP",
        b"GROUP",
        GROUP,
        consumer,
        b"COUNT",
        count,
        b"STREAMS",
        key,
        b">",
    ];
    write_command(requests, &words);
}

/// The score of an element, in digits: in no order.
pub fn score(ticket: Ticket) -> String {
    (ticket.number.wrapping_mul(2_654_435_761) % 1_000_000).to_string()
}

/// Puts `count` elements into the queues, the same number into each.
pub async fn fill(
    addresses: &[SocketAddr],
    names: &Names,
    count: usize,
    ledger: &mut Ledger,
    source: u32,
) -> io::Result<()> {
    let of_each = count.div_ceil(names.count());
    let kind = names.load.kind();
    if kind == Kind::Stream {
        make_groups(addresses, names).await?;
    }
    let of_command = match kind {
        Kind::Stream => 1,
        Kind::List | Kind::SortedSet => FILL_ELEMENTS,
    };
    let mut commands = vec![Vec::new(); addresses.len().clamp(2, 4)];
    let lanes = commands.len();
    let payload_bytes = ledger.payload_bytes();
    let mut payload = vec![b'.'; payload_bytes];
    let mut left = vec![of_each; if count == 0 { 0 } else { names.count() }];
    let mut turn = 0;
    // All queues grow together, as they would with clients.
    while left.iter().any(|left| *left > 0) {
        for (queue, left) in left.iter_mut().enumerate() {
            let now = (*left).min(of_command);
            if now == 0 {
                continue;
            }
            *left -= now;
            let command: &[u8] = match kind {
                Kind::List => b"RPUSH",
                Kind::SortedSet => b"ZADD",
                Kind::Stream => b"XADD",
            };
            let mut words = vec![command.to_vec(), names.queue(queue).to_vec()];
            for _ in 0..now {
                let ticket = ledger.issue(source, 0);
                ledger.pushed(ticket, true);
                ticket.write(&mut payload);
                match kind {
                    Kind::List => {}
                    Kind::SortedSet => words.push(score(ticket).into_bytes()),
                    Kind::Stream => words.extend([b"*".to_vec(), b"f".to_vec()]),
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
        send_all(address, commands, FILL_PIPELINE_ELEMENTS / of_command)
    });
    try_join_all(sending).await.map(drop)
}

async fn make_groups(addresses: &[SocketAddr], names: &Names) -> io::Result<()> {
    let make = names.queues.iter().map(|name| {
        let mut command = Vec::new();
        let words: [&[u8]; 6] = [b"XGROUP", b"CREATE", name, GROUP, b"0", b"MKSTREAM"];
        write_command(&mut command, &words);
        command
    });
    send_all(addresses[0], make.collect(), FILL_PIPELINE_ELEMENTS).await
}

async fn send_all(address: SocketAddr, commands: Vec<Vec<u8>>, pipeline: usize) -> io::Result<()> {
    let mut client = Client::connect(address).await?;
    for some in commands.chunks(pipeline) {
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

/// Pops the rest from the queues, or counts it if nothing was popped before, and removes the keys.
/// Returns how many were counted.
pub async fn drain(addresses: &[SocketAddr], shared: &Shared) -> io::Result<u64> {
    let mut client = Client::connect(addresses[0]).await?;
    let mut counted = 0;
    let all = shared.names.all();
    for some in all.chunks(DRAIN_QUEUES) {
        match shared.load.only_pushes() {
            true => counted += count(&mut client, some).await?,
            false => empty(&mut client, some, shared).await?,
        }
    }
    let flushed = client.command(&[b"FLUSHALL"]).await?;
    assert_eq!(flushed, b"+OK\r\n");
    Ok(counted)
}

async fn count(client: &mut Client, keys: &[(&[u8], Kind)]) -> io::Result<u64> {
    let mut requests = Vec::new();
    for (key, kind) in keys {
        let command: &[u8] = match kind {
            Kind::List => b"LLEN",
            Kind::SortedSet => b"ZCARD",
            Kind::Stream => b"XLEN",
        };
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

async fn empty(client: &mut Client, keys: &[(&[u8], Kind)], shared: &Shared) -> io::Result<()> {
    let mut keys = keys.to_vec();
    while !keys.is_empty() {
        // A few queues are asked several times at once.
        let rounds = DRAIN_QUEUES / keys.len();
        let mut requests = Vec::new();
        for (key, kind) in keys.repeat(rounds) {
            match kind {
                Kind::List => write_command(&mut requests, &[b"LPOP", key, DRAIN_ELEMENTS]),
                Kind::SortedSet => write_command(&mut requests, &[b"ZPOPMIN", key, DRAIN_ELEMENTS]),
                Kind::Stream => write_group_read(&mut requests, key, b"drain", DRAIN_ELEMENTS),
            }
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
