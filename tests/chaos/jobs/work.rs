//! Clients of job streams.

use rand::RngExt;

use super::{
    ACKNOWLEDGED_ONLY, Act, Added, Delivered, Group, Ledger, MIN_IDLE_MS, References, STREAMS,
    TRIES, Verb, key,
};
use crate::client::{Answer, Client};
use crate::history::Payload;
use crate::resp::Value;
use crate::streams::{Entry, EntryId, entries_read, line, pause, pending_rows};

const READ_MAX: usize = 4;
/// Number of entries that a consumer holds before it acts on them.
const HELD_MAX: usize = 10;
/// More than a consumer ever has pending.
const PENDING_MAX: usize = 100_000;

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
        let id = match client.call(&words) {
            Answer::Refused => continue,
            Answer::Unknown => None,
            Answer::Reply(reply) => {
                let text = String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned();
                let id = text.parse();
                id.map_err(|wrong| client.report(format!("{words:?}: {wrong}")))
                    .ok()
            }
        };
        ledger.added.push(Added {
            stream,
            payload,
            id,
        });
        pause(client, 12);
    }
    ledger
}

/// Reads as a consumer of every group and performs all operations on entries, until it is told to
/// stop. Occasionally it forgets an entry or changes a policy.
pub fn work(client: &mut Client<'_>, number: u32, mut goes_on: impl FnMut() -> bool) -> Ledger {
    let mut ledger = Ledger::default();
    let mut held: Vec<(Group, EntryId)> = Vec::new();
    while goes_on() {
        client.wander();
        let group = Group {
            stream: client.random.random_range(0..STREAMS),
            number: client.random.random_range(0..2),
        };
        match client.random.random_range(0..40) {
            0 => set_policy(client, group),
            1..20 => held.extend(read(client, number, group, &mut ledger)),
            _ => act(client, &mut held, &mut ledger),
        }
        while held.len() > HELD_MAX {
            act(client, &mut held, &mut ledger);
        }
        pause(client, 6);
    }
    ledger
}

/// Mostly another policy, and sometimes none for a while.
fn set_policy(client: &mut Client<'_>, group: Group) {
    let tries = client.random.random_range(TRIES[0]..=TRIES[1]);
    let min_idle_ms = MIN_IDLE_MS + client.random.random_range(0..MIN_IDLE_MS);
    let text = match client.random.random_range(0..4) {
        0 => format!("XGROUP SETPOLICY {}", group.words()),
        _ => group.policy(tries, min_idle_ms),
    };
    if let Answer::Reply(reply) = client.call(&line(&text))
        && reply != Value::Line(b'+', b"OK".to_vec())
    {
        client.report(format!("{text:?} was answered {reply:?}"));
    }
}

fn read(
    client: &mut Client<'_>,
    number: u32,
    group: Group,
    ledger: &mut Ledger,
) -> Vec<(Group, EntryId)> {
    let count = client.random.random_range(1..=READ_MAX);
    let waits = client.random.random_range(0..4) == 0;
    let block = if waits { "BLOCK 60 " } else { "" };
    let read = format!(
        "XREADGROUP GROUP g{} c{number} COUNT {count} {block}STREAMS {} >",
        group.number,
        key(group.stream)
    );
    let pending = format!("XPENDING {} - + {PENDING_MAX} c{number}", group.words());
    let invoked = client.now();
    let answer = match waits {
        true => client.call(&line(&read)),
        false => client.transaction(&[line(&read), line(&pending)]),
    };
    let Answer::Reply(reply) = answer else {
        return Vec::new();
    };
    let given = match (waits, reply.items()) {
        (true, _) => given(&reply, None),
        (false, Some([read, pending])) => given(read, Some(pending)),
        _ => Err(format!("{reply:?}")),
    };
    match given {
        Ok(entries) if entries.len() <= count => {
            let held = entries.iter().map(|((id, _), _)| (group, *id)).collect();
            ledger.delivered.push(Delivered {
                group,
                entries,
                invoked,
                ended: client.now(),
            });
            held
        }
        Ok(entries) => {
            client.report(format!("{read:?} was answered {} entries", entries.len()));
            Vec::new()
        }
        Err(wrong) => {
            client.report(format!("{read:?}: {wrong}"));
            Vec::new()
        }
    }
}

/// Entries with the numbers of their deliveries.
fn given(read: &Value, pending: Option<&Value>) -> Result<Vec<(Entry, Option<u64>)>, String> {
    let entries = entries_read(read)?;
    let counts = match pending {
        Some(rows) => Some(pending_rows(rows)?),
        None => None,
    };
    let with_count = |(id, payload)| match &counts {
        None => Ok(((id, payload), None)),
        Some(counts) => match counts.get(&id) {
            Some(count) => Ok(((id, payload), Some(*count))),
            None => Err(format!("{id} was read and is not pending")),
        },
    };
    entries
        .into_iter()
        .map(with_count)
        .collect::<Result<Vec<_>, String>>()
}

fn a_verb(client: &mut Client<'_>, group: Group) -> (Verb, String) {
    let (references, reference_word) = match client.random.random_range(0..3) {
        _ if group.stream == ACKNOWLEDGED_ONLY => (References::Acknowledged, "ACKED"),
        0 => (References::Acknowledged, "ACKED"),
        1 => (References::Keep, "KEEPREF"),
        _ => (References::Delete, "DELREF"),
    };
    let (words, stream) = (group.words(), key(group.stream));
    match client.random.random_range(0..12) {
        0..4 => (Verb::Acknowledge, format!("XACK {words}")),
        4..8 => (
            Verb::AcknowledgeAndDelete(references),
            format!("XACKDEL {words} {reference_word} IDS 1"),
        ),
        8 => (
            Verb::Delete(references),
            format!("XDELEX {stream} {reference_word} IDS 1"),
        ),
        9 => (Verb::Release(false), format!("XNACK {words} FAIL IDS 1")),
        10 => (Verb::Release(true), format!("XNACK {words} SILENT IDS 1")),
        _ => (Verb::Release(true), format!("XNACK {words} FATAL IDS 1")),
    }
}

fn act(client: &mut Client<'_>, held: &mut Vec<(Group, EntryId)>, ledger: &mut Ledger) {
    if held.is_empty() {
        return;
    }
    let (group, id) = held.swap_remove(client.random.random_range(0..held.len()));
    if client.random.random_range(0..6) == 0 {
        // Forgotten.
        return;
    }
    let (verb, command) = a_verb(client, group);
    let words = line(&format!("{command} {id}"));
    let invoked = client.now();
    let answer = match client.call(&words) {
        Answer::Refused => return,
        Answer::Unknown => None,
        Answer::Reply(reply) => {
            let code = match reply.items() {
                Some([code]) => code.integer(),
                _ => reply.integer(),
            };
            match code {
                Some(code @ -1..=2) => Some((code, client.now())),
                _ => {
                    client.report(format!("{words:?} was answered {reply:?}"));
                    None
                }
            }
        }
    };
    ledger.acts.push(Act {
        verb,
        group,
        id,
        invoked,
        answer,
    });
}
