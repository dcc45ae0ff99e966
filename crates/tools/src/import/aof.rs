//! Importing an append-only file: one file of commands, or several, perhaps with an RDB file in front.
//!
//! Commands change keys that must be whole before they are copied, and perhaps keys that the target
//! has already. So a server of this program's own, in a temporary folder, runs the commands, and then is
//! the source of the import.
//!
//! While Redis loads such a file no key expires: what removed a key stands in the file as a command.
//! So all keys expire [`EXPIRY_SHIFT_MS`] later in that server.

mod commands;
mod expiries;
mod parts;
mod replaying;
mod scratch;

pub(super) use expiries::EXPIRY_SHIFT_MS;
pub(super) use parts::parts;
pub use scratch::RunServer;

use super::counts::{Counts, UnusableKeys};
use super::error::ImportError;
use super::file;
use super::options::Options;
use super::target::Target;
use commands::{Checked, check};
use parts::{Incomplete, Part, PartKind, Parts};
use quoin_base::limits::{DATABASES, DATABASES_MAX};
use quoin_base::random::Random;
use quoin_client::{Address, Client, Databases, Progress};
use replaying::Replayer;
use scratch::Scratch;

/// A server that has run the commands of an append-only file.
pub(super) struct Replay {
    scratch: Scratch,
    /// Keys that are not as they were, and why.
    pub(super) unusable: UnusableKeys,
    /// What the file lacks.
    pub(super) incomplete: Option<Incomplete>,
}

impl Replay {
    pub(super) fn address(&self) -> &Address {
        self.scratch.address()
    }
}

/// A part that was read to its end.
struct ReadPart<'p> {
    part: &'p Part,
    /// Where its commands begin and end.
    commands: Option<(u64, Checked)>,
}

/// Runs all commands. First each file is read to its end, so that nothing is done with one that is
/// damaged.
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

/// As Redis does with `aof-load-truncated`: only the last file may end within a command.
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
            "cut off: its last {bytes} bytes, from byte {at} on, are no whole command or transaction"
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
    // What was not a key's: libraries of functions, data of modules.
    let mut unusable = counts.unusable.take().unwrap_or_default();
    unusable.others = Some(Box::new(counts));
    Ok(unusable)
}
