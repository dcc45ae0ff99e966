//! A bench for tests of commands. They run through the real executor and a real store.

pub mod ranks;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::{Bundle, Call, Executor, ExecutorOptions, Outcome, Waiter};
use quoin_base::clock::{Clock, ManualClock};
use quoin_base::random::SeededRandom;
use quoin_data::command::call::{Invocation, Mode};
use quoin_data::command::row::{Handler, Row};
use quoin_data::unit::context::Environment;
use quoin_data::unit::{Unit, startup};
use quoin_layout::{Layout, Space};
use quoin_resp::reply::Reply;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};
use quoin_store::{Isolation, RangeQuery, Store, StoreError};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

/// Time on the bench's clock at the start.
pub const START_MS: i64 = 1_700_000_000_000;

/// An engine on a store in a temporary folder.
pub struct Bench {
    /// The clock. It does not advance by itself.
    pub clock: Arc<ManualClock>,
    /// The engine.
    pub executor: Arc<Executor>,
    /// The underlying store, for checking what it really contains.
    pub store: Arc<dyn Store>,
    runtime: tokio::runtime::Runtime,
    _folder: TempDir,
}

async fn start(
    store: &Arc<dyn Store>,
    clock: &Arc<ManualClock>,
    seed: u64,
    options: ExecutorOptions,
    change: impl FnOnce(&mut Environment),
) -> Executor {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let random = Arc::new(SeededRandom::new(seed));
    let prepared = startup::prepare(&**store, Layout::new("test"), clock, random);
    let mut environment = prepared.await.unwrap();
    change(&mut environment);
    Executor::start(Arc::clone(store), environment, options).unwrap()
}

impl Bench {
    /// A bench on the embedded store.
    pub fn embedded() -> Self {
        Self::with(|store| Arc::new(store))
    }

    /// A bench on a store that behaves like a cluster: many writers, conflicts, and retained metadata of empty keys.
    pub fn cluster_like() -> Self {
        Self::with(|store| Arc::new(OptimisticStore::new(store)))
    }

    /// The same with faults that the test requests. Initially there are none.
    pub fn faulty(seed: u64) -> (Self, Arc<FaultyStore<OptimisticStore<EmbeddedStore>>>) {
        let mut faulty = None;
        let bench = Self::with(|store| {
            let random = Arc::new(SeededRandom::new(seed));
            let store = OptimisticStore::new(store);
            let store = FaultyStore::new(store, FaultRates::default(), random);
            faulty.insert(Arc::new(store)).clone()
        });
        (bench, faulty.unwrap())
    }

    /// A bench on the embedded store, wrapped by `wrap`.
    pub fn with(wrap: impl FnOnce(EmbeddedStore) -> Arc<dyn Store>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let store = wrap(store);
        let clock = Arc::new(ManualClock::at(START_MS));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let executor =
            runtime.block_on(start(&store, &clock, 7, ExecutorOptions::default(), |_| {}));
        Self {
            clock,
            executor: Arc::new(executor),
            store,
            runtime,
            _folder: folder,
        }
    }

    /// A second server on the same store.
    pub fn another_server(&self) -> Executor {
        self.another_server_with(ExecutorOptions::default())
    }

    /// A second server on the same store, with these options.
    pub fn another_server_with(&self, options: ExecutorOptions) -> Executor {
        self.block_on(start(&self.store, &self.clock, 8, options, |_| {}))
    }

    /// The same store, served in an environment modified by `change`.
    pub fn served_with(self, change: impl FnOnce(&mut Environment)) -> Self {
        let executor = self.block_on(start(
            &self.store,
            &self.clock,
            9,
            ExecutorOptions::default(),
            change,
        ));
        Self {
            executor: Arc::new(executor),
            ..self
        }
    }

    /// Waits for a result.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs a command whose words are separated by spaces.
    pub fn run(&self, line: &str) -> Reply {
        self.run_words(&words_of(line))
    }

    /// Runs a command in database 0.
    pub fn run_words(&self, words: &[&[u8]]) -> Reply {
        self.run_in(0, words)
    }

    /// Runs a command in a database.
    pub fn run_in(&self, database: u32, words: &[&[u8]]) -> Reply {
        let finished = self
            .runtime
            .block_on(self.executor.submit(vec![call(database, words)]))
            .unwrap();
        finished.replies.into_iter().next().unwrap()
    }

    /// Number of rows of all keys' data, excluding metadata copies.
    pub fn data_rows(&self) -> usize {
        let layout = &self.executor.environment().layout;
        let range = layout.rows_of(Space::Data);
        let snapshot = self.store.begin_read().unwrap();
        let rows = self.block_on(snapshot.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: usize::MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        }));
        let rows = rows.unwrap().into_iter();
        rows.filter(|row| !layout.is_meta_copy(&row.key)).count()
    }

    /// Runs commands as a pipeline, one a line.
    pub fn run_all(&self, lines: &[String]) -> Vec<Reply> {
        let mut calls: Vec<Call> = lines.iter().map(|line| call(0, &words_of(line))).collect();
        let mut replies = Vec::new();
        while !calls.is_empty() {
            let finished = self.block_on(self.executor.submit(calls)).unwrap();
            replies.extend(finished.replies);
            calls = finished.rest;
        }
        replies
    }

    /// Whether a transaction that runs `line` conflicts if `meanwhile` commits first. `is_strict`: as within EXEC.
    pub fn race(&self, line: &str, meanwhile: &str, is_strict: bool) -> bool {
        self.race_all(&[line], meanwhile, is_strict)
    }

    /// [`Self::race`] for a transaction with several commands.
    pub fn race_all(&self, lines: &[&str], meanwhile: &str, is_strict: bool) -> bool {
        self.race_against(lines, is_strict, || {
            let reply = self.run(meanwhile);
            assert!(!matches!(reply, Reply::Error(_)), "{meanwhile}: {reply:?}");
        })
    }

    /// Whether a transaction that runs `lines` conflicts with what `meanwhile` commits.
    pub fn race_against(&self, lines: &[&str], is_strict: bool, meanwhile: impl FnOnce()) -> bool {
        let transaction = self.store.begin_write().unwrap();
        {
            let unit = Unit::new(&*transaction, self.executor.environment());
            let mode = Mode {
                is_strict,
                ..Mode::default()
            };
            for line in lines {
                let invocation = invocation(0, &words_of(line));
                let reply =
                    self.block_on(quoin_data::command::call::call(&unit, &invocation, mode));
                assert!(!matches!(reply.unwrap(), Reply::Error(_)), "{line}");
            }
            let context = unit.write_context(0);
            self.block_on(context.count_rank_changes()).unwrap();
        }
        meanwhile();
        match self.block_on(transaction.commit()) {
            Ok(()) => false,
            Err(StoreError::Conflict) => true,
            Err(other) => panic!("{other}"),
        }
    }

    /// Runs a blocking command and expects it to find nothing and wait.
    pub fn wait(&self, line: &str) -> Waiting {
        self.wait_with(invocation(0, &words_of(line)))
    }

    /// [`Self::wait`] for a command with other code.
    pub fn wait_with(&self, invocation: Invocation) -> Waiting {
        let spec = invocation.row.waits.unwrap()(&invocation.arguments, START_MS);
        let spec = spec.unwrap_or_else(|error| panic!("{}", error.to_line()));
        let (waiter, outcome) = Waiter::new(invocation.clone(), spec.unwrap());
        let call = Call {
            waiter: Some(Arc::clone(&waiter)),
            ..Call::command(invocation, true)
        };
        let finished = self.block_on(self.executor.submit(vec![call])).unwrap();
        assert!(finished.is_parked, "{:?}", finished.replies);
        Waiting { waiter, outcome }
    }

    /// Runs commands as EXEC does, one a line.
    pub fn exec(&self, lines: &[&str]) -> Reply {
        let invocations = lines.iter().map(|line| invocation(0, &words_of(line)));
        self.exec_all(invocations.collect())
    }

    /// Runs commands as EXEC does.
    pub fn exec_all(&self, invocations: Vec<Invocation>) -> Reply {
        let bundle = Bundle {
            invocations,
            watched: Vec::new(),
            touched: Default::default(),
        };
        let call = Call::transaction(bundle, true);
        let finished = self.block_on(self.executor.submit(vec![call])).unwrap();
        finished.replies.into_iter().next().unwrap()
    }
}

/// A client that waits in a blocking command.
pub struct Waiting {
    /// What the engine knows about it.
    pub waiter: Arc<Waiter>,
    outcome: oneshot::Receiver<Outcome>,
}

impl Waiting {
    /// The reply. Panics if none arrives in time.
    pub fn reply(self, bench: &Bench) -> Reply {
        let arrived = async { tokio::time::timeout(Duration::from_secs(10), self.outcome).await };
        match bench.block_on(arrived) {
            Ok(Ok(Outcome::Replied(reply))) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Whether the client still waits.
    pub fn is_waiting(&mut self) -> bool {
        self.outcome.try_recv().is_err()
    }
}

/// A command whose words are separated by spaces, without a plan for the executor.
pub fn unplanned(line: &str) -> Call {
    Call::command(invocation(0, &words_of(line)), false)
}

/// A command whose words are separated by spaces.
pub fn planned(line: &str) -> Call {
    call(0, &words_of(line))
}

/// The command on this line, with another handler.
pub fn with_handler(line: &str, handler: Handler) -> Invocation {
    with_row(line, |row| Row { handler, ..row })
}

/// The command on this line, with a modified row.
pub fn with_row(line: &str, change: impl FnOnce(Row) -> Row) -> Invocation {
    let invocation = invocation(0, &words_of(line));
    let row = Box::leak(Box::new(change(*invocation.row)));
    Invocation { row, ..invocation }
}

/// The words of a line.
pub fn words_of(line: &str) -> Vec<&[u8]> {
    // Many times as fast in a debug build as a split at any white space, and some lines are long.
    let words = line.split(' ').filter(|word| !word.is_empty());
    words.map(str::as_bytes).collect()
}

/// A command made of words.
pub fn invocation(database: u32, words: &[&[u8]]) -> Invocation {
    let words = words.iter().map(|word| Bytes::copy_from_slice(word));
    match Invocation::resolve(database, words.collect()) {
        Ok(invocation) => invocation,
        Err(refusal) => panic!("{}", refusal.line),
    }
}

/// A command made of words, as connections submit it.
pub fn call(database: u32, words: &[&[u8]]) -> Call {
    Call::command(invocation(database, words), true)
}

/// A bulk reply.
pub fn bulk(text: &str) -> Reply {
    Reply::bulk(text.as_bytes().to_vec())
}

/// An array of bulk replies.
pub fn bulks(texts: &[&str]) -> Reply {
    Reply::Array(texts.iter().map(|text| bulk(text)).collect())
}
