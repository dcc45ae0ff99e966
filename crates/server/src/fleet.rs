//! Several servers on one store, in this process, with clients over TCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::addresses::Addresses;
use crate::listener;
use crate::sentinel::Announcer;
use crate::state::ServerState;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::random::SystemRandom;
use quoin_config::{LoadedSettings, RuntimeConfig};
use quoin_data::unit::startup;
use quoin_layout::Layout;
use quoin_store::faults::OptimisticStore;
use quoin_store::{
    Capabilities, ReadTransaction, Store, StoreError, StoreFuture, Transaction, Watched,
};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

/// A server's access to the shared store. To the other servers, a server whose access is cut looks
/// killed.
pub(super) struct Way {
    store: Arc<OptimisticStore<EmbeddedStore>>,
    pub(super) is_cut: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
#[error("the way is cut")]
struct Cut;

impl Way {
    fn check(&self) -> Result<(), StoreError> {
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable(Arc::new(Cut))),
            false => Ok(()),
        }
    }
}

impl Store for Way {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        self.check()?;
        self.store.begin_read()
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.check()?;
        self.store.begin_write()
    }

    fn is_ready(&self) -> bool {
        self.store.is_ready()
    }

    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched> {
        self.store.watch(key)
    }
}

pub(super) struct Fleet {
    store: Arc<OptimisticStore<EmbeddedStore>>,
    _folder: tempfile::TempDir,
}

impl Fleet {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        Self {
            store: Arc::new(OptimisticStore::new(store)),
            _folder: folder,
        }
    }

    pub(super) async fn start(&self) -> TestServer {
        let mut loaded = LoadedSettings::defaults();
        loaded.settings.port = 0;
        let probes = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        [loaded.settings.sentinel_port, loaded.settings.cluster_port] =
            probes.map(|probe| probe.local_addr().unwrap().port());
        loaded.settings.sentinel_masters = vec!["mymaster".to_owned(), "other".to_owned()];
        let config = Arc::new(RuntimeConfig::new(loaded));
        let addresses = Addresses::take(&config.settings()).unwrap();
        let way = Arc::new(Way {
            store: Arc::clone(&self.store),
            is_cut: AtomicBool::new(false),
        });
        let store = Arc::clone(&way) as Arc<dyn Store>;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random = Arc::new(SystemRandom);
        let environment =
            startup::prepare(&*store, Layout::new("test"), Arc::clone(&clock), random);
        let environment = environment.await.unwrap();
        let ports = addresses.ports;
        let state = ServerState::start(config, environment, store, None, clock, None, ports);
        let state = Arc::new(state.unwrap());
        let mut tasks = JoinSet::new();
        for listener in addresses.listen().unwrap() {
            tasks.spawn(listener::accept(listener, Arc::clone(&state)));
        }
        state.membership.begin();
        let announcing = Arc::clone(&state);
        tasks.spawn(async move {
            let mut announcer = Announcer::new(announcing.membership.watch());
            announcer.run(&announcing.sentinel).await;
        });
        TestServer { way, state, tasks }
    }

    /// Servers that see each other.
    pub(super) async fn start_all<const COUNT: usize>(&self) -> [TestServer; COUNT] {
        let mut servers = Vec::new();
        for _ in 0..COUNT {
            servers.push(self.start().await);
        }
        for server in &servers {
            wait_until("all are seen", async || server.live_count() == COUNT).await;
        }
        let Ok(servers) = servers.try_into() else {
            unreachable!("as many were started");
        };
        servers
    }
}

pub(super) struct TestServer {
    pub(super) way: Arc<Way>,
    pub(super) state: Arc<ServerState>,
    pub(super) tasks: JoinSet<()>,
}

impl TestServer {
    pub(super) fn live_count(&self) -> usize {
        let roster = self.state.membership.roster();
        roster.map_or(0, |roster| roster.servers().len())
    }

    pub(super) fn port(&self) -> u16 {
        self.state.ports().plain
    }

    pub(super) fn sentinel_port(&self) -> u16 {
        self.state.ports().sentinel
    }

    pub(super) fn cluster_port(&self) -> u16 {
        self.state.ports().cluster
    }

    /// Ends the server like a kill: its connections break, and it cleans up nothing.
    pub(super) async fn kill(&mut self) {
        self.cut_off();
        self.tasks.shutdown().await;
    }

    pub(super) fn cut_off(&self) {
        self.way.is_cut.store(true, Ordering::SeqCst);
    }
}

pub(super) struct Client(pub(super) TcpStream);

impl Client {
    pub(super) async fn connect(port: u16) -> Self {
        Self::try_connect(port).await.unwrap()
    }

    pub(super) async fn try_connect(port: u16) -> Option<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        TcpStream::connect(address).await.ok().map(Self)
    }

    /// A reply that fits into one read. `None` if the connection breaks.
    pub(super) async fn try_run(&mut self, line: &str) -> Option<String> {
        self.0
            .write_all(format!("{line}\r\n").as_bytes())
            .await
            .ok()?;
        let mut buffer = [0; 4096];
        let count = self.0.read(&mut buffer).await.ok()?;
        let reply = std::str::from_utf8(&buffer[..count]).unwrap();
        (!reply.is_empty()).then(|| reply.to_owned())
    }

    pub(super) async fn send(&mut self, line: &str) {
        let line = format!("{line}\r\n");
        self.0.write_all(line.as_bytes()).await.unwrap();
    }

    /// Reads until a text arrives. Returns everything that was read.
    pub(super) async fn until(&mut self, text: &str) -> String {
        let mut got = String::new();
        let mut buffer = [0; 4096];
        while !got.contains(text) {
            let read = tokio::time::timeout(Duration::from_secs(20), self.0.read(&mut buffer));
            let count = read.await.unwrap_or_else(|_| panic!("no {text} in {got}"));
            let count = count.unwrap();
            assert!(count > 0, "no {text} in {got}");
            got.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        got
    }

    /// The reply to a command, by means of a PING after it.
    pub(super) async fn run(&mut self, line: &str) -> String {
        self.send(line).await;
        self.send("PING").await;
        let got = self.until("+PONG\r\n").await;
        got.strip_suffix("+PONG\r\n").unwrap().to_owned()
    }
}

pub(super) async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}
