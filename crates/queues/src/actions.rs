//! What steers queues: single commands, and those that take bounded steps.

use quoin_client::{Client, ClientError};

use crate::kind::State;
use crate::reply::{Words, items, number, text};

/// Stops what consumers get of a task queue. The reply is 0 if it is paused already.
pub fn pause(key: &[u8]) -> Words {
    words!["TASK.PAUSE", key]
}

/// Lets consumers get tasks again. The reply is 0 if the queue is not paused.
pub fn resume(key: &[u8]) -> Words {
    words!["TASK.RESUME", key]
}

/// Makes a dead task ready again, with no tries. The reply is 0 if it is not dead.
pub fn revive(key: &[u8], id: &[u8]) -> Words {
    words!["TASK.REVIVE", key, id]
}

/// Ends the lease of a task. The reply is 2 if that was its last try, and not positive if there is no such lease.
pub fn give_back(key: &[u8], id: &[u8]) -> Words {
    words!["TASK.NACK", key, id]
}

/// Removes a key. The reply is 0 if it does not exist.
pub fn delete(key: &[u8]) -> Words {
    words!["UNLINK", key]
}

/// Removes all entries of a stream. Its groups stay.
pub fn trim(key: &[u8]) -> Words {
    words!["XTRIM", key, "MAXLEN", "0"]
}

/// What the steps of an action have come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Tasks that were changed.
    pub changed: i64,
    /// How it ended.
    pub outcome: Outcome,
}

/// How steps ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All is done.
    Done,
    /// Tasks are left after the last step that was allowed.
    Unfinished,
    /// The server's error.
    Refused(String),
}

/// Revives all dead tasks, in at most `steps_max` steps of up to a thousand tasks each.
///
/// # Errors
/// The connection's.
pub fn revive_all(client: &mut Client, key: &[u8], steps_max: usize) -> Result<Steps, ClientError> {
    let mut changed = 0;
    for _ in 0..steps_max {
        let reply = client.call(&revive(key, b"ALL"))?;
        if let Some(line) = reply.error_text() {
            return Ok(ended(changed, Outcome::Refused(line.into_owned())));
        }
        match number(&reply) {
            0 => return Ok(ended(changed, Outcome::Done)),
            step => changed += step,
        }
    }
    Ok(ended(changed, Outcome::Unfinished))
}

/// Removes the tasks of a state, in at most `steps_max` steps of up to a thousand tasks each.
///
/// # Errors
/// The connection's.
pub fn purge_tasks(
    client: &mut Client,
    key: &[u8],
    state: State,
    steps_max: usize,
) -> Result<Steps, ClientError> {
    let mut changed = 0;
    let mut cursor = String::new();
    for _ in 0..steps_max {
        let mut command = words!["TASK.PURGE", key, state.name()];
        if !cursor.is_empty() {
            command.extend(words!["CURSOR", cursor]);
        }
        let reply = client.call(&command)?;
        if let Some(line) = reply.error_text() {
            return Ok(ended(changed, Outcome::Refused(line.into_owned())));
        }
        let [next, step] = items(&reply) else {
            return Err(client.unexpected(&reply));
        };
        cursor = text(next);
        changed += number(step);
        if cursor == "0" {
            return Ok(ended(changed, Outcome::Done));
        }
    }
    Ok(ended(changed, Outcome::Unfinished))
}

fn ended(changed: i64, outcome: Outcome) -> Steps {
    Steps { changed, outcome }
}
