//! Tests of task queues.

use quoin_base::random::{Random, SeededRandom};
use quoin_engine::Reaper;
use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

mod blocking;
mod commands;
mod concurrency;
mod due;
mod dumping;
mod groups;
mod index;
mod kept;
mod limits;
mod listing;
mod maintenance;
mod model;
mod options;
mod pausing;
mod round_trips;
mod schedules;
mod spans;
mod steering;
mod timers;
mod traces;
mod waits;

/// Runs a test on a store with a single writer and on one with many.
fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

/// Runs background work until nothing is left to do now.
fn reap(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    for _ in 0..1_000 {
        if !bench.block_on(reaper.pass(&bench.executor)).unwrap() {
            return;
        }
    }
    panic!("background work does not end");
}

/// The parts of the tasks in a reply.
fn parts(reply: &Reply) -> Vec<Vec<Reply>> {
    match reply {
        Reply::NullArray => Vec::new(),
        Reply::Array(tasks) => tasks
            .iter()
            .map(|task| match task {
                Reply::Array(parts) => parts.clone(),
                other => panic!("{other:?}"),
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The ids of the tasks in a reply.
fn ids(reply: &Reply) -> Vec<String> {
    parts(reply).iter().map(|parts| text(&parts[0])).collect()
}

/// The token of the first task in a reply.
fn token(reply: &Reply) -> String {
    text(&parts(reply)[0][5])
}

/// A page of TASK.LIST: the next cursor, and the fields of each task.
fn page(reply: Reply) -> (String, Vec<Vec<(Reply, Reply)>>) {
    let Reply::Array(parts) = reply else {
        panic!("{reply:?}");
    };
    let [cursor, Reply::Array(tasks)] = &parts[..] else {
        panic!("{parts:?}");
    };
    let tasks = tasks.iter().map(|task| match task {
        Reply::Map(fields) => fields.clone(),
        other => panic!("{other:?}"),
    });
    (text(cursor), tasks.collect())
}

/// All tasks of a state, in pages of `count`.
fn listed(bench: &Bench, key: &str, state: &str, count: usize) -> Vec<Vec<(Reply, Reply)>> {
    let mut cursor = "0".to_owned();
    let mut all = Vec::new();
    loop {
        let line = format!("TASK.LIST {key} {state} CURSOR {cursor} COUNT {count}");
        let (next, tasks) = page(bench.run(&line));
        assert!(tasks.len() <= count);
        all.extend(tasks);
        cursor = next;
        if cursor == "0" {
            return all;
        }
    }
}

/// A field of a task.
fn field(fields: &[(Reply, Reply)], name: &str) -> Reply {
    let found = fields.iter().find(|(known, _)| *known == bulk(name));
    found.unwrap_or_else(|| panic!("{name}")).1.clone()
}

fn listed_ids(bench: &Bench, key: &str, state: &str, count: usize) -> Vec<String> {
    let tasks = listed(bench, key, state, count);
    tasks.iter().map(|task| text(&field(task, "id"))).collect()
}

fn codes(codes: &[i64]) -> Reply {
    Reply::Array(codes.iter().map(|code| Reply::Integer(*code)).collect())
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

/// The syntax error of a line's command.
fn syntax_error(line: &str) -> Reply {
    let name = line.split(' ').next().unwrap();
    let row = quoin_data::table::find(name.as_bytes()).unwrap();
    let usage = quoin_data::command::grammar::Syntax(row.arguments);
    assert!(!usage.to_string().is_empty());
    error(&format!("ERR syntax error, expected {name} {usage}"))
}
