//! Actions on queues: single commands, and actions in bounded steps.

use quoin_client::{Client, ClientError};

use crate::inside::tasks;
use crate::kind::State;
use crate::reply::{Pairs, Words, items, number, text};

/// Part of the error for a command that changes too much at once.
const TOO_LARGE: &str = "needs more than one transaction";

/// Stops a task queue from giving tasks to consumers. The reply is 0 if it is already paused.
pub fn pause(key: &[u8]) -> Words {
    words!["TASK.PAUSE", key]
}

/// Lets consumers get tasks again. The reply is 0 if the queue is not paused.
pub fn resume(key: &[u8]) -> Words {
    words!["TASK.RESUME", key]
}

/// Makes a dead task ready again, with all its tries. The reply is 0 if it is not dead.
pub fn revive(key: &[u8], id: &[u8]) -> Words {
    words!["TASK.REVIVE", key, id]
}

/// Moves tasks to another task queue of the database. The reply is the number moved. Tasks that are
/// leased, waiting or gone are not moved.
pub fn move_tasks<I: AsRef<[u8]>>(source: &[u8], destination: &[u8], ids: &[I]) -> Words {
    let mut command = words!["TASK.MOVE", source, destination];
    command.extend(ids.iter().map(|id| id.as_ref().to_vec()));
    command
}

/// Ends the lease of a task. The reply is 2 if that was its last try, and not positive if there is
/// no such lease.
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

/// The outcome of an action in steps.
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

/// Moves the tasks of a state to another task queue, in at most `steps_max` steps of up to
/// `at_once` tasks each, or fewer if that many do not fit into a transaction of the store.
///
/// # Errors
/// The connection's, and the server's if it does not list the tasks.
pub fn move_all(
    client: &mut Client,
    source: &[u8],
    destination: &[u8],
    state: State,
    at_once: i64,
    steps_max: usize,
) -> Result<Steps, ClientError> {
    let mut at_once = at_once;
    let mut changed = 0;
    let mut cursor = String::new();
    for _ in 0..steps_max {
        let page = tasks(client, source, state, &cursor, at_once)?;
        let rows = page.rows.iter().map(Pairs::of);
        let ids: Vec<Vec<u8>> = rows
            .filter_map(|row| Some(row.get("id")?.bytes()?.to_vec()))
            .collect();
        if !ids.is_empty() {
            let reply = client.call(&move_tasks(source, destination, &ids))?;
            match reply.error_text() {
                None => changed += number(&reply),
                // The server bounds what a purge removes, but not how many tasks these ids move.
                Some(line) if line.contains(TOO_LARGE) && ids.len() > 1 => {
                    at_once = ids.len() as i64 / 2;
                    continue;
                }
                Some(line) => return Ok(ended(changed, Outcome::Refused(line.into_owned()))),
            }
        }
        match page.next {
            Some(next) => cursor = next,
            None => return Ok(ended(changed, Outcome::Done)),
        }
    }
    Ok(ended(changed, Outcome::Unfinished))
}

fn ended(changed: i64, outcome: Outcome) -> Steps {
    Steps { changed, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Moves dead tasks, ten at a time, with these replies. Returns the outcome and what was sent.
    fn moved(replies: &str, steps_max: usize) -> (Steps, String) {
        let (mut server, socket) = UnixStream::pair().unwrap();
        server.write_all(replies.as_bytes()).unwrap();
        let mut client = Client::on_socket(socket, Duration::from_secs(10)).unwrap();
        let steps = move_all(&mut client, b"a", b"b", State::Dead, 10, steps_max).unwrap();
        drop(client);
        let mut sent = String::new();
        server.read_to_string(&mut sent).unwrap();
        let words = sent
            .split("\r\n")
            .filter(|word| !word.starts_with(['*', '$']));
        (steps, words.collect::<Vec<_>>().join(" "))
    }

    /// A reply of TASK.LIST.
    fn page(next: &str, ids: &[&str]) -> String {
        let rows = ids
            .iter()
            .map(|id| format!("*2\r\n+id\r\n${}\r\n{id}\r\n", id.len()));
        let rows: String = rows.collect();
        format!("*2\r\n+{next}\r\n*{}\r\n{rows}", ids.len())
    }

    #[test]
    fn tasks_of_a_state_move_page_by_page() {
        let replies = [
            page("7f", &["x", "y"]),
            ":2\r\n".to_owned(),
            page("8f", &[]),
        ];
        let replies = [replies.concat(), page("0", &["z"]), ":0\r\n".to_owned()];
        let (steps, sent) = moved(&replies.concat(), 5);
        assert_eq!(steps, ended(2, Outcome::Done));
        let list = "TASK.LIST a dead COUNT 10";
        assert_eq!(
            sent.trim(),
            format!("{list} TASK.MOVE a b x y {list} CURSOR 7f {list} CURSOR 8f TASK.MOVE a b z")
        );
    }

    #[test]
    fn fewer_move_at_once_where_a_transaction_is_too_small() {
        let refused = format!("-ERR command {TOO_LARGE} of the store can hold\r\n");
        let replies = [
            &page("0", &["x", "y", "z"]),
            refused.as_str(),
            &page("7f", &["x"]),
            ":1\r\n",
            &page("0", &["y"]),
            ":1\r\n",
        ];
        let (steps, sent) = moved(&replies.concat(), 5);
        assert_eq!(steps, ended(2, Outcome::Done));
        assert!(
            sent.contains("COUNT 1 TASK.MOVE a b x TASK.LIST a dead COUNT 1 CURSOR 7f"),
            "{sent}"
        );
    }

    #[test]
    fn a_refusal_ends_the_moves() {
        let refusal = "EXISTS Task id already exists";
        let replies = [
            &page("7f", &["x"]),
            ":1\r\n",
            &page("0", &["y"]),
            &format!("-{refusal}\r\n"),
        ];
        let (steps, _) = moved(&replies.concat(), 5);
        assert_eq!(steps, ended(1, Outcome::Refused(refusal.to_owned())));
    }

    #[test]
    fn tasks_are_left_after_the_last_step() {
        let (steps, _) = moved(&format!("{}:1\r\n", page("7f", &["x"])), 1);
        assert_eq!(steps, ended(1, Outcome::Unfinished));
    }
}
