//! Clients of streams.

use std::time::Duration;

use rand::RngExt;

use super::{Acknowledged, Added, Delivered, Entry, EntryId, GROUPS, Group, Ledger, STREAMS};
use super::{entries, entries_read, key, line};
use crate::client::{Answer, Client};
use crate::history::Payload;

const READ_MAX: usize = 4;
/// The minimum time since the delivery of an entry that is claimed.
const CLAIM_IDLE_MS: u64 = 60;
/// Entries that a consumer may hold before it acknowledges some.
const HELD_MAX: usize = 12;

fn a_group(client: &mut Client<'_>) -> Group {
    Group {
        stream: client.random.random_range(0..STREAMS),
        number: client.random.random_range(0..GROUPS),
    }
}

/// Sleeps for a random while.
pub fn pause(client: &mut Client<'_>, up_to_ms: u64) {
    let ms = client.random.random_range(0..up_to_ms);
    std::thread::sleep(Duration::from_millis(ms));
}

/// Adds entries until it is told to stop.
pub fn add(client: &mut Client<'_>, number: u32, mut goes_on: impl FnMut() -> bool) -> Ledger {
    let mut ledger = Ledger::default();
    let mut payloads = 0;
    while goes_on() {
        client.wander();
        payloads += 1;
        let payload = Payload {
            client: number,
            number: payloads,
        };
        let stream = client.random.random_range(0..STREAMS);
        let words = line(&format!("XADD {} * p {payload}", key(stream)));
        let invoked = client.now();
        let answer = match client.call(&words) {
            Answer::Refused => continue,
            Answer::Unknown => None,
            Answer::Reply(reply) => {
                let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
                match text.parse() {
                    Ok(id) => Some((id, client.now())),
                    Err(wrong) => {
                        client.report(format!("{words:?}: {wrong}"));
                        None
                    }
                }
            }
        };
        ledger.added.push(Added {
            stream,
            payload,
            invoked,
            answer,
        });
        pause(client, 12);
    }
    ledger
}

/// Reads, claims and acknowledges as a consumer of every group until it is told to stop.
pub fn consume(client: &mut Client<'_>, number: u32, mut goes_on: impl FnMut() -> bool) -> Ledger {
    let mut ledger = Ledger::default();
    let mut held: Vec<(Group, EntryId)> = Vec::new();
    while goes_on() {
        client.wander();
        let group = a_group(client);
        match client.random.random_range(0..6) {
            0..3 => {
                let entries = read(client, number, group, &mut ledger);
                held.extend(entries.into_iter().map(|(id, _)| (group, id)));
            }
            3 => {
                let entries = claim(client, number, group, &mut ledger);
                held.extend(entries.into_iter().map(|(id, _)| (group, id)));
            }
            _ => acknowledge(client, &mut held, &mut ledger),
        }
        while held.len() > HELD_MAX {
            acknowledge(client, &mut held, &mut ledger);
        }
        pause(client, 6);
    }
    ledger
}

fn read(client: &mut Client<'_>, number: u32, group: Group, ledger: &mut Ledger) -> Vec<Entry> {
    let count = client.random.random_range(1..=READ_MAX);
    let block = ["", "BLOCK 50 ", "BLOCK 300 "][client.random.random_range(0..3)];
    let (stream, group_number) = (key(group.stream), group.number);
    let words = line(&format!(
        "XREADGROUP GROUP g{group_number} c{number} COUNT {count} {block}STREAMS {stream} >"
    ));
    let invoked = client.now();
    let Answer::Reply(reply) = client.call(&words) else {
        return Vec::new();
    };
    match entries_read(&reply) {
        Ok(entries) if entries.len() <= count => {
            if !entries.is_empty() {
                ledger.delivered.push(Delivered {
                    group,
                    entries: entries.clone(),
                    invoked,
                    ended: client.now(),
                });
            }
            entries
        }
        Ok(entries) => {
            client.report(format!("{words:?} was answered {} entries", entries.len()));
            Vec::new()
        }
        Err(wrong) => {
            client.report(format!("{words:?}: {wrong}"));
            Vec::new()
        }
    }
}

fn claim(client: &mut Client<'_>, number: u32, group: Group, ledger: &mut Ledger) -> Vec<Entry> {
    let group_words = group.words();
    let words = line(&format!(
        "XAUTOCLAIM {group_words} c{number} {CLAIM_IDLE_MS} 0 COUNT {READ_MAX}"
    ));
    let Answer::Reply(reply) = client.call(&words) else {
        return Vec::new();
    };
    let found = match reply.items() {
        Some([_, found, deleted]) if deleted.items() == Some(&[]) => entries(found),
        _ => Err(format!("{reply:?}")),
    };
    match found {
        Ok(entries) => {
            let claimed = entries.iter().map(|entry| (group, *entry));
            ledger.claimed.extend(claimed);
            entries
        }
        Err(wrong) => {
            client.report(format!("{words:?}: {wrong}"));
            Vec::new()
        }
    }
}

fn acknowledge(client: &mut Client<'_>, held: &mut Vec<(Group, EntryId)>, ledger: &mut Ledger) {
    if held.is_empty() {
        return;
    }
    let (group, id) = held.swap_remove(client.random.random_range(0..held.len()));
    let words = line(&format!("XACK {} {id}", group.words()));
    let answer = match client.call(&words) {
        Answer::Refused => return,
        Answer::Unknown => None,
        Answer::Reply(reply) => match reply.integer() {
            Some(count @ 0..=1) => Some(count == 1),
            _ => {
                client.report(format!("{words:?} was answered {reply:?}"));
                None
            }
        },
    };
    ledger.acknowledged.push(Acknowledged { group, id, answer });
}

/// Follows all streams with XREAD until it is told to stop.
pub fn follow(client: &mut Client<'_>, mut goes_on: impl FnMut() -> bool) -> Ledger {
    let mut followed = vec![Vec::<Entry>::new(); usize::from(STREAMS)];
    while goes_on() {
        client.wander();
        let stream = client.random.random_range(0..STREAMS);
        let seen = &mut followed[usize::from(stream)];
        let last = seen.last().map_or(EntryId(0, 0), |(id, _)| *id);
        let block = ["", "BLOCK 50 ", "BLOCK 500 "][client.random.random_range(0..3)];
        let words = line(&format!("XREAD {block}STREAMS {} {last}", key(stream)));
        if let Answer::Reply(reply) = client.call(&words) {
            match entries_read(&reply) {
                Ok(entries) => seen.extend(entries),
                Err(wrong) => client.report(format!("{words:?}: {wrong}")),
            }
        }
        pause(client, 8);
    }
    Ledger {
        followed,
        ..Ledger::default()
    }
}
