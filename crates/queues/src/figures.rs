//! The sizes of queues.

use quoin_client::{Client, ClientError};
use quoin_resp::wire::reply_reader::Value;

use crate::inside::time_of_score;
use crate::kind::Kind;
use crate::reply::{Pairs, Words, items, number, run_all, text};

/// A queue with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Its key.
    pub name: Vec<u8>,
    /// Its type.
    pub kind: Kind,
    /// Its figures.
    pub figures: Figures,
}

/// The figures of a queue. `None` for what its type does not have, or the user may not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Tasks that can be taken; the length of other types.
    pub ready: Option<i64>,
    /// Tasks under lease; entries that the groups of a stream have pending.
    pub in_work: Option<i64>,
    /// Tasks that can be taken later.
    pub delayed: Option<i64>,
    /// Tasks that have used up their tries.
    pub dead: Option<i64>,
    /// Tasks that can be taken when others are acknowledged.
    pub held: Option<i64>,
    /// The groups of a stream that has some.
    pub groups: Option<Groups>,
    /// Whether consumers get nothing until it is resumed.
    pub is_paused: bool,
    /// The server's error, if the user may not read it.
    pub refusal: Option<String>,
}

/// The consumer groups of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// How many there are.
    pub count: i64,
    /// Entries that they have not delivered yet, in sum.
    pub lag: i64,
}

/// Asks for the figures of queues, together.
///
/// # Errors
/// The connection's. Errors of the server are in the figures.
pub fn read_queues(
    client: &mut Client,
    keys: Vec<(Vec<u8>, Kind)>,
) -> Result<Vec<Queue>, ClientError> {
    let mut commands: Vec<Words> = Vec::with_capacity(keys.len());
    for (name, kind) in &keys {
        commands.push(match kind {
            Kind::TaskQueue => words!["TASK.INFO", name],
            Kind::PriorityQueue => words!["PQ.LEN", name],
            Kind::List => words!["LLEN", name],
            Kind::Stream => words!["XLEN", name],
            Kind::SortedSet => words!["ZCARD", name],
        });
        if *kind == Kind::Stream {
            commands.push(words!["XINFO", "GROUPS", name]);
        }
    }
    let mut replies = run_all(client, &commands)?.into_iter();
    let mut queues = Vec::with_capacity(keys.len());
    for (name, kind) in keys {
        let Some(reply) = replies.next() else { break };
        let mut figures = figures(kind, &reply);
        if kind == Kind::Stream {
            let groups = replies.next();
            note_groups(&mut figures, groups.as_ref().map(items).unwrap_or_default());
        }
        queues.push(Queue {
            name,
            kind,
            figures,
        });
    }
    Ok(queues)
}

fn figures(kind: Kind, reply: &Value) -> Figures {
    let mut figures = Figures::default();
    match (kind, reply.error_text()) {
        // A task queue without tasks has no counters.
        (Kind::TaskQueue, Some(line)) if line.contains("no such key") => {
            figures.ready = Some(0);
            figures.in_work = Some(0);
        }
        (_, Some(line)) => figures.refusal = Some(line.into_owned()),
        (Kind::TaskQueue, None) => {
            let info = Pairs::of(reply);
            figures.ready = Some(info.number("ready"));
            figures.in_work = Some(info.number("leased"));
            figures.delayed = Some(info.number("delayed"));
            figures.dead = Some(info.number("dead"));
            figures.held = Some(info.number("waiting"));
            figures.is_paused = info.number("paused") == 1;
        }
        _ => figures.ready = Some(number(reply)),
    }
    figures
}

fn note_groups(figures: &mut Figures, groups: &[Value]) {
    if groups.is_empty() {
        return;
    }
    let sum = |name: &str| -> i64 {
        let numbers = groups.iter().map(|group| Pairs::of(group).number(name));
        numbers.sum()
    };
    figures.in_work = Some(sum("pending"));
    figures.groups = Some(Groups {
        count: i64::try_from(groups.len()).unwrap_or(i64::MAX),
        lag: sum("lag"),
    });
}

/// Since when the first element of each queue exists, in Unix milliseconds, if the server stores a
/// time: for a task queue the next task to be taken, for a stream the oldest entry, for a sorted
/// set the lowest score if that is a time.
///
/// # Errors
/// The connection's. What the user may not see is `None`.
pub fn heads(
    client: &mut Client,
    keys: &[(Vec<u8>, Kind)],
) -> Result<Vec<Option<i64>>, ClientError> {
    let command = |(name, kind): &(Vec<u8>, Kind)| {
        Some(match kind {
            Kind::TaskQueue => words!["TASK.LIST", name, "READY", "COUNT", "1"],
            Kind::Stream => words!["XRANGE", name, "-", "+", "COUNT", "1"],
            Kind::SortedSet => words!["ZRANGE", name, "0", "0", "WITHSCORES"],
            Kind::PriorityQueue | Kind::List => return None,
        })
    };
    let commands: Vec<Words> = keys.iter().filter_map(command).collect();
    let mut replies = run_all(client, &commands)?.into_iter();
    let heads = keys.iter().map(|(_, kind)| match kind {
        Kind::PriorityQueue | Kind::List => None,
        _ => replies.next().and_then(|reply| head(*kind, &reply)),
    });
    Ok(heads.collect())
}

fn head(kind: Kind, reply: &Value) -> Option<i64> {
    let reply = items(reply);
    match kind {
        Kind::TaskQueue => {
            let task = items(reply.get(1)?).first()?;
            Some(Pairs::of(task).number("at-ms")).filter(|at_ms| *at_ms >= 0)
        }
        Kind::Stream => {
            let id = text(items(reply.first()?).first()?);
            id.split('-').next()?.parse().ok()
        }
        Kind::SortedSet => time_of_score(&text(reply.get(1)?)),
        Kind::PriorityQueue | Kind::List => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_resp::wire::reply_reader::read_reply;

    fn reply(bytes: &str) -> Value {
        read_reply(&mut bytes.as_bytes()).unwrap()
    }

    #[test]
    fn a_task_queue_has_its_states_and_one_without_tasks_has_zeros() {
        let info = reply(
            "*10\r\n+ready\r\n:1\r\n+leased\r\n:2\r\n+delayed\r\n:3\r\n+dead\r\n:4\r\n+paused\r\n:1\r\n",
        );
        let found = figures(Kind::TaskQueue, &info);
        assert_eq!(
            (found.ready, found.in_work, found.delayed, found.dead),
            (Some(1), Some(2), Some(3), Some(4))
        );
        assert!(found.is_paused);
        let found = figures(Kind::TaskQueue, &reply("-ERR no such key\r\n"));
        assert_eq!((found.ready, found.refusal), (Some(0), None));
    }

    #[test]
    fn what_the_user_may_not_see_is_unknown() {
        let found = figures(Kind::List, &reply("-NOPERM no\r\n"));
        assert_eq!(
            (found.ready, found.refusal.as_deref()),
            (None, Some("NOPERM no"))
        );
    }

    #[test]
    fn groups_are_added_up() {
        let groups = reply(
            "*2\r\n*4\r\n+pending\r\n:2\r\n+lag\r\n:3\r\n*4\r\n+pending\r\n:5\r\n+lag\r\n$-1\r\n",
        );
        let mut figures = Figures::default();
        note_groups(&mut figures, items(&groups));
        assert_eq!(figures.in_work, Some(7));
        assert_eq!(figures.groups, Some(Groups { count: 2, lag: 3 }));
    }

    #[test]
    fn the_first_element_has_a_time_where_the_server_keeps_one() {
        for (kind, bytes, expected) in [
            (
                Kind::TaskQueue,
                "*2\r\n$1\r\n0\r\n*1\r\n*2\r\n+at-ms\r\n:77\r\n",
                Some(77),
            ),
            (
                Kind::TaskQueue,
                "*2\r\n$1\r\n0\r\n*1\r\n*2\r\n+at-ms\r\n:-1\r\n",
                None,
            ),
            (Kind::TaskQueue, "*2\r\n$1\r\n0\r\n*0\r\n", None),
            (Kind::Stream, "*1\r\n*2\r\n+88-1\r\n*0\r\n", Some(88)),
            (Kind::Stream, "*0\r\n", None),
            (
                Kind::SortedSet,
                "*2\r\n+a\r\n+1700000000\r\n",
                Some(1_700_000_000_000),
            ),
            (Kind::SortedSet, "*2\r\n+a\r\n+12\r\n", None),
            (Kind::SortedSet, "-NOPERM no\r\n", None),
        ] {
            assert_eq!(head(kind, &reply(bytes)), expected, "{kind:?} {bytes}");
        }
    }
}
