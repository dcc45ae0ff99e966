//! One client of a case.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::ledger::Ticket;
use crate::queues::{GROUP, score, write_group_read};
use crate::settings::Load;
use crate::wire::{Client, Piece, walk, write_command};
use crate::workload::Shared;

/// Seconds that a consumer waits for an element before it checks whether the case is over.
const BLOCK_S: &[u8] = b"1";
/// Replies to a MULTI with five commands: OK, QUEUED five times, the array.
const MULTI_REPLIES: usize = 7;
/// Elements pushed by such a transaction.
const MULTI_PUSHES: usize = 3;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    PushList,
    PopList,
    BlockingList,
    PushSet,
    PopSet,
    PushStream,
    /// Reads entries in a group, and acknowledges them with its next requests.
    PopStream,
    Multi,
}

pub struct Worker {
    shared: Rc<Shared>,
    client: Client,
    role: Role,
    source: u32,
    /// The next queue.
    cursor: usize,
    /// The queues that a blocking client waits for.
    awaited: Vec<usize>,
    requests: Vec<u8>,
    payload: Vec<u8>,
    tickets: Vec<Ticket>,
    /// Entries that were read and are not acknowledged yet: streams, and ids in them.
    read: Vec<Entry>,
}

struct Entry {
    queue: usize,
    id: Vec<u8>,
}

impl Worker {
    /// `number` of `clients`.
    pub fn new(
        shared: Rc<Shared>,
        client: Client,
        role: Role,
        number: usize,
        clients: usize,
    ) -> Self {
        let queues = shared.names.count();
        let consumers = clients - clients / 2;
        let first = number.saturating_sub(clients / 2);
        let awaited = match queues > consumers {
            true => (first..queues).step_by(consumers).collect(),
            false => vec![first % queues],
        };
        Self {
            client,
            role,
            source: number as u32,
            cursor: number * queues / clients,
            awaited,
            requests: Vec::new(),
            payload: vec![b'.'; shared.payload_bytes],
            tickets: Vec::new(),
            read: Vec::new(),
            shared,
        }
    }

    pub async fn run(mut self) -> io::Result<()> {
        let shared = Rc::clone(&self.shared);
        let count = match self.role {
            Role::BlockingList => 1,
            _ => shared.pipeline,
        };
        while shared.may_go_on(self.role, count).await {
            self.requests.clear();
            self.tickets.clear();
            let acknowledgements = self.write_acknowledgements();
            let queue = self.cursor;
            for _ in 0..count {
                self.write_request();
            }
            let replies = match self.role {
                Role::Multi => count * MULTI_REPLIES,
                _ => acknowledgements + count,
            };
            let sent = Instant::now();
            let (role, tickets, read) = (self.role, &self.tickets, &mut self.read);
            let enter = |number: usize, reply: &[u8]| match role {
                Role::PushList | Role::PushSet | Role::PushStream => {
                    enter_push(&shared, role, tickets[number], reply, sent);
                }
                Role::Multi if number % MULTI_REPLIES == MULTI_REPLIES - 1 => {
                    let first = number / MULTI_REPLIES * MULTI_PUSHES;
                    let tickets = &tickets[first..first + MULTI_PUSHES];
                    enter_exec(&shared, tickets, reply, sent);
                }
                Role::Multi => {}
                Role::PopStream if number < acknowledgements => {
                    if reply.first() != Some(&b':') {
                        shared.note_error(reply);
                    }
                }
                Role::PopStream => {
                    let queue = queue + number - acknowledgements;
                    enter_pop(&shared, role, reply, sent, |id| {
                        let id = id.to_vec();
                        read.push(Entry { queue, id });
                    });
                }
                Role::PopList | Role::PopSet | Role::BlockingList => {
                    enter_pop(&shared, role, reply, sent, |_| {});
                }
            };
            self.client.exchange(&self.requests, replies, enter).await?;
        }
        Ok(())
    }

    fn issue(&mut self) -> Ticket {
        let at_us = self.shared.at_us();
        let ticket = self.shared.ledger.borrow_mut().issue(self.source, at_us);
        self.tickets.push(ticket);
        ticket.write(&mut self.payload);
        ticket
    }

    /// Acknowledges what was read, with a command for each stream. Returns the number of commands.
    fn write_acknowledgements(&mut self) -> usize {
        let names = &self.shared.names;
        let count = names.count();
        self.read.sort_by_key(|entry| entry.queue % count);
        let of_streams = self
            .read
            .chunk_by(|one, other| one.queue % count == other.queue % count);
        let mut commands = 0;
        for entries in of_streams {
            let ids = entries.iter().map(|entry| entry.id.as_slice());
            let words: [&[u8]; 3] = [b"XACK", names.queue(entries[0].queue), GROUP];
            let words: Vec<&[u8]> = words.into_iter().chain(ids).collect();
            write_command(&mut self.requests, &words);
            commands += 1;
        }
        self.read.clear();
        commands
    }

    fn write_request(&mut self) {
        let shared = Rc::clone(&self.shared);
        let names = &shared.names;
        let at = self.cursor;
        self.cursor += 1;
        let key = names.queue(at);
        match self.role {
            Role::PushList => {
                self.issue();
                write_command(&mut self.requests, &[b"RPUSH", key, &self.payload]);
            }
            Role::PushSet => {
                let score = score(self.issue());
                let words: [&[u8]; 4] = [b"ZADD", key, score.as_bytes(), &self.payload];
                write_command(&mut self.requests, &words);
            }
            Role::PushStream => {
                self.issue();
                let words: [&[u8]; 5] = [b"XADD", key, b"*", b"f", &self.payload];
                write_command(&mut self.requests, &words);
            }
            Role::PopStream => {
                let consumer = self.source.to_string();
                write_group_read(&mut self.requests, key, consumer.as_bytes(), b"1");
            }
            Role::PopList => write_command(&mut self.requests, &[b"LPOP", key]),
            Role::PopSet => write_command(&mut self.requests, &[b"ZPOPMIN", key]),
            Role::BlockingList => {
                let keys = self.awaited.iter().map(|queue| names.queue(*queue));
                let words: Vec<&[u8]> = std::iter::once(b"BLPOP".as_slice())
                    .chain(keys)
                    .chain([BLOCK_S])
                    .collect();
                write_command(&mut self.requests, &words);
            }
            Role::Multi => self.write_transaction(at),
        }
    }

    /// Takes a job, adds it to a set of current jobs, and removes another one from the set, like a
    /// queue library, with an element for each structure.
    fn write_transaction(&mut self, at: usize) {
        let shared = Rc::clone(&self.shared);
        let names = &shared.names;
        write_command(&mut self.requests, &[b"MULTI"]);
        self.issue();
        write_command(
            &mut self.requests,
            &[b"RPUSH", names.queue(at), &self.payload],
        );
        write_command(&mut self.requests, &[b"LPOP", names.queue(at)]);
        let score = score(self.issue());
        let words: [&[u8]; 4] = [b"ZADD", names.times(at), score.as_bytes(), &self.payload];
        write_command(&mut self.requests, &words);
        write_command(&mut self.requests, &[b"ZPOPMIN", names.times(at)]);
        self.issue();
        write_command(
            &mut self.requests,
            &[b"RPUSH", names.done(at), &self.payload],
        );
        write_command(&mut self.requests, &[b"EXEC"]);
    }
}

fn enter_push(shared: &Shared, role: Role, ticket: Ticket, reply: &[u8], sent: Instant) {
    let answer = match role {
        // The entry's id.
        Role::PushStream => b'$',
        _ => b':',
    };
    let is_certain = reply.first() == Some(&answer);
    shared.ledger.borrow_mut().pushed(ticket, is_certain);
    if !is_certain {
        shared.note_error(reply);
        return;
    }
    shared.add_work(|work| match role {
        Role::PushSet => work.set_pushes += 1,
        Role::PushStream => work.stream_pushes += 1,
        _ => work.list_pushes += 1,
    });
    shared.note_pushed();
    match shared.load {
        // In this load, the time that an element takes from one client to another counts.
        Load::Blocking => {}
        load => shared.sample(sent.elapsed(), load.only_pushes()),
    }
}

/// Records what was popped, and passes on the id of each entry that was read.
fn enter_pop(
    shared: &Shared,
    role: Role,
    reply: &[u8],
    sent: Instant,
    mut was_read: impl FnMut(&[u8]),
) {
    let mut id = Vec::new();
    walk(reply, 0, &mut |piece| match piece {
        Piece::Bulk(bulk) if role == Role::PopStream && is_id(bulk) => id = bulk.to_vec(),
        Piece::Bulk(payload) => {
            let Some(ticket) = shared.ledger.borrow_mut().popped(payload) else {
                return;
            };
            was_read(&id);
            shared.add_work(|work| match role {
                Role::PopSet => work.set_pops += 1,
                Role::PopStream => work.stream_pops += 1,
                _ => work.list_pops += 1,
            });
            shared.note_popped();
            let latency = match role {
                Role::BlockingList => {
                    Duration::from_micros(shared.at_us().saturating_sub(ticket.at_us))
                }
                _ => sent.elapsed(),
            };
            shared.sample(latency, true);
        }
        Piece::Nil if role != Role::BlockingList => shared.note_nil(),
        Piece::Error(line) => shared.note_error(line),
        Piece::Nil | Piece::Integer(_) | Piece::Other => {}
    });
}

/// Whether a bulk string has the form of an entry's id. No key or field here has it.
fn is_id(bulk: &[u8]) -> bool {
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let mut parts = bulk.splitn(2, |byte| *byte == b'-');
    parts.next().is_some_and(is_digits) && parts.next().is_some_and(is_digits)
}

fn enter_exec(shared: &Shared, tickets: &[Ticket], reply: &[u8], sent: Instant) {
    let is_certain = reply.starts_with(b"*5\r\n");
    let mut popped = 0;
    walk(reply, 0, &mut |piece| match piece {
        Piece::Bulk(payload) => {
            popped += u64::from(shared.ledger.borrow_mut().popped(payload).is_some());
        }
        Piece::Error(line) => shared.note_error(line),
        Piece::Nil => shared.note_nil(),
        Piece::Integer(_) | Piece::Other => {}
    });
    for ticket in tickets {
        shared.ledger.borrow_mut().pushed(*ticket, is_certain);
    }
    if is_certain && popped == 2 {
        shared.add_work(|work| {
            work.list_pushes += 2;
            work.list_pops += 1;
            work.set_pushes += 1;
            work.set_pops += 1;
            work.transactions += 1;
        });
        shared.sample(sent.elapsed(), true);
    }
}
