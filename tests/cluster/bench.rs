//! Two servers, without their sockets, on one store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::random::{Random, SystemRandom};
use quoin_data::command::call::Invocation;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::host::Trackers;
use quoin_data::unit::startup;
use quoin_engine::watchers::Touched;
use quoin_engine::{
    Bundle, Call, Executor, ExecutorOptions, Outcome, Reaper, ReaperHandle, Waiter, WatchedKey,
};
use quoin_layout::Layout;
use quoin_resp::reply::Reply;
use quoin_store::Store;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::tracking::{NoSubscribers, Tracker};

/// Longer than anything takes, and shorter than the poll that makes up for a lost wake-up.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Two servers on one store.
pub struct Bench {
    pub servers: [Server; 2],
    pub runtime: tokio::runtime::Runtime,
    /// The name of the store.
    pub store: &'static str,
    /// Whether something fails on purpose.
    pub has_faults: bool,
    _folder: Option<TempDir>,
}

/// One of the servers, and a client of it that may track keys.
#[derive(Clone)]
pub struct Server(pub Arc<Executor>, pub Arc<Tracker>);

impl Bench {
    /// `stores`: one store, as seen by each server.
    pub fn new(stores: [Arc<dyn Store>; 2], root_prefix: &str, folder: Option<TempDir>) -> Self {
        let options = ExecutorOptions::default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let name = stores[0].capabilities().name;
        let servers = stores.map(|store| {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let random: Arc<dyn Random> = Arc::new(SystemRandom);
            let layout = Layout::new(root_prefix);
            let mut environment = runtime
                .block_on(startup::prepare(&*store, layout, clock, random))
                .unwrap();
            let tracker = Arc::<Tracker>::default();
            environment.trackers = Some(Arc::clone(&tracker) as Arc<dyn Trackers>);
            environment.subscribers = Some(Arc::new(NoSubscribers));
            let executor = Executor::start(store, environment, options.clone()).unwrap();
            Server(Arc::new(executor), tracker)
        });
        Self {
            servers,
            runtime,
            store: name,
            has_faults: false,
            _folder: folder,
        }
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs a command on one of the servers, in database 0.
    pub fn run(&self, server: usize, line: &str) -> Reply {
        self.block_on(self.servers[server].run(line))
    }

    /// Starts the background work of one of the servers. It ends when the handle is dropped.
    pub fn reap(&self, server: usize) -> ReaperHandle {
        let _runtime = self.runtime.enter();
        Reaper::spawn(Arc::clone(&self.servers[server].0), None)
    }

    /// Begins to wait on one of the servers, and expects that there is nothing yet.
    pub fn wait(&self, server: usize, line: &str) -> Waiting {
        self.block_on(self.servers[server].wait(line))
    }

    /// The reply to a waiting client.
    pub fn served(&self, waiting: Waiting) -> Reply {
        self.block_on(waiting.reply())
    }
}

impl Server {
    /// Runs a command whose words are separated by spaces. A prefix such as `2:` selects a
    /// database.
    pub async fn run(&self, line: &str) -> Reply {
        let finished = self.0.submit(vec![call(line)]).await.unwrap();
        finished.replies.into_iter().next().unwrap()
    }

    /// Runs commands that were sent at once.
    pub async fn pipeline(&self, lines: &[&str]) -> Vec<Reply> {
        let mut calls: Vec<Call> = lines.iter().map(|line| call(line)).collect();
        let mut replies = Vec::new();
        while !calls.is_empty() {
            let finished = self.0.submit(calls).await.unwrap();
            replies.extend(finished.replies);
            calls = finished.rest;
        }
        replies
    }

    /// Runs a blocking command, and waits if it finds nothing.
    pub async fn block(&self, line: &str, patience: Duration) -> Reply {
        match self.begin(line).await {
            Ok(reply) => reply,
            Err(waiting) => waiting.reply_within(patience).await,
        }
    }

    /// Runs a blocking command that finds nothing.
    pub async fn wait(&self, line: &str) -> Waiting {
        match self.begin(line).await {
            Ok(reply) => panic!("{line} found {reply:?}"),
            Err(waiting) => waiting,
        }
    }

    async fn begin(&self, line: &str) -> Result<Reply, Waiting> {
        let invocation = invocation(line);
        let now_ms = self.0.environment().clock.now_ms();
        let spec = invocation.row.waits.unwrap()(&invocation.arguments, now_ms);
        let (waiter, outcome) = Waiter::new(invocation.clone(), spec.ok().unwrap().unwrap());
        let call = Call {
            waiter: Some(Arc::clone(&waiter)),
            ..Call::command(invocation, true)
        };
        let mut finished = self.0.submit(vec![call]).await.unwrap();
        if finished.is_parked {
            return Err(Waiting { waiter, outcome });
        }
        Ok(finished.replies.remove(0))
    }

    /// WATCH in database 0.
    pub async fn watch(&self, keys: &[&str]) -> Watch {
        let mut watch = Watch::default();
        for key in keys {
            let key = ClientKey {
                database: 0,
                key: Bytes::copy_from_slice(key.as_bytes()),
            };
            self.0.watchers().watch(key.clone(), &watch.touched);
            let name = key.key.clone();
            let read = self.0.read(0, move |context| {
                let name = name.clone();
                Box::pin(async move { Ok(context.fingerprint(&name).await?) })
            });
            let fingerprint = read.await.unwrap();
            watch.keys.push(WatchedKey { key, fingerprint });
        }
        watch
    }

    /// MULTI, these commands, EXEC.
    pub async fn exec(&self, lines: &[&str]) -> Reply {
        self.exec_watching(Watch::default(), lines).await
    }

    /// MULTI, these commands, EXEC, after a WATCH.
    pub async fn exec_watching(&self, watch: Watch, lines: &[&str]) -> Reply {
        let bundle = Bundle {
            invocations: lines.iter().map(|line| invocation(line)).collect(),
            watched: watch.keys,
            touched: watch.touched,
        };
        let call = Call::transaction(bundle, true);
        let mut finished = self.0.submit(vec![call]).await.unwrap();
        finished.replies.remove(0)
    }

    /// Commits that conflicted so far.
    pub fn conflicts(&self) -> u64 {
        self.0.statistics().conflicts.get()
    }
}

/// The watched keys and their state.
#[derive(Default)]
pub struct Watch {
    keys: Vec<WatchedKey>,
    touched: Touched,
}

/// A client that waits in a blocking command.
pub struct Waiting {
    pub waiter: Arc<Waiter>,
    outcome: oneshot::Receiver<Outcome>,
}

impl Waiting {
    /// The reply. Fails if there is none after a while.
    pub async fn reply(self) -> Reply {
        self.reply_within(PATIENCE).await
    }

    async fn reply_within(self, patience: Duration) -> Reply {
        match tokio::time::timeout(patience, self.outcome).await {
            Ok(Ok(Outcome::Replied(reply))) => reply,
            Err(_) => panic!("a wake-up was lost: {:?}", self.waiter.invocation.arguments),
            other => panic!("{other:?}"),
        }
    }

    /// Whether the client still waits.
    pub fn is_waiting(&mut self) -> bool {
        self.outcome.try_recv().is_err()
    }
}

fn call(line: &str) -> Call {
    Call::command(invocation(line), true)
}

pub fn invocation(line: &str) -> Invocation {
    let (database, line) = match line.split_once(':') {
        Some((database, rest)) if database.parse::<u32>().is_ok() => {
            (database.parse().unwrap(), rest)
        }
        _ => (0, line),
    };
    let arguments = line.split(' ');
    let arguments = arguments.map(|word| Bytes::copy_from_slice(word.as_bytes()));
    match Invocation::resolve(database, arguments.collect()) {
        Ok(invocation) => invocation,
        Err(refusal) => panic!("{}", refusal.line),
    }
}

/// A bulk reply.
pub fn bulk(text: &str) -> Reply {
    Reply::bulk(text.as_bytes().to_vec())
}

/// An array of bulk replies.
pub fn bulks(texts: &[&str]) -> Reply {
    Reply::Array(texts.iter().map(|text| bulk(text)).collect())
}

/// The texts of the bulk strings in a reply.
pub fn texts(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Bulk(bytes) => vec![String::from_utf8_lossy(bytes).into_owned()],
        Reply::Array(items) => items.iter().flat_map(texts).collect(),
        Reply::Pairs(pairs) => pairs.iter().flat_map(|(name, _)| texts(name)).collect(),
        Reply::Keyed(pairs) => {
            let parts = pairs.iter().flat_map(|(name, value)| [name, value]);
            parts.flat_map(texts).collect()
        }
        _ => Vec::new(),
    }
}
