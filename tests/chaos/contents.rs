//! The final content of the queues: every server reports the same, lengths match the content, and
//! popping until nothing is left returns exactly that.

use crate::history::{Contents, Element, FAMILIES, Family, Queue};
use crate::resp::{Connection, Value};
use crate::workers::{elements, texts};

fn run(connection: &mut Connection, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    connection.command(&words).unwrap()
}

/// Reads everything from each server, and empties the queues through all of them.
pub fn read_and_drain(connections: &mut [Connection]) -> Result<Contents, String> {
    let mut contents: Option<Contents> = None;
    for connection in connections.iter_mut() {
        let seen = read(connection)?;
        match &contents {
            Some(before) if *before != seen => {
                return Err(format!("servers disagree: {before:?} and {seen:?}"));
            }
            _ => contents = Some(seen),
        }
    }
    let contents = contents.unwrap_or_default();
    for (queue, elements) in &contents {
        drain(connections, *queue, elements)?;
    }
    Ok(contents)
}

fn read(connection: &mut Connection) -> Result<Contents, String> {
    let mut contents = Contents::new();
    for queue in FAMILIES.into_iter().flat_map(Queue::all_of) {
        let (length, range) = match queue.family {
            Family::Fifo | Family::Mixed | Family::Moved => ("LLEN", "LRANGE {} 0 -1"),
            Family::Sorted => ("ZCARD", "ZRANGE {} 0 -1 WITHSCORES"),
            Family::Priority | Family::PriorityMoved => ("PQ.LEN", "PQ.RANGE {} 0 -1"),
            Family::Members => ("SCARD", "SMEMBERS {}"),
        };
        let length = run(connection, &format!("{length} {queue}")).integer();
        let reply = run(connection, &range.replace("{}", &queue.to_string()));
        let mut found = elements(&texts(&reply))?;
        if queue.family == Family::Members {
            found.sort_unstable();
        }
        if length != i64::try_from(found.len()).ok() {
            let count = found.len();
            return Err(format!(
                "{queue}: the length is {length:?}, and {count} are there"
            ));
        }
        contents.insert(queue, found);
    }
    Ok(contents)
}

fn drain(connections: &mut [Connection], queue: Queue, expected: &[Element]) -> Result<(), String> {
    let verb = match queue.family {
        Family::Fifo | Family::Mixed | Family::Moved => "LPOP",
        Family::Sorted => "ZPOPMIN",
        Family::Priority | Family::PriorityMoved => "PQ.POPMIN",
        Family::Members => "SPOP",
    };
    let mut popped = Vec::new();
    let servers = connections.len();
    for turn in 0.. {
        let reply = run(
            &mut connections[turn % servers],
            &format!("{verb} {queue} 100"),
        );
        let some = elements(&texts(&reply))?;
        if some.is_empty() {
            break;
        }
        popped.extend(some);
    }
    if queue.family == Family::Members {
        popped.sort_unstable();
    }
    if popped != expected {
        return Err(format!("{queue}: read was {expected:?}, popped {popped:?}"));
    }
    let exists = run(&mut connections[0], &format!("EXISTS {queue}"));
    match exists.integer() {
        Some(0) => Ok(()),
        _ => Err(format!("{queue} is empty and exists: {exists:?}")),
    }
}
