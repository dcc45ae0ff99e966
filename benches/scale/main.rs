//! How far Quoin scales on FoundationDB: 1, 2, 4, 8 servers on one hot queue and on a thousand,
//! compared with a bare client that writes and clears the same rows in transactions of the same
//! size. `cargo bench --features fdb --bench scale -- --help` for settings.
//! docs/understand/scaling.md explains the figures.
//!
//! Runs on the cluster that `FDB_CLUSTER_FILE` names, under separate root prefixes that are cleared
//! at the end. Without that variable it starts its own `fdbserver`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod bare;
mod idle;
mod ledger;
mod queues;
mod report;
#[path = "../../tests/support/server.rs"]
mod server;
mod servers;
mod settings;
mod wire;
mod worker;
mod workload;

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use foundationdb::Database;
use quoin_base::random::{Random, SystemRandom};

use bare::{BareCase, Mix};
use report::Row;
use settings::{Load, Settings};
use workload::{Case, Measured};

/// Everything that cases need.
struct Bench {
    settings: Settings,
    cluster_file: &'static Path,
    database: Rc<Database>,
    root_prefix: String,
    bare_prefix: String,
    is_sound: bool,
}

fn main() -> ExitCode {
    let settings = Settings::parse();
    let cluster_file = match server::foundationdb::find() {
        Ok(cluster_file) => cluster_file,
        Err(reason) => {
            eprintln!("no FoundationDB: {reason}");
            return ExitCode::FAILURE;
        }
    };
    // SAFETY: the guard is dropped at the end of this function, before the process exits. A panic
    // in between also unwinds through here.
    #[allow(unsafe_code)]
    let network = unsafe { foundationdb::boot() };
    let database = Database::new(cluster_file.to_str()).unwrap();
    // One thread, because the load must leave the processors to the programs being measured.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let number = SystemRandom.next_u64();
    let mut bench = Bench {
        settings,
        cluster_file,
        database: Rc::new(database),
        root_prefix: format!("scale-{number:016x}"),
        bare_prefix: format!("bare--{number:016x}"),
        is_sound: true,
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, bench.run());
    let is_sound = bench.is_sound;
    drop(bench);
    drop(network);
    match is_sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

impl Bench {
    async fn run(&mut self) {
        println!(
            "Elements of {} bytes, {} clients{}, pipelines of {}; load average before: {}",
            self.settings.payload_bytes,
            self.settings.clients,
            match self.settings.has_clients_of_each {
                true => " of each server",
                false => "",
            },
            self.settings.pipeline,
            servers::load_average()
        );
        println!(
            "of 1: of what one server does; bare: a client of FoundationDB with the same rows; \
             each: operations of a commit; under: transactions under way; conflicts, retries and \
             unknown results of a commit; empty: pops that found nothing; load, serv, rest: processors used by this program, the \
             servers, everything else"
        );
        let loads = self.settings.loads.clone();
        for load in loads {
            if load == Load::Idle {
                self.idle().await;
                continue;
            }
            for queues in self.settings.queues.clone() {
                self.table(load, queues).await;
            }
        }
        self.clear().await;
        println!();
        println!("Load average after: {}", servers::load_average());
        if !self.is_sound {
            println!("ELEMENTS WERE LOST, DOUBLED OR REFUSED, see above");
        }
    }

    async fn clear(&self) {
        for root in [&self.root_prefix, &self.bare_prefix] {
            bare::clear_root(&self.database, root).await.unwrap();
        }
    }

    async fn idle(&self) {
        let servers = servers::start(1, self.cluster_file, &self.root_prefix);
        let address = servers[0].address();
        idle::run(&self.settings, address, &self.database, &self.bare_prefix)
            .await
            .unwrap();
    }

    /// All numbers of servers, in turns, round by round.
    async fn table(&mut self, load: Load, queues: usize) {
        let counts = self.settings.servers.clone();
        let mut rows = vec![Vec::new(); counts.len()];
        for _ in 0..self.settings.rounds {
            for (count, rows) in counts.iter().zip(&mut rows) {
                rows.push(self.case(load, queues, *count).await);
            }
        }
        let title = match queues {
            1 => "one queue".to_owned(),
            many => format!("{many} queues"),
        };
        report::print_header(&format!(
            "{}, {title} (target of bare: ≥ 0.70):",
            load.name()
        ));
        let rows: Vec<Row> = rows.into_iter().filter_map(report::median_row).collect();
        let alone = rows.iter().find(|row| row.servers == 1);
        let alone = alone.map(|row| row.per_s);
        for row in &rows {
            report::print_row(row, alone);
        }
        let Some((last, alone)) = rows.last().zip(alone) else {
            return;
        };
        if load == Load::Pop && queues == 1 && last.servers > 1 {
            let ratio = last.per_s / alone;
            println!(
                "{} servers do {ratio:.2} of one; target ≥ 0.90",
                last.servers
            );
        }
    }

    async fn case(&mut self, load: Load, queues: usize, count: usize) -> Row {
        let servers = servers::start(count, self.cluster_file, &self.root_prefix);
        let used = if self.settings.has_leader { 1 } else { count };
        let case = Case {
            settings: &self.settings,
            load,
            queues,
            addresses: servers
                .iter()
                .map(server::Server::address)
                .take(used)
                .collect(),
            processes: servers.iter().map(server::Server::process_id).collect(),
        };
        let measured = workload::run(&case).await;
        let measured = measured.unwrap_or_else(|error| {
            let logs: Vec<String> = servers.iter().map(server::Server::log).collect();
            panic!("{error}; the servers said:\n{}", logs.join("\n"))
        });
        drop(servers);
        self.judge(load, queues, count, &measured);
        let mut row = row(&measured, load, count);
        if self.settings.has_bare && row.commits_per_s > 0.0 {
            self.beside(load, queues, &measured, &mut row).await;
        }
        self.clear().await;
        row
    }

    fn judge(&mut self, load: Load, queues: usize, count: usize, measured: &Measured) {
        let verdict = measured.verdict;
        if verdict.is_good() && verdict.uncertain == 0 && measured.errors.is_empty() {
            return;
        }
        self.is_sound = false;
        println!(
            "{}, {queues} queues, {count} servers: {} lost, {} twice, {} never pushed, {} refused; {}",
            load.name(),
            verdict.missing,
            verdict.doubled,
            verdict.unknown,
            verdict.uncertain,
            measured.errors.join("; ")
        );
    }

    /// The bare client with the same transactions.
    async fn beside(&self, load: Load, queues: usize, measured: &Measured, row: &mut Row) {
        let commits = measured.reading.counters.commits.max(1) as f64;
        let work = measured.reading.work;
        let each = |count: u64| count as f64 / commits;
        let mix = Mix {
            // An entry of a stream is a row and a part of its length too.
            list_pushes: each(work.list_pushes + work.stream_pushes),
            list_pops: each(work.list_pops),
            set_pushes: each(work.set_pushes),
            set_pops: each(work.set_pops),
            deliveries: each(work.stream_pops),
        };
        let pops = mix.list_pops + mix.set_pops + mix.deliveries;
        let at_once = (row.at_once.round() as usize).max(1);
        let fill = match load {
            _ if load.is_filled() => self.settings.fill,
            // Enough for the first pops. Every transaction pushes as much.
            _ if pops > 0.0 => (2.0 * pops.ceil()) as usize * at_once + queues,
            _ => 0,
        };
        let case = BareCase {
            database: Rc::clone(&self.database),
            root_prefix: &self.bare_prefix,
            payload_bytes: self.settings.payload_bytes,
            queues,
            at_once,
            mix,
            fill,
            ends_when_empty: load.is_filled(),
            settle: self.settings.settle,
            warm_up: self.settings.warm_up,
            duration: self.settings.duration,
        };
        let mut bare = bare::run(&case).await.unwrap();
        bare.latencies_us.sort_unstable();
        row.bare_per_s = Some(bare.commits_per_s * row.per_commit);
        row.bare_p50_ms = report::percentile_ms(&bare.latencies_us, 0.5);
    }
}

fn row(measured: &Measured, load: Load, servers: usize) -> Row {
    let reading = &measured.reading;
    let elapsed_s = reading.elapsed.as_secs_f64();
    let counters = reading.counters;
    let commits = counters.commits.max(1) as f64;
    let operations = workload::operations(load, &reading.work) as f64;
    let mut row = Row {
        servers,
        per_s: measured.operations as f64 / measured.window.as_secs_f64(),
        commits_per_s: counters.commits as f64 / elapsed_s,
        per_commit: operations / commits,
        at_once: counters.batches_us as f64 / 1e6 / elapsed_s,
        conflicts: counters.conflicts as f64 / commits,
        retries: counters.retries as f64 / commits,
        unknown_results: counters.unknown_results as f64 / commits,
        empty: reading.nils as f64 / operations.max(1.0),
        ..Row::default()
    };
    row.set_latencies(&mut measured.latencies_us.clone());
    row.set_cpu(reading.cpu, elapsed_s);
    row
}
