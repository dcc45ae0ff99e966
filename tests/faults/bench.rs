//! Executors on a store that fails on purpose, without a server around them.

use std::sync::Arc;

use bytes::Bytes;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::random::SeededRandom;
use quoin_data::command::call::Invocation;
use quoin_data::unit::startup;
use quoin_engine::{Call, Executor, ExecutorOptions};
use quoin_layout::Layout;
use quoin_resp::reply::Reply;
use quoin_store::Store;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};
use tempfile::TempDir;

/// The words of a command.
pub type Words = Vec<Vec<u8>>;

/// One store, and an executor for each server on it.
pub struct Bench<S: Store> {
    pub store: Arc<FaultyStore<S>>,
    pub servers: Vec<Executor>,
    pub runtime: tokio::runtime::Runtime,
    _folder: TempDir,
}

/// A single-writer store, whose executor runs one batch at a time.
pub fn embedded() -> Bench<EmbeddedStore> {
    Bench::new(1, None, |store| store)
}

/// A store that behaves like a cluster, with several servers on it.
pub fn cluster(servers: usize) -> Bench<OptimisticStore<EmbeddedStore>> {
    Bench::new(servers, None, OptimisticStore::new)
}

impl<S: Store> Bench<S> {
    /// `transaction_bytes_max`: the maximum transaction size that the store claims.
    pub fn new(
        servers: usize,
        transaction_bytes_max: Option<usize>,
        wrap: impl FnOnce(EmbeddedStore) -> S,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inner = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let random = Arc::new(SeededRandom::new(11));
        let store = FaultyStore::new(wrap(inner), FaultRates::default(), random);
        if let Some(bytes) = transaction_bytes_max {
            store.set_transaction_bytes_max(bytes);
        }
        let store = Arc::new(store);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let servers = (0..servers)
            .map(|number| {
                let clock: Arc<dyn Clock> = Arc::new(SystemClock);
                let random = Arc::new(SeededRandom::new(number as u64));
                let environment = runtime
                    .block_on(startup::prepare(
                        &*store,
                        Layout::new("test"),
                        clock,
                        random,
                    ))
                    .unwrap();
                let store = Arc::clone(&store) as Arc<dyn Store>;
                Executor::start(store, environment, ExecutorOptions::default()).unwrap()
            })
            .collect();
        Self {
            store,
            servers,
            runtime,
            _folder: folder,
        }
    }

    /// Runs a pipeline on the first server.
    pub fn pipeline(&self, lines: &[&str]) -> Vec<Reply> {
        let commands: Vec<Words> = lines.iter().map(|line| words(line)).collect();
        self.runtime.block_on(submit(&self.servers[0], &commands))
    }

    /// Runs a command on the first server.
    pub fn run(&self, line: &str) -> Reply {
        self.pipeline(&[line]).remove(0)
    }

    /// The bulk strings that a command answers.
    pub fn items(&self, line: &str) -> Vec<Vec<u8>> {
        bulks(&self.run(line))
    }

    /// Stops all faults.
    pub fn heal(&self) {
        self.store.set_rates(FaultRates::default());
    }
}

/// The words between the spaces of a line.
pub fn words(line: &str) -> Words {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// The command that the words name, in database 0.
pub fn invocation(words: &[Vec<u8>]) -> Invocation {
    let arguments = words.iter().map(|word| Bytes::copy_from_slice(word));
    match Invocation::resolve(0, arguments.collect()) {
        Ok(invocation) => invocation,
        Err(refusal) => panic!("{}", refusal.line),
    }
}

/// A call of the command that the words name, in database 0.
pub fn call(words: &[Vec<u8>]) -> Call {
    Call::command(invocation(words), true)
}

/// Runs a pipeline completely.
pub async fn submit(server: &Executor, commands: &[Words]) -> Vec<Reply> {
    submit_calls(server, commands.iter().map(|words| call(words)).collect()).await
}

/// Runs calls completely. Submits the rest again, like a connection.
pub async fn submit_calls(server: &Executor, mut calls: Vec<Call>) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !calls.is_empty() {
        let finished = server.submit(calls).await.unwrap();
        assert!(!finished.replies.is_empty(), "nothing was run");
        replies.extend(finished.replies);
        calls = finished.rest;
    }
    replies
}

/// The error line of a reply.
pub fn error(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(line) => Some(line),
        _ => None,
    }
}

/// The bulk strings in a reply.
pub fn bulks(reply: &Reply) -> Vec<Vec<u8>> {
    match reply {
        Reply::Bulk(bytes) => vec![bytes.to_vec()],
        Reply::Array(items) => items.iter().flat_map(bulks).collect(),
        Reply::Pairs(pairs) => pairs.iter().flat_map(|(name, _)| bulks(name)).collect(),
        _ => Vec::new(),
    }
}
