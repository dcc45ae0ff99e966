//! One client of a case.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::ledger::Ticket;
use crate::queues::score;
use crate::settings::Load;
use crate::wire::{Client, Piece, walk, write_command};
use crate::workload::Shared;

/// Seconds for which a consumer waits for an element before it looks whether the case is over.
const BLOCK_S: &[u8] = b"1";
/// Replies to a MULTI with five commands: OK, QUEUED five times, the array.
const MULTI_REPLIES: usize = 7;
/// Elements that such a transaction pushes.
const MULTI_PUSHES: usize = 3;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    PushList,
    PopList,
    BlockingList,
    PushSet,
    PopSet,
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
            for _ in 0..count {
                self.write_request();
            }
            let replies = match self.role {
                Role::Multi => count * MULTI_REPLIES,
                _ => count,
            };
            let sent = Instant::now();
            let (role, tickets) = (self.role, &self.tickets);
            let enter = |number, reply: &[u8]| match role {
                Role::PushList | Role::PushSet => {
                    enter_push(&shared, role, tickets[number], reply, sent);
                }
                Role::Multi if number % MULTI_REPLIES == MULTI_REPLIES - 1 => {
                    let first = number / MULTI_REPLIES * MULTI_PUSHES;
                    let tickets = &tickets[first..first + MULTI_PUSHES];
                    enter_exec(&shared, tickets, reply, sent);
                }
                Role::Multi => {}
                Role::PopList | Role::PopSet | Role::BlockingList => {
                    enter_pop(&shared, role, reply, sent);
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

    /// Takes a job, puts it into a set of those under way and another one out of it: what a
    /// queue library does, with an element for each structure.
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
    let is_certain = reply.first() == Some(&b':');
    shared.ledger.borrow_mut().pushed(ticket, is_certain);
    if !is_certain {
        shared.note_error(reply);
        return;
    }
    shared.add_work(|work| match role {
        Role::PushSet => work.set_pushes += 1,
        _ => work.list_pushes += 1,
    });
    shared.note_pushed();
    match shared.load {
        // There the time counts that an element takes from one client to another.
        Load::Blocking => {}
        Load::Push | Load::Zadd => shared.sample(sent.elapsed(), true),
        _ => shared.sample(sent.elapsed(), false),
    }
}

fn enter_pop(shared: &Shared, role: Role, reply: &[u8], sent: Instant) {
    walk(reply, 0, &mut |piece| match piece {
        Piece::Bulk(payload) => {
            let Some(ticket) = shared.ledger.borrow_mut().popped(payload) else {
                return;
            };
            shared.add_work(|work| match role {
                Role::PopSet => work.set_pops += 1,
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
