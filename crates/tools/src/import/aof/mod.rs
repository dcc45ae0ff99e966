//! Importing an append-only file: one file of commands, or several, perhaps beginning with an RDB
//! file.
//!
//! Commands change keys, which must be complete before they are copied, and perhaps keys that the
//! target already has. So a separate server of this program, in a temporary folder, runs the
//! commands, and is then the source of the import.
//!
//! While Redis loads such a file, no key expires: the file has a command for every removed key. So
//! in that server all keys expire [`EXPIRY_SHIFT_MS`] later.

mod files;
mod replay;

pub(super) use files::parts;
pub(super) use replay::EXPIRY_SHIFT_MS;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use files::{Checked, Incomplete, Part, PartKind, Parts, check};
use replay::Replayer;

use super::file;
use super::options::Options;
use super::report::{Counts, ImportError, UnusableKeys, no_file};
use super::target::Target;
use quoin_base::limits::{DATABASES, DATABASES_MAX};
use quoin_base::random::Random;
use quoin_client::{Address, Client, Databases, Progress};
use quoin_config::{Fsync, LoadedSettings};

/// A server that has run the commands of an append-only file.
pub(super) struct Replay {
    scratch: Scratch,
    /// Keys that may differ from the original, and why.
    pub(super) unusable: UnusableKeys,
    /// What the file lacks.
    pub(super) incomplete: Option<Incomplete>,
}

impl Replay {
    pub(super) fn address(&self) -> &Address {
        self.scratch.address()
    }
}

/// A part that was read completely.
struct ReadPart<'p> {
    part: &'p Part,
    /// The offset of its commands, and the result of checking them.
    commands: Option<(u64, Checked)>,
}

/// Runs all commands. First reads each file completely, so that nothing of a damaged one is run.
pub(super) fn replay(
    parts: &Parts,
    options: &Options,
    random: &dyn Random,
    run_server: RunServer,
) -> Result<Replay, ImportError> {
    let everything = Options {
        databases: Databases::All,
        pattern: None,
        replaces: false,
        is_dry_run: false,
        ..options.clone()
    };
    let mut database_max = 0;
    let mut incomplete = parts.incomplete();
    let mut read = Vec::new();
    for (number, part) in parts.files.iter().enumerate() {
        let begin = match part.kind {
            PartKind::Commands => Some(0),
            PartKind::Rdb => {
                let rdb = file::read(&part.path, &everything, |_| Ok(()))?;
                database_max = database_max.max(rdb.database_max);
                (rdb.end < rdb.file_bytes).then_some(rdb.end)
            }
        };
        let commands = match begin {
            None => None,
            Some(begin) => {
                let checked = check(&part.path, begin)?;
                database_max = database_max.max(checked.database_max);
                if checked.cut_off_bytes > 0 {
                    let is_last = number + 1 == parts.files.len();
                    incomplete = Some(cut_off(part, &checked, is_last)?);
                }
                Some((begin, checked))
            }
        };
        read.push(ReadPart { part, commands });
    }
    let databases = database_max
        .saturating_add(1)
        .clamp(DATABASES, DATABASES_MAX);
    let scratch = Scratch::start(databases, random, run_server)?;
    let unusable = run_all(&read, &everything, &scratch)?;
    Ok(Replay {
        scratch,
        unusable,
        incomplete,
    })
}

/// As in Redis with `aof-load-truncated`, only the last file may end within a command.
fn cut_off(part: &Part, checked: &Checked, is_last: bool) -> Result<Incomplete, ImportError> {
    let (at, bytes) = (checked.end, checked.cut_off_bytes);
    if !is_last {
        return Err(ImportError::Aof {
            path: part.path.clone(),
            at,
            what: "it ends within a command or a transaction, and is not the last file",
        });
    }
    Ok(Incomplete {
        name: format!("the end of {}", part.path.display()),
        why: format!(
            "cut off: its last {bytes} bytes, from byte {at} on, are not a whole command or \
             transaction"
        ),
    })
}

fn run_all(
    parts: &[ReadPart<'_>],
    everything: &Options,
    scratch: &Scratch,
) -> Result<UnusableKeys, ImportError> {
    let mut progress = Progress::start();
    let mut counts = Counts {
        unusable: Some(UnusableKeys::default()),
        ..Counts::default()
    };
    let to = Options {
        to: scratch.address().clone(),
        any_target: false,
        ..everything.clone()
    };
    for one in parts {
        if matches!(one.part.kind, PartKind::Rdb) {
            let mut target = Target::connect(&to, "quoin-replay:".to_owned())?;
            file::write(
                &one.part.path,
                &to,
                &mut target,
                EXPIRY_SHIFT_MS,
                &mut counts,
                &mut progress,
            )?;
        }
        if let Some((begin, checked)) = &one.commands {
            progress.begin("replaying:");
            let client = Client::connect(scratch.address())?;
            let unusable = counts.unusable.get_or_insert_default();
            Replayer::new(client, unusable).run(
                &one.part.path,
                *begin..checked.end,
                &mut progress,
            )?;
        }
    }
    progress.end();
    // What did not belong to a key: libraries of functions, data of modules.
    let mut unusable = counts.unusable.take().unwrap_or_default();
    unusable.others = Some(Box::new(counts));
    Ok(unusable)
}

/// Runs a server with these settings until it is stopped. The error is a text for people. A process calls it
/// once.
pub type RunServer = fn(LoadedSettings) -> Result<(), String>;

/// Time between two attempts to reach a server that starts.
const START_PAUSE: Duration = Duration::from_millis(10);

/// A running server. It ends, and its folder is removed, when this is dropped.
pub(crate) struct Scratch {
    folder: PathBuf,
    address: Address,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Scratch {
    /// Starts a server with `databases` databases.
    pub(crate) fn start(
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

    pub(crate) fn address(&self) -> &Address {
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
    // What a crash loses is replayed again.
    settings.fsync = Fsync::EverySec;
    loaded
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A server that ends sends no reply. If it does not end, the process soon does.
            let told = Client::connect(&self.address)
                .and_then(|mut client| client.call(&["SHUTDOWN", "NOSAVE", "NOW", "FORCE"]));
            let lost = matches!(told, Err(quoin_client::ClientError::Lost { .. }));
            if lost {
                let _ = thread.join();
            }
        }
        // A folder that remains does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
