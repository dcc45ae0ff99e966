//! Clients that keep a server busy until it dies, and one that reads its content.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quoin_resp::wire::reply_reader::show_bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::history::{Contents, History};
use super::recorded;
use super::steps::{Own, Planner, SHARED_LISTS, SHARED_SET, Stamp, Step, own_keys, own_number};
use crate::resp::{Connection, Value, encode};
use crate::server::{PATIENCE, Server};

const PIPELINE_MAX: usize = 8;

/// With this many payloads in shared keys, clients take more than they add.
const SHARED_ENOUGH: usize = 300;

/// What clients do.
pub(crate) struct Load {
    /// No other load may have the same.
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    /// Whether the server is killed at the end.
    pub(crate) kills: bool,
    pub(crate) is_large: bool,
    /// If set, the disk is full for a while: while this file exists with this content.
    pub(crate) fills: Option<(PathBuf, &'static str)>,
}

/// With this content, a full disk accepts no writes at all. Otherwise it accepts none that make a
/// file longer.
pub(crate) const ALL: &str = "all";
/// The error that a client gets if there is no room.
const REFUSAL: &[u8] = b"MISCONF Store has no room";
/// The error if it is unknown how much of a write is in the file, until a restart.
const FAILURE: &[u8] = b"MISCONF Store failed";
/// A key of the client that waits for the disk to be full.
const PROBE: &str = "probe";

/// Says when something happens.
pub(crate) struct Clock {
    pub(crate) ticks: AtomicU64,
    pub(crate) log: PathBuf,
    /// How long the previous logs were.
    pub(crate) before: u64,
}

impl Clock {
    pub(crate) fn position(&self) -> u64 {
        self.before + self.log.metadata().map_or(0, |log| log.len())
    }

    fn now(&self) -> Stamp {
        // Whatever is sent after this was received has a greater tick, whoever sends it.
        Stamp {
            tick: self.ticks.fetch_add(1, Ordering::SeqCst),
            position: self.position(),
        }
    }
}

/// Loads the server for a while, then ends it. Adds what the clients did to the history.
pub(crate) fn load_and_end(
    server: &mut Server,
    clock: &Clock,
    history: &mut History,
    how: &Load,
) -> Result<(), String> {
    let address = server.address();
    std::thread::scope(|scope| {
        let clients = history.clients.iter_mut().enumerate();
        let base = &history.base;
        let threads: Vec<_> = clients
            .map(|(client, steps)| {
                let own = steps.last().map_or(&base.own[client], |step| &step.after);
                let random = StdRng::seed_from_u64(how.seed ^ ((client as u64 + 1) << 40));
                let planner = Planner {
                    client,
                    round: how.seed,
                    own: own.clone(),
                    payloads: 0,
                    is_large: how.is_large,
                    has_enough: base.shared.len() > SHARED_ENOUGH,
                    random,
                };
                let fills = how.fills.as_ref().map(|(_, what)| *what);
                scope.spawn(move || load(address, planner, clock, steps, fills))
            })
            .collect();
        let filled = how.fills.as_ref().map_or(Ok(()), |(file, what)| {
            std::thread::sleep(how.time / 2);
            fill(address, file, what)
        });
        std::thread::sleep(how.time / if how.fills.is_some() { 2 } else { 1 });
        let ended = recorded::end(server, how.kills);
        for (client, thread) in threads.into_iter().enumerate() {
            let wrong = thread.join().unwrap();
            wrong.map_err(|wrong| format!("client {client}: {wrong}"))?;
        }
        filled.and(ended)
    })
}

/// Makes the disk full until a write is refused, reads, and makes room until none is refused.
fn fill(address: SocketAddr, file: &Path, what: &str) -> Result<(), String> {
    let error = |error: io::Error| error.to_string();
    let mut connection = Connection::open(address).map_err(error)?;
    let payload = "x".repeat(500_000);
    // `None` if that lasts until a restart.
    let mut is_refused = || {
        let reply = connection
            .command(&["RPUSH", PROBE, &payload])
            .map_err(error)?;
        let read = connection.command(&["LLEN", PROBE]).map_err(error)?;
        let is = |reply: &Value, begin| reply.error().is_some_and(|text| text.starts_with(begin));
        match (reply.error(), read.error()) {
            _ if what == ALL && (is(&reply, FAILURE) || is(&read, FAILURE)) => Ok(None),
            (_, Some(wrong)) => Err(format!("a read got {}", wrong.escape_ascii())),
            (None, None) => Ok(Some(false)),
            (Some(_), None) if is(&reply, REFUSAL) => Ok(Some(true)),
            (Some(wrong), None) => Err(format!("a write got {}", wrong.escape_ascii())),
        }
    };
    // Whether there is more to wait for.
    let mut wait_until = |expected: bool| {
        let begun = Instant::now();
        loop {
            match is_refused()? {
                None => return Ok(false),
                Some(is) if is == expected => return Ok(true),
                Some(_) if begun.elapsed() < PATIENCE => {}
                Some(_) => return Err(format!("writes are never refused: {expected}")),
            }
        }
    };
    std::fs::write(file, what).map_err(error)?;
    let mut goes_on = wait_until(true)?;
    if goes_on {
        // Long enough for a checkpoint to fail too.
        std::thread::sleep(Duration::from_millis(1_200));
        goes_on = wait_until(true)?;
    }
    std::fs::remove_file(file).map_err(error)?;
    if !goes_on || !wait_until(false)? {
        return Ok(());
    }
    let removed = connection.command(&["DEL", PROBE]).map_err(error)?;
    match removed.integer() {
        Some(1) => Ok(()),
        _ => Err(format!("DEL got {removed:?}")),
    }
}

/// Sends pipelines until the connection breaks.
fn load(
    address: SocketAddr,
    mut planner: Planner,
    clock: &Clock,
    steps: &mut Vec<Step>,
    fills: Option<&str>,
) -> Result<(), String> {
    let Ok(mut connection) = Connection::open(address) else {
        return Ok(());
    };
    let (may_refuse, may_fail) = (fills.is_some(), fills == Some(ALL));
    loop {
        let length = match planner.random.random_range(0..3) {
            0 if !may_refuse => planner.random.random_range(2..=PIPELINE_MAX),
            _ => 1,
        };
        let before = planner.own.clone();
        let mut plans = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..length {
            let mut plan = planner.plan();
            bytes.extend(plan.commands.iter().flat_map(|words| encode(words)));
            plan.step.sent = clock.now();
            plans.push(plan);
        }
        let first = steps.len();
        steps.extend(plans.iter().map(|plan| plan.step.clone()));
        if connection.send_raw(&bytes).is_err() {
            return Ok(());
        }
        for (index, plan) in plans.iter_mut().enumerate() {
            let replies: io::Result<Vec<Value>> =
                plan.commands.iter().map(|_| connection.read()).collect();
            let Ok(replies) = replies else {
                return Ok(());
            };
            let is_refusal = |reply: &Value| {
                let error = reply.error();
                error.is_some_and(|error| error.starts_with(REFUSAL))
            };
            let is_failure = |reply: &Value| {
                let error = reply.error();
                error.is_some_and(|error| error.starts_with(FAILURE))
            };
            if may_fail && replies.iter().any(is_failure) {
                return Ok(());
            }
            if may_refuse && replies.iter().any(is_refusal) {
                // It has not happened, and no effect of it may ever be seen.
                steps.truncate(first);
                planner.own = before;
                std::thread::sleep(Duration::from_millis(5));
                break;
            }
            plan.answered(replies, clock.now())?;
            steps[first + index] = plan.step.clone();
        }
    }
}

/// The content of a server. The error says what cannot be right, whatever happened before.
pub(crate) fn contents(server: &Server, clients: usize) -> Result<Contents, String> {
    let connection = Connection::open(server.address());
    let mut connection = connection.map_err(|error| error.to_string())?;
    let mut contents = Contents::default();
    let mut keys = 0;
    for client in 0..clients {
        let [list, set] = own_keys(client);
        let list = read(&mut connection, &list, "LLEN", "LRANGE", &mut keys)?;
        let set = read(&mut connection, &set, "ZCARD", "ZRANGE", &mut keys)?;
        let members = set
            .iter()
            .map(|member| std::str::from_utf8(member).ok()?.parse().ok());
        contents.own.push(Own {
            list: consecutive(list.iter().map(|payload| own_number(payload)))?,
            set: consecutive(members)?,
        });
    }
    let mut shared = BTreeSet::new();
    let lists = SHARED_LISTS.map(|list| (list, "LLEN", "LRANGE"));
    for (key, length, range) in lists.into_iter().chain([(SHARED_SET, "ZCARD", "ZRANGE")]) {
        for payload in read(&mut connection, key, length, range, &mut keys)? {
            let text = show_bytes(&payload);
            if !shared.insert(payload) {
                return Err(format!("{text} is there twice"));
            }
        }
    }
    contents.shared = shared;
    read(&mut connection, PROBE, "LLEN", "LRANGE", &mut keys)?;
    let counted = connection
        .command(&["DBSIZE"])
        .map_err(|error| error.to_string())?;
    if counted.integer() != Some(keys) {
        return Err(format!(
            "DBSIZE says {counted:?} where there are {keys} keys"
        ));
    }
    Ok(contents)
}

fn consecutive(mut numbers: impl Iterator<Item = Option<u64>>) -> Result<Range<u64>, String> {
    let damaged = || "a payload of a client's own key is damaged".to_owned();
    let Some(first) = numbers.next() else {
        return Ok(0..0);
    };
    let first = first.ok_or_else(damaged)?;
    let mut range = first..first + 1;
    for number in numbers {
        let number = number.ok_or_else(damaged)?;
        if number != range.end {
            return Err(format!("{number} stands behind {}", range.end - 1));
        }
        range.end += 1;
    }
    Ok(range)
}

/// The content of a key. `keys` counts existing ones.
fn read(
    connection: &mut Connection,
    key: &str,
    length: &str,
    range: &str,
    keys: &mut i64,
) -> Result<Vec<Vec<u8>>, String> {
    let mut command = |words: &[&str]| {
        let reply = connection
            .command(words)
            .map_err(|error| error.to_string())?;
        match reply.error() {
            Some(error) => Err(format!("{key}: {}", error.escape_ascii())),
            None => Ok(reply),
        }
    };
    let told = command(&[length, key])?.integer();
    let items = command(&[range, key, "0", "-1"])?;
    let items: Vec<Vec<u8>> = items
        .items()
        .unwrap_or_default()
        .iter()
        .filter_map(|item| item.bytes().map(<[u8]>::to_vec))
        .collect();
    if told != i64::try_from(items.len()).ok() {
        let items = items.len();
        return Err(format!(
            "{length} {key} says {told:?} where there are {items}"
        ));
    }
    let is_there = command(&["EXISTS", key])?.integer();
    if is_there != Some(i64::from(!items.is_empty())) {
        return Err(format!("EXISTS {key} says {is_there:?}"));
    }
    *keys += i64::from(!items.is_empty());
    Ok(items)
}
