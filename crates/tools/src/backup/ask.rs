//! Asking a running server for a backup.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bar::Bar;
use super::folder;
use quoin_client::{Beside, BesideError, Client, ClientError, connect_beside, login_hint};
use quoin_config::{LoadedSettings, server_places};

/// Time between two requests for the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How many backups that other clients have begun are waited for.
const TRIES_MAX: u32 = 10;

/// Why a running server made no backup.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It does not listen at the address of the settings.
    #[error(
        "a server has {} open, but none answers at {address}: {source}; say where it listens with \
         --server", folder.display()
    )]
    Connect {
        /// The data folder.
        folder: PathBuf,
        /// Where it should listen.
        address: String,
        /// Why it cannot be reached.
        source: io::Error,
    },
    /// The connection broke.
    #[error("{address}: {source}")]
    Lost {
        /// The server.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// It replied with an error.
    #[error("{address} answers: {reply}{}", login_hint(reply))]
    Refused {
        /// The server.
        address: String,
        /// Its error.
        reply: String,
    },
    /// Another server listens there.
    #[error(
        "the server at {address} has not {} open but {theirs}; say where the right one listens with \
         --server", ours.display()
    )]
    OtherServer {
        /// The server.
        address: String,
        /// The folder to back up.
        ours: PathBuf,
        /// The folder of the server.
        theirs: String,
    },
    /// The backup failed.
    #[error("the backup has failed: {0}")]
    Failed(String),
    /// Other clients keep it busy with backups.
    #[error("the server is busy with backups that others have asked for")]
    Busy,
}

impl AskError {
    fn of(error: ClientError, folder: &Path) -> Self {
        match error {
            ClientError::Connect { address, source } => Self::Connect {
                folder: folder.to_owned(),
                address: address.to_string(),
                source,
            },
            ClientError::Lost { address, source } => Self::Lost {
                address: address.to_string(),
                source,
            },
            ClientError::Refused { address, reply } => Self::Refused {
                address: address.to_string(),
                reply,
            },
        }
    }
}

/// Makes the server that uses the settings' data folder write a backup. Returns its path.
pub(super) fn ask(
    loaded: &LoadedSettings,
    beside: &Beside,
    bar: &mut Bar,
) -> Result<PathBuf, AskError> {
    let data_dir = &loaded.settings.data_dir;
    let failed = |error| AskError::of(error, data_dir);
    let places = server_places(loaded, beside);
    let (mut client, _) = match connect_beside(&places, data_dir, None) {
        Ok(connected) => connected,
        Err(BesideError::Client(error)) => return Err(failed(error)),
        Err(BesideError::OtherServer { address, theirs }) => {
            return Err(AskError::OtherServer {
                address: address.to_string(),
                ours: data_dir.clone(),
                theirs,
            });
        }
    };
    for _ in 0..TRIES_MAX {
        let before = Persistence::of(&mut client).map_err(failed)?;
        if before.is_running() {
            wait(&mut client, bar, |_| true).map_err(failed)?;
            continue;
        }
        let reply = client.call(&["BGSAVE"]).map_err(failed)?;
        match reply.error_text() {
            None => {}
            Some(line) if line.contains("already in progress") => continue,
            Some(_) => return Err(failed(client.unexpected(&reply))),
        }
        let ended = |now: &Persistence| now.endings() > before.endings();
        let after = wait(&mut client, bar, ended).map_err(failed)?;
        let error = after.text("backup_last_error");
        if !error.is_empty() {
            return Err(AskError::Failed(error.to_owned()));
        }
        let name = after.text("backup_last_file");
        return Ok(data_dir.join(folder::FOLDER).join(name));
    }
    Err(AskError::Busy)
}

/// Waits until no backup is being made and `is_done` holds.
fn wait(
    client: &mut Client,
    bar: &mut Bar,
    is_done: impl Fn(&Persistence) -> bool,
) -> Result<Persistence, ClientError> {
    loop {
        let now = Persistence::of(client)?;
        if !now.is_running() && is_done(&now) {
            return Ok(now);
        }
        let rows = now.number("current_save_keys_processed");
        bar.count("rows", rows, now.number("current_save_keys_total"));
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// INFO persistence.
struct Persistence(HashMap<String, String>);

impl Persistence {
    fn of(client: &mut Client) -> Result<Self, ClientError> {
        let fields = client.info_fields("persistence")?;
        if fields.contains_key("backup_last_file") {
            return Ok(Self(fields));
        }
        let reply = "it has no backups: it is another program, or of another version";
        Err(client.refused(reply.to_owned()))
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    fn is_running(&self) -> bool {
        self.number("rdb_bgsave_in_progress") > 0
    }

    /// Backups that have ended since the server started.
    fn endings(&self) -> u64 {
        self.number("rdb_saves") + self.number("backup_failures")
    }
}
