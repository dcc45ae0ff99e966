//! A bare client of FoundationDB: for each request, it makes as many reads and writes as a command
//! cannot do without. It has as many requests in flight as the clients, in as many transactions as
//! a server has in progress.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use foundationdb::api::NetworkAutoStop;
use foundationdb::{Database, FdbResult, RangeOption, Transaction};
use futures_util::future::try_join_all;
use quoin_base::random::{Random, SystemRandom};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::rows::VALUE;
use crate::server;

/// Maximum number of concurrent transactions of a server.
const AT_ONCE: u64 = 8;
const DURATION: Duration = Duration::from_secs(3);
const FILL_ROWS: u64 = 1_000;
/// The rows that it does.
const KNOWN: [&str; 8] = [
    "SET",
    "GET",
    "INCR",
    "HSET",
    "HGETALL of 10",
    "SADD",
    "SPOP",
    "MSET of 10",
];

/// The client, with its own rows, which it clears at the end.
pub(crate) struct Bare {
    database: Database,
    runtime: Runtime,
    root: String,
    rows: u64,
    _network: NetworkAutoStop,
}

impl Bare {
    /// Fills strings, and hashes of one row.
    pub(crate) fn open(rows: u64) -> Self {
        let file: &Path = server::foundationdb::find().unwrap();
        // SAFETY: the guard is dropped with the client, at the end of the program.
        #[allow(unsafe_code)]
        let network = unsafe { foundationdb::boot() };
        let bare = Self {
            database: Database::new(file.to_str()).unwrap(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
            root: format!("bare-{:016x}-", SystemRandom.next_u64()),
            rows,
            _network: network,
        };
        bare.runtime.block_on(async {
            for from in (0..rows).step_by(FILL_ROWS as usize) {
                let transaction = bare.database.create_trx().unwrap();
                for number in from..(from + FILL_ROWS).min(rows) {
                    transaction.set(&bare.key("key", number), VALUE.as_bytes());
                    transaction.set(&bare.key("job", number), VALUE.repeat(3).as_bytes());
                    transaction.set(&bare.key("set", number), b"");
                }
                transaction.commit().await.unwrap();
            }
        });
        bare
    }

    fn key(&self, kind: &str, number: u64) -> Vec<u8> {
        format!("{}{kind}:{number:012}", self.root).into_bytes()
    }

    /// Requests a second. `None` for a command that it does not know.
    pub(crate) fn rate(&self, command: &str, clients: u64, pipeline: u64) -> Option<f64> {
        if !KNOWN.contains(&command) {
            return None;
        }
        let in_flight = clients * pipeline;
        let at_once = AT_ONCE.min(in_flight);
        let each = in_flight / at_once;
        let done = Cell::new(0_u64);
        let started = Instant::now();
        LocalSet::new().block_on(&self.runtime, async {
            let workers = (0..at_once).map(|_| async {
                while started.elapsed() < DURATION {
                    let mut transaction = self.database.create_trx()?;
                    loop {
                        let error = match self.attempt(&transaction, command, each).await {
                            Ok(()) => match transaction.commit().await {
                                Ok(_) => break,
                                Err(error) => {
                                    transaction = error.on_error().await?;
                                    continue;
                                }
                            },
                            Err(error) => error,
                        };
                        transaction = transaction.on_error(error).await?;
                    }
                    done.set(done.get() + each);
                }
                FdbResult::Ok(())
            });
            try_join_all(workers.collect::<Vec<_>>()).await.unwrap();
        });
        Some(done.get() as f64 / started.elapsed().as_secs_f64())
    }

    async fn attempt(&self, transaction: &Transaction, command: &str, each: u64) -> FdbResult<()> {
        let random = |kind: &str| self.key(kind, SystemRandom.next_u64() % self.rows);
        let rows = if command.starts_with("MSET") {
            each * 10
        } else {
            each
        };
        let kind = match command {
            "HGETALL of 10" => "job",
            "HSET" => "field",
            "INCR" => "counter",
            "SADD" | "SPOP" => "set",
            _ => "key",
        };
        let keys: Vec<Vec<u8>> = (0..rows).map(|_| random(kind)).collect();
        // Without conflicts, because the cluster should be measured.
        if command == "SPOP" {
            let end = self.key(kind, self.rows);
            let reads = keys.iter().map(|key| {
                let range = (key.clone(), end.clone());
                let option = RangeOption {
                    limit: Some(1),
                    ..RangeOption::from(range)
                };
                transaction.get_range(&option, 1, true)
            });
            for row in try_join_all(reads.collect::<Vec<_>>())
                .await?
                .iter()
                .flatten()
            {
                transaction.clear(row.key());
            }
            return Ok(());
        }
        // SET and MSET read the key's type and length.
        let reads = keys.iter().map(|key| transaction.get(key, true));
        try_join_all(reads.collect::<Vec<_>>()).await?;
        if !matches!(command, "GET" | "HGETALL of 10") {
            for key in &keys {
                transaction.set(key, VALUE.as_bytes());
            }
        }
        Ok(())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let end = format!("{}~", self.root);
        self.runtime.block_on(async {
            let transaction = self.database.create_trx().unwrap();
            transaction.clear_range(self.root.as_bytes(), end.as_bytes());
            transaction.commit().await.unwrap();
        });
    }
}
