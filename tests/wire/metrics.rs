//! Metrics over HTTP: the same figures as INFO's.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::server::{PATIENCE, Server, Socket, is_on_foundationdb, wait_until};

fn server() -> (Server, SocketAddr) {
    server_with(&[])
}

fn server_with(flags: &[&str]) -> (Server, SocketAddr) {
    let mut all_flags = vec!["--metrics-address", "127.0.0.1:0"];
    all_flags.extend(flags);
    let server = Server::start_with(&all_flags);
    let log = server.log();
    let (_, behind) = log.split_once("metrics are at http://").unwrap();
    let (address, _) = behind.split_once('/').unwrap();
    (server, address.parse().unwrap())
}

/// The whole response to a request.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn text(address: SocketAddr) -> String {
    let response = ask(address, "GET /metrics HTTP/1.1\r\nHost: quoin\r\n\r\n");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"));
    body.to_owned()
}

/// Samples by their names with their labels.
fn scrape(address: SocketAddr) -> HashMap<String, f64> {
    text(address)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Figures of INFO that are numbers.
fn info(socket: &mut Socket) -> HashMap<String, f64> {
    let text = socket.run("INFO everything");
    let fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

#[test]
fn figures_agree_with_info() {
    let (server, address) = server();
    let mut socket = server.connect();
    for number in 0..20 {
        socket.run(&format!("RPUSH list {number}"));
    }
    socket.run("RPUSH soon a");
    socket.run("PEXPIRE soon 1");
    wait_until("the key has expired", || {
        info(&mut socket)["expired_keys"] == 1.0
    });
    socket.run("ZADD list 1 a");
    socket.run("LPUSH list");
    let mut waiting = server.connect();
    waiting.send("BLPOP nothing 0\r\n");
    wait_until("a client waits", || {
        info(&mut socket)["blocked_clients"] == 1.0
    });

    // Background work changes figures between the three reads.
    let before = info(&mut socket);
    let metrics = scrape(address);
    let after = info(&mut socket);
    for (metric, field) in [
        ("quoin_commands_processed_total", "total_commands_processed"),
        (
            "quoin_connections_received_total",
            "total_connections_received",
        ),
        ("quoin_connections_rejected_total", "rejected_connections"),
        ("quoin_input_bytes_total", "total_net_input_bytes"),
        ("quoin_output_bytes_total", "total_net_output_bytes"),
        ("quoin_connected_clients", "connected_clients"),
        ("quoin_blocked_clients", "blocked_clients"),
        ("quoin_blocking_keys", "total_blocking_keys"),
        ("quoin_batches_total", "batches"),
        ("quoin_batched_commands_total", "batched_commands"),
        ("quoin_commits_total", "commits"),
        ("quoin_conflicts_total", "conflicts"),
        ("quoin_retries_total", "retries"),
        ("quoin_unknown_results_total", "unknown_results"),
        (
            "quoin_unknown_results_applied_total",
            "unknown_results_applied",
        ),
        (
            "quoin_unknown_results_not_applied_total",
            "unknown_results_not_applied",
        ),
        (
            "quoin_unknown_results_unresolved_total",
            "unknown_results_unresolved",
        ),
        ("quoin_too_old_transactions_total", "too_old_transactions"),
        ("quoin_store_errors_total", "store_errors"),
        ("quoin_commands_rolled_back_total", "commands_rolled_back"),
        ("quoin_expired_keys_total", "expired_keys"),
        ("quoin_living_servers", "living_servers"),
        ("quoin_store_reachable", "store_reachable"),
    ] {
        let value = metrics[metric];
        assert!(
            (before[field]..=after[field]).contains(&value),
            "{metric}: {value}, in INFO {} and {}",
            before[field],
            after[field]
        );
    }
    assert!(metrics["quoin_commits_total"] >= 21.0);
    assert!(
        (before["uptime_in_seconds"]..=after["uptime_in_seconds"] + 1.0)
            .contains(&metrics["quoin_uptime_seconds"])
    );
    assert!(metrics["quoin_memory_used_bytes"] > 1e5);
}

#[test]
fn commands_and_errors_are_told_by_their_names() {
    let (server, address) = server();
    let mut socket = server.connect();
    socket.run("RPUSH list a");
    socket.run("RPUSH list b");
    socket.run("ZADD list 1 a");
    socket.run("LPUSH list");
    socket.run("CLIENT ID");
    let metrics = scrape(address);
    for (sample, value) in [
        ("command_calls_total{command=\"rpush\"}", 2.0),
        ("command_calls_total{command=\"client|id\"}", 1.0),
        ("command_failures_total{command=\"zadd\"}", 1.0),
        ("command_rejections_total{command=\"lpush\"}", 1.0),
        ("error_replies_total{code=\"WRONGTYPE\"}", 1.0),
        ("error_replies_total{code=\"ERR\"}", 1.0),
    ] {
        assert_eq!(metrics[&format!("quoin_{sample}")], value, "{sample}");
    }
    assert!(metrics["quoin_command_seconds_total{command=\"rpush\"}"] > 0.0);
    assert!(!metrics.contains_key("quoin_command_calls_total{command=\"lpop\"}"));
}

#[test]
fn the_server_is_named() {
    let (server, address) = server();
    let info = server.connect().run("INFO quoin server");
    let text = text(address);
    let line = text
        .lines()
        .find(|line| line.starts_with("quoin_server_info{"))
        .unwrap();
    for (label, field) in [
        ("version", "quoin_version"),
        ("redis_version", "redis_version"),
        ("store", "store"),
        ("layout_version", "layout_version"),
        ("run_id", "run_id"),
    ] {
        let (_, behind) = info.split_once(&format!("\r\n{field}:")).unwrap();
        let (value, _) = behind.split_once("\r\n").unwrap();
        assert!(line.contains(&format!("{label}=\"{value}\"")), "{line}");
    }
}

/// The document's metrics, without labels.
fn documented() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operate/metrics.md");
    let document = std::fs::read_to_string(path).unwrap();
    let rows = document.lines().filter_map(|line| {
        let name = line.strip_prefix("| `")?.split(['{', '`']).next()?;
        let is_metric = name.starts_with("quoin_") || name.starts_with("process_");
        is_metric.then(|| name.to_owned())
    });
    // The table of alerts has expressions.
    rows.filter(|name| !name.contains(' ')).collect()
}

#[test]
fn every_figure_is_documented_and_no_other() {
    let (server, address) = server_with(&[
        "--metrics-keys",
        "log",
        "--journal-archive-dir",
        "archive",
        "--journal-archive-command",
        "true",
    ]);
    let mut socket = server.connect();
    // Some figures appear only once there is something to count.
    socket.run("NOSUCH");
    socket.run("XADD log * a b");
    if !is_on_foundationdb() {
        assert_eq!(socket.run("SAVE"), "+OK\r\n");
    }
    wait_until("the key is shown", || {
        text(address).contains("quoin_queue_oldest_age_seconds{")
    });
    let text = text(address);
    let mut shown = BTreeSet::new();
    for line in text.lines() {
        let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        shown.insert(match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        });
    }
    let documented = documented();
    let surplus: Vec<_> = shown.difference(&documented).collect();
    assert!(surplus.is_empty(), "not documented: {surplus:?}");
    if !is_on_foundationdb() {
        let missing: Vec<_> = documented.difference(&shown).collect();
        assert!(missing.is_empty(), "not there: {missing:?}");
    }
}

#[test]
fn durations_are_told_in_buckets() {
    let (server, address) = server();
    let mut socket = server.connect();
    for number in 0..10 {
        socket.run(&format!("RPUSH list {number}"));
    }
    let metrics = scrape(address);
    let of_lists = |suffix: &str, labels: &str| {
        let name = format!("quoin_command_duration_seconds{suffix}{{{labels}group=\"list\"}}");
        metrics[&name]
    };
    assert_eq!(of_lists("_count", ""), 10.0);
    assert_eq!(of_lists("_bucket", "le=\"+Inf\","), 10.0);
    assert!(of_lists("_sum", "") > 0.0);
    let commits = metrics["quoin_commit_duration_seconds_count"];
    assert!(commits >= 10.0, "{commits}");
    if !is_on_foundationdb() {
        assert!(metrics["quoin_sync_duration_seconds_count"] >= commits);
        assert!(metrics["quoin_journal_backlog_bytes"] > 0.0);
        let used = metrics["quoin_store_disk_used_bytes"];
        assert!(used > 0.0 && used <= metrics["quoin_store_disk_bytes"]);
    }
    assert!(metrics["process_open_fds"] < metrics["process_max_fds"]);
    assert!(metrics["process_resident_memory_bytes"] > 1e6);
}

#[test]
fn wrong_passwords_are_counted() {
    let (server, address) = server_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    for command in ["AUTH wrong", "HELLO 3 AUTH default wrong", "AUTH secret"] {
        socket.run(command);
    }
    assert_eq!(scrape(address)["quoin_wrong_passwords_total"], 2.0);
    let info = socket.run("INFO stats");
    assert!(info.contains("\r\nacl_access_denied_auth:2\r\n"), "{info}");
}

#[test]
fn lengths_of_named_keys_are_shown_and_nothing_is_counted_as_looked_up() {
    let (server, address) = server_with(&["--metrics-keys", "q:* 3/mail log"]);
    let mut socket = server.connect();
    for command in [
        "RPUSH q:list a b c",
        "RPUSH other a",
        "SET q:string value",
        "PQ.PUSH q:pq 1 a",
        "XADD log 1000-1 a b",
        "XADD log 2000-1 a b",
        "TASK.ADD q:tasks 1 a MAXTRIES 1 ID one",
        "TASK.ADD q:tasks 2 b",
        "TASK.ADD q:tasks 3 c DELAY 600000",
        "TASK.TAKE q:tasks LEASE 60000",
        "TASK.NACK q:tasks one",
        "TASK.TAKE q:tasks LEASE 60000",
        "SELECT 3",
        "ZADD mail 1 a 2 b",
    ] {
        let reply = socket.run(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    let length = |key: &str, kind: &str, state: &str| {
        let labels = match key.split_once('/') {
            Some((database, key)) => format!("db=\"{database}\",key=\"{key}\""),
            None => format!("db=\"0\",key=\"{key}\""),
        };
        format!("quoin_queue_length{{{labels},type=\"{kind}\",state=\"{state}\"}}")
    };
    let leased = length("q:tasks", "taskqueue", "leased");
    wait_until("keys are shown", || {
        let shown = scrape(address);
        shown.get(&leased) == Some(&1.0) && shown.contains_key(&length("3/mail", "zset", "ready"))
    });
    let metrics = scrape(address);
    for (name, value) in [
        (length("q:list", "list", "ready"), 3.0),
        (length("q:pq", "pqueue", "ready"), 1.0),
        (length("log", "stream", "ready"), 2.0),
        (length("3/mail", "zset", "ready"), 2.0),
        (length("q:tasks", "taskqueue", "ready"), 0.0),
        (length("q:tasks", "taskqueue", "delayed"), 1.0),
        (length("q:tasks", "taskqueue", "dead"), 1.0),
    ] {
        assert_eq!(metrics.get(&name), Some(&value), "{name}");
    }
    assert!(
        !metrics
            .keys()
            .any(|name| name.contains("q:string") || name.contains("length{db=\"0\",key=\"other"))
    );
    let age = |key: &str| {
        let mut ages = metrics.iter().filter(|(name, _)| {
            name.starts_with("quoin_queue_oldest_age_seconds{") && name.contains(key)
        });
        *ages.next().unwrap().1
    };
    // The id is of 1970.
    assert!(age("log") > 1e9);
    assert!(age("q:list") < 60.0 && age("q:pq") < 60.0 && age("mail") < 60.0);
    assert!(age("q:tasks") < 60.0);
    assert_eq!(metrics["quoin_task_deaths_total"], 1.0);
    assert_eq!(metrics["quoin_task_retries_total"], 0.0);
    assert_eq!(metrics["quoin_queue_keys_left_out"], 0.0);
    assert_eq!(info(&mut socket)["keyspace_hits"], 0.0);

    socket.run("SELECT 0");
    socket.run("DEL q:list");
    socket.run("CONFIG SET metrics-keys q:*");
    wait_until("the settings have changed and the list is empty", || {
        let shown = scrape(address);
        shown.get(&length("q:list", "list", "ready")) == Some(&0.0)
            && !shown.contains_key(&length("3/mail", "zset", "ready"))
    });
}

#[test]
fn the_most_active_queues_have_metrics_without_being_named() {
    let (server, address) = server_with(&["--metrics-queues", "2"]);
    let mut socket = server.connect();
    for command in [
        "RPUSH list a b c",
        "LPOP list 2",
        "TASK.ADD tasks 1 a MAXTRIES 2 ID one",
        "TASK.TAKE tasks LEASE 60000",
        "TASK.NACK tasks one",
        "TASK.TAKE tasks LEASE 60000",
        "TASK.NACK tasks one",
        "SELECT 3",
        "ZADD idle 1 a",
    ] {
        let reply = socket.run(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    let metrics = scrape(address);
    for (name, labels, value) in [
        ("elements_in", "db=\"0\",key=\"list\",type=\"list\"", 3.0),
        ("elements_out", "db=\"0\",key=\"list\",type=\"list\"", 2.0),
        ("retries", "db=\"0\",key=\"tasks\",type=\"taskqueue\"", 1.0),
        ("deaths", "db=\"0\",key=\"tasks\",type=\"taskqueue\"", 1.0),
    ] {
        let name = format!("quoin_queue_{name}_total{{{labels}}}");
        assert_eq!(metrics.get(&name), Some(&value), "{name}");
    }
    let shows = |metrics: &HashMap<String, f64>, key: &str| {
        let key = format!("key=\"{key}\"");
        let mut names = metrics.keys();
        names.any(|name| name.starts_with("quoin_queue_elements_in_total{") && name.contains(&key))
    };
    assert!(!shows(&metrics, "idle"));
    // Two others become more active. The ones already shown stay.
    for _ in 0..10 {
        socket.run("RPUSH first a b c");
        socket.run("RPUSH second a b c");
    }
    let metrics = scrape(address);
    for key in ["list", "tasks", "first", "second"] {
        assert!(shows(&metrics, key), "{key}");
    }
    socket.run("CONFIG SET metrics-queues 0");
    assert!(!shows(&scrape(address), "first"));
}

#[test]
fn who_asks_whether_it_is_well_is_told() {
    let (server, address) = server();
    for path in ["/healthz", "/readyz"] {
        let response = ask(
            address,
            &format!("GET {path} HTTP/1.1\r\nHost: quoin\r\n\r\n"),
        );
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nok\n"), "{response}");
    }
    let ready = || ask(address, "GET /readyz HTTP/1.1\r\nHost: quoin\r\n\r\n");
    let mut socket = server.connect();
    socket.run("SET key value");
    // A cluster has no such bound.
    if !is_on_foundationdb() {
        socket.run("CONFIG SET maxmemory 1");
        let refusing = ready();
        let is_told = refusing.contains("commands that add data are refused: OOM ");
        assert!(
            refusing.starts_with("HTTP/1.1 503 ") && is_told,
            "{refusing}"
        );
        socket.run("CONFIG SET maxmemory 0");
        assert!(ready().starts_with("HTTP/1.1 200 "));
    }
    // A script that does not end keeps the store from responding.
    let mut busy = server.connect();
    busy.send(crate::server::request(&["EVAL", "while true do end", "0"]));
    wait_until("commands are not answered", || {
        ready().starts_with("HTTP/1.1 503 ")
    });
    let alive = ask(address, "GET /healthz HTTP/1.1\r\nHost: quoin\r\n\r\n");
    assert!(alive.starts_with("HTTP/1.1 200 "), "{alive}");
}

#[test]
fn a_server_alone_is_the_leader_of_every_name() {
    let (_server, address) = server();
    for path in ["/leader", "/leader?name=mymaster", "/leader?name=other"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: quoin\r\n\r\n");
        wait_until("it leads", || {
            let response = ask(address, &request);
            response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nok\n")
        });
    }
    let head = ask(address, "HEAD /leader HTTP/1.1\r\nHost: quoin\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
}

/// The names of metrics in an expression, and whether its brackets and strings are closed.
fn names_in(expression: &str) -> Result<BTreeSet<String>, String> {
    let mut open = Vec::new();
    let mut names = BTreeSet::new();
    let mut rest = expression;
    while let Some(letter) = rest.chars().next() {
        let word_end = rest
            .find(|other: char| !(other.is_ascii_alphanumeric() || other == '_' || other == ':'))
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word_end.max(letter.len_utf8()));
        rest = behind;
        match letter {
            '(' | '[' | '{' => open.push(letter),
            ')' | ']' | '}' => {
                let begin = open.pop();
                let fits = matches!(
                    (begin, letter),
                    (Some('('), ')') | (Some('['), ']') | (Some('{'), '}')
                );
                if !fits {
                    return Err(format!("{letter} in {expression}"));
                }
            }
            '"' => {
                let Some((_, behind)) = rest.split_once('"') else {
                    return Err(format!("a string does not end in {expression}"));
                };
                rest = behind;
            }
            _ if letter.is_ascii_alphabetic() && !open.contains(&'{') => {
                let is_function = rest.starts_with('(');
                if word.contains("quoin") || word.starts_with("process_") {
                    names.insert(word.to_owned());
                } else if is_function && !FUNCTIONS.contains(&word) {
                    return Err(format!("{word} is no function that this test knows"));
                }
            }
            _ => {}
        }
    }
    match open.is_empty() {
        true => Ok(names),
        false => Err(format!("{open:?} does not close in {expression}")),
    }
}

/// Functions and aggregations that the files use.
const FUNCTIONS: [&str; 10] = [
    "absent",
    "by",
    "changes",
    "histogram_quantile",
    "increase",
    "label_values",
    "max",
    "predict_linear",
    "rate",
    "sum",
];

fn file_of_config(name: &str) -> String {
    let path = format!("{}/config/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn expressions_of_rules() -> Vec<String> {
    let rules = file_of_config("prometheus-rules.yml");
    let expressions = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    expressions.map(str::to_owned).collect()
}

fn expressions_of_dashboard() -> Vec<String> {
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if name == "expr" => found.push(text.to_owned()),
                        _ => collect(value, found),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let dashboard = serde_json::from_str(&file_of_config("grafana-dashboard.json")).unwrap();
    let mut found = Vec::new();
    collect(&dashboard, &mut found);
    found
}

#[test]
fn rules_and_dashboard_name_metrics_that_there_are() {
    let documented = documented();
    let (rules, panels) = (expressions_of_rules(), expressions_of_dashboard());
    assert!(rules.len() > 15 && panels.len() > 15);
    for expression in rules.iter().chain(&panels) {
        let names = names_in(expression).unwrap();
        // `up` is Prometheus's own.
        assert!(
            !names.is_empty() || expression.starts_with("up{"),
            "{expression}"
        );
        for name in names {
            let base = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .filter(|base| base.ends_with("_duration_seconds"));
            let name = base.unwrap_or(&name);
            assert!(documented.contains(name), "{name} in {expression}");
        }
    }
    for wrong in ["rate(quoin_a[5m]", "sum(a)]", "nosuch(quoin_a)", "a{b=\"c}"] {
        assert!(names_in(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_rule_about_backups_sees_a_server_without_any() {
    if crate::server::is_on_foundationdb() {
        return;
    }
    // What is to the left of `unless` must exist, and what is to the right must not.
    let rules = expressions_of_rules();
    let alternative = "or quoin_backups_total unless quoin_backup_age_seconds";
    assert!(
        rules.iter().any(|rule| rule.ends_with(alternative)),
        "{rules:?}"
    );
    let (server, address) = server();
    let without = text(address);
    assert!(without.contains("\nquoin_backups_total 0"), "{without}");
    assert!(
        !without.contains("\nquoin_backup_age_seconds "),
        "{without}"
    );
    assert_eq!(server.connect().run("SAVE"), "+OK\r\n");
    assert!(text(address).contains("\nquoin_backup_age_seconds "));
}

#[test]
fn promtool_takes_the_rules() {
    let path = format!("{}/config/prometheus-rules.yml", env!("CARGO_MANIFEST_DIR"));
    let checked = std::process::Command::new("promtool")
        .args(["check", "rules", &path])
        .output();
    match checked {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => eprintln!("skipped: promtool cannot be run: {error}"),
    }
}

#[test]
fn there_is_nothing_else_there() {
    let (_server, address) = server();
    let other = ask(address, "GET / HTTP/1.1\r\nHost: quoin\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    let posted = ask(
        address,
        "POST /metrics HTTP/1.1\r\nHost: quoin\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    assert!(posted.contains("\r\nallow: GET, HEAD\r\n"), "{posted}");
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\nHost: quoin\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn who_asks_for_nothing_holds_up_neither_commands_nor_for_long_others_who_ask() {
    let (server, address) = server();
    let idle: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let started = Instant::now();
    assert_eq!(server.connect().run("RPUSH list a"), ":1\r\n");
    assert!(started.elapsed() < Duration::from_secs(1));
    // Those that have left are skipped.
    drop(idle);
    assert!(text(address).contains("\nquoin_connected_clients "));
}

#[test]
fn the_slowest_are_cut_off() {
    let (_server, address) = server();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHo").unwrap();
    let mut rest = Vec::new();
    // The connection ends, one way or another.
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn an_address_that_is_taken_is_named_at_the_start() {
    let (_server, address) = server();
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--metrics-address", &address.to_string()];
    let Err(log) = Server::start_in(folder.path(), &flags) else {
        panic!("two servers at {address}");
    };
    assert!(
        log.contains(&format!("cannot listen on {address}: ")),
        "{log}"
    );
}

#[test]
fn nothing_is_served_where_nothing_is_asked_for() {
    let server = Server::start();
    assert!(!server.log().contains("metrics"));
}

#[test]
fn a_server_that_is_asked_ends_all_the_same() {
    let (mut server, address) = server();
    let _idle = TcpStream::connect(address).unwrap();
    let started = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(TcpStream::connect(address).is_err());
}
