//! The server in which an append-only file is replayed: one of this process, in a temporary folder.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::import::error::{ImportError, no_file};
use quoin_base::random::Random;
use quoin_client::{Address, Client};
use quoin_config::{Fsync, LoadedSettings};

/// Runs a server with these settings until it is told to stop; the error is for people. A process runs
/// it once.
pub type RunServer = fn(LoadedSettings) -> Result<(), String>;

/// Time between two attempts to reach a server that starts.
const START_PAUSE: Duration = Duration::from_millis(10);

/// A running server. It ends, and its folder goes away, when this is dropped.
pub(super) struct Scratch {
    folder: PathBuf,
    address: Address,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Scratch {
    /// Starts a server with so many databases.
    pub(super) fn start(
        databases: u32,
        random: &dyn Random,
        run_server: RunServer,
    ) -> Result<Self, ImportError> {
        let name = format!("quoin-import-{:016x}", random.next_u64());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(no_file(&folder))?;
        let socket = folder.join("socket");
        let mut scratch = Self {
            address: Address {
                host: socket.display().to_string(),
                port: 0,
                user: None,
                password: None,
                database: None,
                tls: None,
            },
            folder,
            thread: None,
        };
        let settings = settings(&scratch.folder, socket, databases);
        let thread = std::thread::Builder::new()
            .name("quoin-replay".to_owned())
            .spawn(move || run_server(settings));
        scratch.thread = Some(thread.map_err(|error| ImportError::Scratch(error.to_string()))?);
        while !scratch.is_ready() {
            if scratch.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                let ended = scratch.thread.take().map(JoinHandle::join);
                return Err(ImportError::Scratch(match ended {
                    Some(Ok(Err(error))) => error,
                    _ => "it has ended".to_owned(),
                }));
            }
            std::thread::sleep(START_PAUSE);
        }
        Ok(scratch)
    }

    fn is_ready(&self) -> bool {
        let asked = Client::connect(&self.address).and_then(|mut client| client.call(&["PING"]));
        asked.is_ok_and(|reply| reply.status() == Some(b"PONG"))
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }
}

fn settings(folder: &Path, socket: PathBuf, databases: u32) -> LoadedSettings {
    let mut loaded = LoadedSettings::defaults();
    let settings = &mut loaded.settings;
    settings.port = 0;
    settings.unixsocket = Some(socket);
    settings.data_dir = folder.join("data");
    settings.logfile = Some(folder.join("log"));
    settings.databases = databases;
    // What is lost with the machine is replayed again.
    settings.fsync = Fsync::EverySec;
    loaded
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // It does not answer, it ends. Where it does not end, the process does soon.
            let told = Client::connect(&self.address)
                .and_then(|mut client| client.call(&["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]));
            let lost = matches!(told, Err(quoin_client::ClientError::Lost { .. }));
            if lost {
                let _ = thread.join();
            }
        }
        // A folder that stays is in the way of nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
