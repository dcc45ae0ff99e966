//! `quoin queues`: the table, and its actions on a queue.

use std::process::{Command, Stdio};

use redis::Connection;
use serde_json::Value as Json;

use crate::authority::Authority;
use crate::server::{Server, free_port};

/// The exit code and output of a run.
struct Ran {
    code: Option<i32>,
    out: String,
    said: String,
}

fn quoin_queues(words: &[&str]) -> Ran {
    let done = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .arg("queues")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        said: String::from_utf8(done.stderr).unwrap(),
    }
}

/// A run that must do everything that it is asked to.
#[track_caller]
fn done(words: &[&str]) -> String {
    let ran = quoin_queues(words);
    assert_eq!(ran.code, Some(0), "{words:?}: {} {}", ran.out, ran.said);
    ran.out
}

/// A run that must fail. Returns its error.
#[track_caller]
fn refused(words: &[&str]) -> String {
    let ran = quoin_queues(words);
    assert_eq!(ran.code, Some(1), "{words:?}: {} {}", ran.out, ran.said);
    assert_eq!(ran.out, "");
    ran.said
}

fn url(server: &Server) -> String {
    format!("redis://{}", server.address())
}

/// Runs commands, of words that are separated by spaces.
fn run(client: &mut Connection, lines: &[&str]) {
    for line in lines {
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        let _: redis::Value = command
            .query(client)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

fn number(client: &mut Connection, line: &str) -> i64 {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).query(client).unwrap()
}

fn lines_of_json(text: &str) -> Vec<Json> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A task queue with a task in each state: `ready`, `leased`, `delayed` and `dead`.
fn fill_tasks(client: &mut Connection, key: &str) {
    run(
        client,
        &[
            &format!("TASK.ADD {key} 1 payload ID dead MAXTRIES 1"),
            &format!("TASK.TAKE {key} LEASE 600000"),
            &format!("TASK.NACK {key} dead REASON broken"),
            &format!("TASK.ADD {key} 1 payload ID leased"),
            &format!("TASK.TAKE {key} LEASE 600000 WORKER ada"),
            &format!("TASK.ADD {key} 1 payload ID delayed DELAY 600000"),
            &format!("TASK.ADD {key} 1 {{\"n\":1}} ID ready"),
        ],
    );
}

fn fill_all(client: &mut Connection) {
    fill_tasks(client, "tasks");
    run(
        client,
        &[
            "RPUSH list a b c",
            "XADD stream 1000-1 f v",
            "XADD stream 2000-1 f w",
            "XGROUP CREATE stream g 0",
            "XREADGROUP GROUP g c COUNT 1 STREAMS stream >",
            "ZADD zset 1700000000 later 5 x",
            "PQ.PUSH pq 2 b 1 a",
            "SET string 1",
            "HSET hash f v",
            "SADD set m",
        ],
    );
}

#[test]
fn the_table_has_the_queues_of_all_types_and_no_other_keys() {
    let server = Server::start();
    fill_all(&mut server.redis(2));
    let table = done(&[&url(&server), "--sort", "name"]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let head: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(head, ["QUEUE", "list", "pq", "stream", "tasks", "zset"]);
    assert_eq!(rows[1][..3], ["list", "list", "3"]);
    assert_eq!(rows[4][..6], ["tasks", "taskqueue", "1", "1", "1", "1"]);
    assert!(table.contains("1 groups, lag 1"), "{table}");
}

#[test]
fn json_has_an_object_a_line_with_null_for_what_is_unknown() {
    let server = Server::start();
    let client = &mut server.redis(2);
    fill_all(client);
    run(client, &["TASK.PAUSE tasks"]);
    let rows = lines_of_json(&done(&[&url(&server), "--json", "--sort", "name"]));
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
    assert_eq!(rows.len(), 5);
    let tasks = row("tasks");
    for state in ["ready", "leased", "delayed", "dead"] {
        assert_eq!(tasks[state], 1, "{tasks}");
    }
    assert_eq!(tasks["paused"], true);
    assert!(tasks["age_ms"].as_i64().unwrap() < 60_000, "{tasks}");
    assert_eq!(row("list")["ready"], 3);
    assert_eq!(row("list")["dead"], Json::Null);
    assert_eq!(row("list")["age_ms"], Json::Null);
    let stream = row("stream");
    assert_eq!((&stream["leased"], &stream["lag"]), (&1.into(), &1.into()));
    // Since one second after the epoch.
    assert!(stream["age_ms"].as_i64().unwrap() > 1_000_000_000_000);
}

#[test]
fn the_table_is_filtered_sorted_and_limited() {
    let server = Server::start();
    let client = &mut server.redis(2);
    let mut pipe = redis::pipe();
    for number in 0..1_200 {
        let key = format!("q:{number}");
        pipe.cmd("RPUSH").arg(key).arg(vec!["x"; 1 + number % 7]);
    }
    let _: redis::Value = pipe.query(client).unwrap();
    run(client, &["RPUSH other x x x x x x x x", "ZADD q:zset 1 a"]);
    let url = url(&server);
    let keys = |words: &[&str]| {
        let mut all = vec![url.as_str(), "--json"];
        all.extend(words);
        let ran = quoin_queues(&all);
        assert_eq!(ran.code, Some(0), "{}", ran.said);
        let rows = lines_of_json(&ran.out);
        let keys: Vec<String> = rows
            .iter()
            .map(|row| row["key"].as_str().unwrap().to_owned())
            .collect();
        (keys, ran.said)
    };
    let (first, said) = keys(&["--limit", "2"]);
    assert_eq!(first, ["other", "q:1000"]);
    assert_eq!(said, "2 of 1202 queues; --limit shows more\n");
    let (first, said) = keys(&["--pattern", "q:119?", "--sort", "name", "--reverse"]);
    assert_eq!(
        (first.len(), first[0].as_str(), said.as_str()),
        (10, "q:1199", "")
    );
    assert_eq!(keys(&["--pattern", "the"]).0, ["other"]);
    assert_eq!(keys(&["--type", "zset"]).0, ["q:zset"]);
}

#[test]
fn peek_shows_the_elements_of_each_type_page_by_page() {
    let server = Server::start();
    let client = &mut server.redis(2);
    fill_all(client);
    run(client, &["ZADD zset inf last"]);
    let url = url(&server);
    let peek = |words: &[&str]| {
        let ran = quoin_queues(&[&["peek", &url], words].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.said);
        (ran.out, ran.said)
    };
    let (out, said) = peek(&["list", "--count", "2"]);
    assert_eq!(out, "0  a\n1  b\n");
    assert_eq!(said, "there is more: --cursor 2\n");
    assert_eq!(
        peek(&["list", "--cursor", "2"]),
        ("2  c\n".to_owned(), String::new())
    );
    let (out, said) = peek(&["stream", "--count", "1"]);
    assert_eq!(
        (out.as_str(), said.as_str()),
        ("1000-1  f=v\n", "there is more: --cursor 1000-1\n")
    );
    assert_eq!(peek(&["stream", "--cursor", "1000-1"]).0, "2000-1  f=w\n");
    assert_eq!(peek(&["pq"]).0, "1  a\n2  b\n");
    let (out, said) = peek(&["zset", "--count", "1"]);
    assert_eq!(
        (out.as_str(), said.as_str()),
        ("5  x\n", "there is more: --cursor 1\n")
    );
    let rows = lines_of_json(&peek(&["zset", "--json"]).0);
    assert_eq!(
        (&rows[0]["score"], &rows[2]["score"]),
        (&5.0.into(), &"inf".into())
    );
    assert_eq!(
        peek(&["tasks"]).0,
        "ready  ready  priority 1  tries 0  {\"n\":1}\n"
    );
    let rows = lines_of_json(&peek(&["tasks", "--state", "dead", "--json"]).0);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["id"], &rows[0]["reason"]),
        (&"dead".into(), &"broken".into())
    );
    assert_eq!(rows[0]["payload"], "payload");
    let (out, _) = peek(&["tasks", "--state", "leased"]);
    assert!(out.contains("worker ada"), "{out}");

    assert!(refused(&["peek", &url, "hash"]).contains("is a hash, not a queue"));
    assert!(refused(&["peek", &url, "nothing"]).contains("there is no key nothing"));
    assert!(refused(&["peek", &url, "list", "--state", "dead"]).contains("no states"));
}

#[test]
fn retry_revives_dead_tasks_and_gives_leased_ones_back() {
    let server = Server::start();
    let client = &mut server.redis(2);
    fill_tasks(client, "q");
    let url = url(&server);
    let said = done(&["retry", &url, "q", "dead", "leased", "ready"]);
    assert_eq!(
        said,
        "dead is ready again\nleased is given back\nready was already ready\n"
    );
    assert_eq!(number(client, "TASK.LEN q READY"), 3);
    let said = refused(&["retry", &url, "q", "ready", "delayed", "nobody"]);
    assert!(
        said.contains("delayed is delayed") && said.contains("nobody is not in the queue"),
        "{said}"
    );
    run(client, &["RPUSH list x"]);
    assert!(refused(&["retry", &url, "list", "x"]).contains("WRONGTYPE"));
}

#[test]
fn revive_takes_ids_or_all_dead_tasks() {
    let server = Server::start();
    let client = &mut server.redis(2);
    fill_tasks(client, "q");
    let url = url(&server);
    assert!(refused(&["revive", &url, "q", "leased"]).contains("leased is not dead"));
    assert_eq!(
        done(&["revive", &url, "q", "dead"]),
        "dead is ready again\n"
    );
    let mut pipe = redis::pipe();
    for number in 0..2_500 {
        pipe.cmd("TASK.ADD")
            .arg(&["many", "1", "x", "MAXTRIES", "1", "ID"])
            .arg(number);
    }
    let _: redis::Value = pipe.query(client).unwrap();
    // A take ends when its transaction is full.
    while number(client, "TASK.LEN many READY") > 0 {
        run(client, &["TASK.TAKE many COUNT 500 LEASE 600000"]);
    }
    let mut pipe = redis::pipe();
    for number in 0..2_500 {
        pipe.cmd("TASK.NACK").arg("many").arg(number);
    }
    let _: redis::Value = pipe.query(client).unwrap();
    assert_eq!(number(client, "TASK.LEN many DEAD"), 2_500);
    assert_eq!(
        done(&["revive", &url, "many", "--all"]),
        "2500 tasks revived\n"
    );
    assert_eq!(number(client, "TASK.LEN many READY"), 2_500);
    assert_eq!(
        done(&["revive", &url, "many", "--all"]),
        "0 tasks revived\n"
    );
}

#[test]
fn purge_asks_unless_it_is_told_not_to() {
    let server = Server::start();
    let client = &mut server.redis(2);
    fill_all(client);
    let url = url(&server);
    let said = refused(&["purge", &url, "list"]);
    assert!(
        said.contains("nothing was removed") && said.contains("--yes"),
        "{said}"
    );
    assert_eq!(number(client, "LLEN list"), 3);
    assert_eq!(done(&["purge", &url, "list", "--yes"]), "list is removed\n");
    assert_eq!(number(client, "EXISTS list"), 0);
    assert!(refused(&["purge", &url, "list", "--yes"]).contains("there is no key"));

    assert_eq!(done(&["purge", &url, "stream", "--yes"]), "2 removed\n");
    assert_eq!(number(client, "XLEN stream"), 0);
    run(client, &["XINFO GROUPS stream"]);

    assert!(refused(&["purge", &url, "tasks", "--yes"]).contains("--state"));
    assert!(refused(&["purge", &url, "pq", "--state", "dead", "--yes"]).contains("no states"));
    assert!(refused(&["purge", &url, "hash", "--yes"]).contains("not a queue"));
    assert_eq!(
        done(&["purge", &url, "tasks", "--state", "dead", "--yes"]),
        "1 task removed\n"
    );
    assert_eq!(number(client, "TASK.LEN tasks"), 3);
    for key in ["pq", "zset"] {
        done(&["purge", &url, key, "--yes"]);
        assert_eq!(number(client, &format!("EXISTS {key}")), 0);
    }
}

#[test]
fn pause_and_resume_stop_and_start_consumers() {
    let server = Server::start();
    let client = &mut server.redis(2);
    let url = url(&server);
    // Also before the first task.
    assert_eq!(done(&["pause", &url, "q"]), "q is paused\n");
    assert_eq!(done(&["pause", &url, "q"]), "q was already paused\n");
    run(client, &["TASK.ADD q 1 x"]);
    let take = |client: &mut Connection| -> Option<redis::Value> {
        redis::cmd("TASK.TAKE").arg("q").query(client).unwrap()
    };
    assert_eq!(take(client), None);
    assert!(done(&[&url]).contains("paused"));
    assert_eq!(done(&["resume", &url, "q"]), "q is resumed\n");
    assert_eq!(done(&["resume", &url, "q"]), "q was not paused\n");
    assert!(take(client).is_some());
    run(client, &["RPUSH list x"]);
    assert!(refused(&["pause", &url, "list"]).contains("WRONGTYPE"));
}

#[test]
fn the_address_has_the_user_the_password_and_the_database() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let address = server.address();
    let client = redis::Client::open(format!("redis://:secret@{address}/2")).unwrap();
    let client = &mut client.get_connection().unwrap();
    run(
        client,
        &[
            "RPUSH two x",
            "TASK.ADD q 1 x",
            "ACL SETUSER viewer on >p:w ~* +@read +@connection +select -llen",
        ],
    );
    let keys = |url: &str, words: &[&str]| {
        let rows = lines_of_json(&done(&[&[url, "--json"], words].concat()));
        rows.iter()
            .map(|row| row["key"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&format!("redis://:secret@{address}/2"), &[]).len(), 2);
    assert!(keys(&format!("redis://:secret@{address}"), &[]).is_empty());
    let own = format!("redis://{address}/2");
    assert!(refused(&[&own]).contains("NOAUTH"));
    assert_eq!(
        keys(&own, &["--password", "secret", "--type", "list"]),
        ["two"]
    );
    let viewer = format!("redis://viewer:p%3aw@{address}/2");
    // What the user may not see is reported in its row.
    let rows = lines_of_json(&done(&[&viewer, "--json", "--type", "list"]));
    assert_eq!(rows[0]["ready"], Json::Null);
    assert!(rows[0]["error"].as_str().unwrap().contains("NOPERM"));
    let said = refused(&["pause", &viewer, "q"]);
    assert!(said.contains("NOPERM") && said.contains("--user"), "{said}");
}

#[test]
fn a_server_with_tls_is_asked_with_tls() {
    let authority = Authority::new();
    authority.sign("server");
    let port = free_port();
    let flags = authority.flags(port, "server", "no");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_with(&[&flags[..], &["--port", &free_port().to_string()]].concat());
    run(&mut server.redis(2), &["RPUSH jobs x"]);
    let named = format!("rediss://127.0.0.1:{port}");
    let table = done(&[&named, "--cacert", &authority.text("ca.pem")]);
    assert!(table.contains("jobs"), "{table}");
    let said = refused(&[&named]);
    assert!(said.contains("certificate"), "{said}");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for words in [
        &["--sort", "color"][..],
        &["purge", "redis://h"],
        &["http://h"],
    ] {
        assert_eq!(quoin_queues(words).code, Some(2), "{words:?}");
    }
}
