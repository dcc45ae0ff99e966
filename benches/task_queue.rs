//! Task queues over the wire, with every commit synced: the table of the task document (random
//! needs, and the worst case, in which only the very last task fits), compared with its dict of
//! dicts in Python. Then other numbers of priorities and resources, and mixtures that are hard for
//! an index of minima. `cargo bench --bench task_queue -- --help` for settings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/measures.rs"]
mod measures;
#[path = "../tests/support/resp.rs"]
mod resp;
#[path = "../tests/support/server.rs"]
mod server;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Arg, value_parser};
use quoin_base::random::{Random, SeededRandom, SystemRandom};

use measures::{median, used_cpu_us};
use resp::{Connection, Value, Words};
use server::Server;

/// Commands in one pipeline while a queue is filled.
const PIPELINE: u64 = 2_000;
/// Calls of the reference implementation, each of which may take seconds.
const YARDSTICK_CALLS_MAX: u64 = 10;

/// The head of the table of cases.
const HEADER: &str = "| tasks | priorities | resources | mix | added a second | server, MB at a half and full | take, ms: mean ± deviation, median, longest | LPUSH to another key, ms: mean, median | peek at once, ms | dict of dicts, ms |
|---|---|---|---|---|---|---|---|---|---|";
/// Takes in one pipeline while takes with all options are compared to takes without.
const TAKES: u64 = 16;
/// Groups of its tasks.
const GROUPS: u64 = 100;
/// Takes, or pipelines of them, before the tasks are acknowledged.
const CONSUMERS: u64 = 50;

/// What tasks need.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mix {
    /// Random amounts from 1 to 100, and the same for consumers.
    Random,
    /// More than any consumer has, except for the last task.
    Worst,
    /// Little of one resource and much of another, or the other way round. Consumers do not have
    /// enough for both.
    Crossed,
    /// The same with closer amounts: the small one is more than half of the large one.
    Close,
}

struct Case {
    tasks: u64,
    priorities: u64,
    resources: u64,
    mix: Mix,
}

fn main() {
    let matches = clap::Command::new("task_queue")
        .arg(
            Arg::new("tasks")
                .long("tasks")
                .help("Lengths of the queues of the table")
                .value_delimiter(',')
                .default_value("10000,5000000")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("cases")
                .long("cases")
                .help("Cases of the table")
                .value_delimiter(',')
                .value_parser(["random", "worst"])
                .default_value("random,worst"),
        )
        .arg(
            Arg::new("others")
                .long("others")
                .help("Length of the queues with other priorities, resources and mixtures; 0: none")
                .default_value("200000")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("options")
                .long("options")
                .help("Tasks of each queue that compares takes with all options to takes without; 0: none")
                .default_value("20000")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .help("Rounds of this comparison, by turns")
                .default_value("5")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("calls")
                .long("calls")
                .help("Calls that are timed")
                .default_value("100")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("pause-ms")
                .long("pause-ms")
                .help("Time between calls, in which processors fall asleep")
                .default_value("0")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("rest-seconds")
                .long("rest-seconds")
                .help("Time between additions and calls, in which the index is brought up to date")
                .default_value("2")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("folder")
                .long("folder")
                .help("Where data folders are made"),
        )
        .arg(
            Arg::new("store")
                .long("store")
                .help(
                    "On FoundationDB: the cluster of FDB_CLUSTER_FILE, or an own fdbserver from \
                     the PATH with the ssd engine; build with --features fdb",
                )
                .value_parser(["embedded", "foundationdb"])
                .default_value("embedded"),
        )
        // The argument that cargo passes to every bench.
        .arg(Arg::new("bench").long("bench").num_args(0).hide(true))
        .get_matches();
    let calls = *matches.get_one::<u64>("calls").unwrap();
    let on = Place {
        cluster: (matches.get_one::<String>("store").unwrap() == "foundationdb").then(Cluster::get),
        folder: matches.get_one::<String>("folder").cloned(),
        rest: Duration::from_secs(*matches.get_one::<u64>("rest-seconds").unwrap()),
        pause: Duration::from_millis(*matches.get_one::<u64>("pause-ms").unwrap()),
    };
    println!("{HEADER}");
    let cases: Vec<&String> = matches.get_many("cases").unwrap().collect();
    for tasks in matches.get_many::<u64>("tasks").unwrap().copied() {
        let yardstick = dict_of_dicts(tasks, 10, 2, calls.min(YARDSTICK_CALLS_MAX));
        let mixes = [("random", Mix::Random), ("worst", Mix::Worst)];
        for ((name, mix), yardstick) in mixes.into_iter().zip(yardstick) {
            if !cases.iter().any(|case| *case == name) {
                continue;
            }
            let case = Case {
                tasks,
                priorities: 10,
                resources: 2,
                mix,
            };
            run(&case, calls, &yardstick, &on);
        }
    }
    let tasks = *matches.get_one::<u64>("options").unwrap();
    if tasks > 0 {
        options(tasks, *matches.get_one::<u64>("rounds").unwrap(), &on);
    }
    let tasks = *matches.get_one::<u64>("others").unwrap();
    if tasks == 0 {
        return;
    }
    println!("{HEADER}");
    let shapes = [
        (1, 2, Mix::Random),
        (1, 2, Mix::Worst),
        (1_000, 2, Mix::Random),
        (1_000, 2, Mix::Worst),
        (100_000, 2, Mix::Random),
        (100_000, 2, Mix::Worst),
        (10, 1, Mix::Random),
        (10, 1, Mix::Worst),
        (10, 4, Mix::Random),
        (10, 4, Mix::Worst),
        (10, 8, Mix::Random),
        (10, 8, Mix::Worst),
        (10, 2, Mix::Crossed),
        (10, 2, Mix::Close),
    ];
    for (priorities, resources, mix) in shapes {
        let case = Case {
            tasks,
            priorities,
            resources,
            mix,
        };
        run(&case, calls, "", &on);
    }
}

/// Means and deviations of the yardstick's two cases, in milliseconds.
fn dict_of_dicts(tasks: u64, priorities: u64, resources: u64, calls: u64) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/dict_of_dicts.py");
    let output = Command::new("python3")
        .arg(script)
        .args([tasks, priorities, resources, calls].map(|number| number.to_string()))
        .stderr(Stdio::null())
        .output();
    let text = output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let mut shown: Vec<String> = text
        .lines()
        .map(|line| {
            let numbers: Vec<f64> = line
                .split(' ')
                .filter_map(|word| word.parse().ok())
                .collect();
            format!("{:.3} ± {:.3}", numbers[0] * 1e3, numbers[1] * 1e3)
        })
        .collect();
    shown.resize(2, "(no python3)".to_owned());
    shown
}

fn amounts(case: &Case, random: &SeededRandom, number: u64) -> Vec<u64> {
    let between = |least: u64, most: u64| least + random.below(most - least + 1);
    let is_last = number + 1 == case.tasks;
    match case.mix {
        Mix::Random => (0..case.resources).map(|_| between(1, 100)).collect(),
        Mix::Worst if is_last => vec![10; case.resources as usize],
        Mix::Worst => (0..case.resources).map(|_| between(11, 100)).collect(),
        Mix::Crossed if is_last => vec![50, 50],
        Mix::Crossed if random.below(2) == 0 => vec![between(1, 9), between(91, 99)],
        Mix::Crossed => vec![between(91, 99), between(1, 9)],
        Mix::Close if is_last => vec![90, 90],
        Mix::Close if random.below(2) == 0 => vec![between(65, 80), between(100, 120)],
        Mix::Close => vec![between(100, 120), between(65, 80)],
    }
}

fn words(line: &str, amounts: &[u64]) -> Words {
    let mut words: Words = line
        .split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect();
    for (name, amount) in amounts.iter().enumerate() {
        words.push(format!("r{name}").into_bytes());
        words.push(amount.to_string().into_bytes());
    }
    words
}

fn add(case: &Case, random: &SeededRandom, number: u64) -> Words {
    // The only task that fits is the very last.
    let is_last = number + 1 == case.tasks && case.mix != Mix::Random;
    let priority = if is_last {
        case.priorities
    } else {
        random.below(case.priorities)
    };
    let amounts = amounts(case, random, number);
    words(
        &format!("TASK.ADD q {priority} payload-{number} NEEDS"),
        &amounts,
    )
}

/// What consumers have.
fn having(case: &Case, random: &SeededRandom) -> Vec<u64> {
    match case.mix {
        Mix::Random => (0..case.resources).map(|_| 1 + random.below(100)).collect(),
        Mix::Worst => vec![10; case.resources as usize],
        Mix::Crossed => vec![50, 50],
        Mix::Close => vec![90, 90],
    }
}

/// Where servers keep their data.
struct Place {
    cluster: Option<Cluster>,
    folder: Option<String>,
    /// Time between additions and calls.
    rest: Duration,
    /// Time between calls.
    pause: Duration,
}

/// A FoundationDB cluster.
struct Cluster {
    file: String,
    #[cfg(feature = "fdb")]
    _own: Option<server::foundationdb::OwnCluster>,
}

impl Cluster {
    #[cfg(feature = "fdb")]
    fn get() -> Self {
        if let Ok(file) = std::env::var("FDB_CLUSTER_FILE") {
            return Self { file, _own: None };
        }
        let own = server::foundationdb::OwnCluster::start_on("ssd").unwrap();
        Self {
            file: own.file().into_os_string().into_string().unwrap(),
            _own: Some(own),
        }
    }

    #[cfg(not(feature = "fdb"))]
    fn get() -> Self {
        panic!("this bench is built without FoundationDB (build with --features fdb)");
    }
}

/// A server on an empty store.
fn start(on: &Place, folder: &std::path::Path) -> Server {
    let Some(cluster) = &on.cluster else {
        return Server::start_in(folder, &[]).unwrap();
    };
    let root_prefix = format!("bench-{:016x}", SystemRandom.next_u64());
    let flags = ["--store", "fdb", "--cluster-file", &cluster.file];
    let flags = [&flags[..], &["--root-prefix", &root_prefix]].concat();
    Server::start_in(folder, &flags).unwrap()
}

fn milliseconds(connection: &mut Connection, command: &Words) -> (f64, Value) {
    let started = Instant::now();
    let reply = connection.command(command).unwrap();
    (started.elapsed().as_secs_f64() * 1e3, reply)
}

/// The mean, the median and the longest; sorts.
fn summary(times_ms: &mut [f64]) -> (f64, f64, f64) {
    times_ms.sort_by(f64::total_cmp);
    let mean = times_ms.iter().sum::<f64>() / times_ms.len() as f64;
    (
        mean,
        times_ms[times_ms.len() / 2],
        times_ms[times_ms.len() - 1],
    )
}

fn run(case: &Case, calls: u64, yardstick: &str, on: &Place) {
    let folder = match &on.folder {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let server = start(on, folder.path());
    let mut connection = Connection::open(server.address()).unwrap();
    let random = SeededRandom::new(1);
    let started = Instant::now();
    let mut half_mb = 0;
    let mut number = 0;
    while number < case.tasks {
        let end = case.tasks.min(number + PIPELINE);
        let commands: Vec<Words> = (number..end).map(|n| add(case, &random, n)).collect();
        for reply in connection.pipeline(&commands).unwrap() {
            assert!(reply.bytes().is_some(), "{reply:?}");
        }
        if number < case.tasks / 2 && end >= case.tasks / 2 {
            half_mb = server.memory_bytes() / 1_000_000;
        }
        number = end;
    }
    let filling = started.elapsed();
    let full_mb = server.memory_bytes() / 1_000_000;
    let having = || having(case, &random);
    // Before the work that the additions have left is done.
    let at_once = words("TASK.PEEK q HAVING", &having());
    let (at_once_ms, _) = milliseconds(&mut connection, &at_once);
    std::thread::sleep(on.rest);
    let mut times_ms = Vec::new();
    let mut commits_ms = Vec::new();
    for _ in 0..calls {
        std::thread::sleep(on.pause);
        let command = words("TASK.TAKE q HAVING", &having());
        let (time_ms, reply) = milliseconds(&mut connection, &command);
        times_ms.push(time_ms);
        if case.mix != Mix::Random {
            assert!(matches!(reply, Value::Aggregate(_, Some(_))), "{reply:?}");
            let again = add(case, &random, case.tasks - 1);
            connection.command(&again).unwrap();
        }
        // The current duration of a commit alone.
        let command = words("LPUSH other payload", &[]);
        commits_ms.push(milliseconds(&mut connection, &command).0);
    }
    let (mean, median, longest) = summary(&mut times_ms);
    let (commit_mean, commit_median, _) = summary(&mut commits_ms);
    let squares: f64 = times_ms.iter().map(|time| (time - mean).powi(2)).sum();
    let deviation = (squares / (times_ms.len() as f64 - 1.0).max(1.0)).sqrt();
    println!(
        "| {} | {} | {} | {:?} | {:.0} | {half_mb}, {full_mb} | {mean:.3} ± {deviation:.3}, {median:.3}, {longest:.3} | {commit_mean:.3}, {commit_median:.3} | {at_once_ms:.3} | {yardstick} |",
        case.tasks,
        case.priorities,
        case.resources,
        case.mix,
        case.tasks as f64 / filling.as_secs_f64(),
    );
    if on.cluster.is_some() {
        connection.command(&["FLUSHALL"]).unwrap();
        println!("{}", upkeep(&mut connection));
    }
    drop(server);
}

/// Takes under a lease, with resources, of a queue without options, and of one with all of them whose tasks have what a
/// task can have.
fn options(tasks: u64, rounds: u64, on: &Place) {
    let folder = match &on.folder {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let server = start(on, folder.path());
    let mut connection = Connection::open(server.address()).unwrap();
    let set = "TASK.SETOPTIONS all MAXTRIES 9 BACKOFF 1000 BACKOFFMAX 60000 JITTER 20 LEASE 600000 TTL 3600000 \
               MAXLEN 100000000 LEASES 100000000 GROUPLEASES 100 RATE 100000000 600000 OVERFLOW DROP \
               DEADLETTER dead";
    println!(
        "| takes | plain, us | with all options, us | ratio | processor us, plain | with all | ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    for pipeline in [1, TAKES] {
        let mut times = [Vec::new(), Vec::new()];
        let mut processor = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                let key = ["plain", "all"][which];
                connection.command(&["DEL", "plain", "all"]).unwrap();
                if which == 1 {
                    let reply = connection.command(&words(set, &[])).unwrap();
                    assert!(reply.error().is_none(), "{reply:?}");
                }
                let additions: Vec<Words> = (0..tasks)
                    .map(|number| {
                        let more = match which {
                            0 => String::new(),
                            _ => format!(
                                "GROUP g{} UNIQUE token-{round}-{pipeline}-{number} 600000 ",
                                number % GROUPS
                            ),
                        };
                        let line = format!("TASK.ADD {key} 1 payload-{number} {more}NEEDS");
                        words(&line, &[1 + number % 50, 1 + number % 70])
                    })
                    .collect();
                for some in additions.chunks(PIPELINE as usize) {
                    for reply in connection.pipeline(some).unwrap() {
                        assert!(reply.bytes().is_some(), "{reply:?}");
                    }
                }
                std::thread::sleep(on.rest);
                let line = match which {
                    0 => "TASK.TAKE plain LEASE 600000 HAVING",
                    _ => "TASK.TAKE all LEASE 600000 WORKER w1 HAVING",
                };
                let takes = vec![words(line, &[100, 100]); pipeline as usize];
                let calls = if pipeline == 1 { tasks / 10 } else { tasks };
                let (mut took_us, mut used_us) = (0.0, 0.0);
                for _ in 0..calls / pipeline / CONSUMERS {
                    let before_us = used_cpu_us(server.address());
                    let started = Instant::now();
                    let mut acknowledgements = Vec::new();
                    for _ in 0..CONSUMERS {
                        for reply in connection.pipeline(&takes).unwrap() {
                            acknowledgements.push(acknowledgement(key, &reply));
                        }
                    }
                    took_us += started.elapsed().as_secs_f64() * 1e6;
                    used_us += used_cpu_us(server.address()) - before_us;
                    connection.pipeline(&acknowledgements).unwrap();
                }
                times[which].push(took_us / calls as f64);
                processor[which].push(used_us / calls as f64);
            }
        }
        let [plain, all] = times.map(|mut times| median(&mut times));
        let [plain_cpu, all_cpu] = processor.map(|mut times| median(&mut times));
        println!(
            "| {pipeline} at a time | {plain:.1} | {all:.1} | {:.2} | {plain_cpu:.1} | {all_cpu:.1} | {:.2} |",
            all / plain,
            all_cpu / plain_cpu,
        );
    }
}

/// The TASK.ACK of a task that was taken.
fn acknowledgement(key: &str, taken: &Value) -> Words {
    let Value::Aggregate(_, Some(tasks)) = taken else {
        panic!("{taken:?}");
    };
    let Value::Aggregate(_, Some(parts)) = &tasks[0] else {
        panic!("{taken:?}");
    };
    let id = parts[0].bytes().unwrap().to_vec();
    vec![b"TASK.ACK".to_vec(), key.into(), id]
}

/// The conflicts in INFO.
fn upkeep(connection: &mut Connection) -> String {
    let info = connection.command(&["INFO", "quoin"]).unwrap();
    let info = String::from_utf8_lossy(info.bytes().unwrap()).into_owned();
    let fields = info.lines().filter(|line| {
        ["batches:", "commits:", "conflicts:", "retries:"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    fields.collect::<Vec<_>>().join(", ")
}
