//! `quoin import`: copies the strings, lists and sorted sets of a running Redis into a running Quoin.
//!
//! A client of both servers, and of nothing else of this program. Each key is replaced as a
//! whole (see `copy`), so an import that was stopped is simply run again. At the end all keys of
//! the source are scanned once more and their numbers of elements compared.

mod copy;
mod counts;
mod error;
mod kinds;
mod options;
mod pace;
mod source;

pub use counts::Counts;
pub use error::ImportError;
pub use options::{Options, command, parse};

use copy::Copier;
use source::{Page, Source, SourceKey};

use crate::random::Random;
use crate::redis_client::{Client, ClientError, Databases, Progress};

/// Copies and compares; shows on the standard error how far it is.
///
/// # Errors
/// Where a server cannot be reached or does not understand. What concerns single keys only is in
/// the answer.
pub fn run(options: &Options, random: &dyn Random) -> Result<Counts, ImportError> {
    let mut source = Source::connect(options)?;
    let mut target = Client::connect(&options.to)?;
    let run_id = run_id(source.client())?;
    if run_id.is_some() && run_id == self::run_id(&mut target)? {
        return Err(ImportError::SameServer);
    }
    let databases = match &options.databases {
        Databases::All => source.client().databases()?,
        Databases::Some(numbers) => numbers.clone(),
    };
    let temporary_prefix = format!("quoin-import-{:016x}:", random.next_u64());
    let mut counts = Counts {
        is_of_cluster: source.is_of_cluster(),
        ..Counts::default()
    };
    let mut progress = Progress::new();
    if counts.is_of_cluster {
        progress.say("the source is one master of a Redis Cluster; only its own keys are copied");
    }
    if options.pattern.is_none() {
        let mut total = 0;
        for database in &databases {
            source.select(*database)?;
            total += source.client().size()?;
        }
        progress.keys_total = Some(total);
    }
    for (phase, is_copying) in [("copying:", true), ("comparing:", false)] {
        progress.begin(phase);
        for database in &databases {
            source.select(*database)?;
            let target_database = options.to.database.unwrap_or(*database);
            target.call_ok(&["SELECT", &target_database.to_string()])?;
            let mut cursor = Some(b"0".to_vec());
            while let Some(at) = cursor {
                let (next, page) = source.page(&at)?;
                cursor = next;
                progress.keys += page.len() as u64;
                if is_copying {
                    let Page { keys, others } = page;
                    for kind in others {
                        *counts.skipped.entry(kind).or_default() += 1;
                    }
                    let mut copier = Copier {
                        source: &mut source,
                        target: &mut target,
                        temporary_prefix: &temporary_prefix,
                        resume: options.resume,
                        counts: &mut counts,
                    };
                    copier.copy(keys, &mut |counts| show(&mut progress, counts))?;
                } else {
                    compare(&mut source, &mut target, &page.keys, &mut counts)?;
                }
                show(&mut progress, &counts);
            }
        }
    }
    progress.end();
    Ok(counts)
}

fn show(progress: &mut Progress, counts: &Counts) {
    progress.show(format_args!("{} elements copied", counts.copied_elements));
}

/// What tells one running server from another.
fn run_id(client: &mut Client) -> Result<Option<String>, ClientError> {
    let text = client.info("server")?;
    let mut lines = text.lines();
    Ok(lines
        .find_map(|line| line.strip_prefix("run_id:"))
        .map(str::to_owned))
}

/// Compares the numbers of elements.
fn compare(
    source: &mut Source,
    target: &mut Client,
    keys: &[SourceKey],
    counts: &mut Counts,
) -> Result<(), ClientError> {
    for key in keys {
        target.queue(&[key.kind.counting, &key.name]);
    }
    target.send()?;
    let mut different = Vec::new();
    for key in keys {
        // An error, of another type, is as good as nothing.
        let there = target.read()?.integer().unwrap_or(0);
        counts.checked_keys += 1;
        if there != key.count {
            different.push(key);
        }
    }
    for key in different {
        // Once more: it may have expired between the two questions.
        let question = [key.kind.counting, &key.name];
        let here = source.client().call(&question)?.integer().unwrap_or(0);
        let there = target.call(&question)?.integer().unwrap_or(0);
        if here != there {
            counts.differs(&key.name, here, there);
        }
    }
    Ok(())
}
