//! `quoin import`: copies the data of a running Redis, or of files that it has written, into a
//! running Quoin.
//!
//! It is only a client of servers. Each key is replaced as a whole (see `copy`), so a stopped
//! import can be run again. At the end all keys of the source are scanned again, and their numbers
//! of elements are compared. An append-only file is first replayed into a separate server (see
//! `aof`), which is then the source.

mod aof;
mod copy;
mod elements;
mod file;
mod functions;
mod kinds;
mod options;
mod pace;
mod report;
mod source;
mod streams;
mod target;

pub use aof::RunServer;
pub use options::{From, Options, command, parse};
pub use report::{Counts, ImportError};

use copy::Copier;
use report::{Unusable, UnusableKeys, no_database};
use source::{Page, Source, SourceKey};
use target::Target;

use quoin_base::random::Random;
use quoin_client::{Client, ClientError, Databases, Progress};

/// Copies and compares, and shows the progress on standard error. `run_server` runs a server until
/// it is stopped, which an append-only file needs.
///
/// # Errors
/// If a server cannot be reached or gives an unexpected reply, or if a file is damaged. Errors of
/// single keys are in the result.
pub fn run(
    options: &Options,
    random: &dyn Random,
    run_server: RunServer,
) -> Result<Counts, ImportError> {
    let temporary_prefix = format!("quoin-import-{:016x}:", random.next_u64());
    match &options.from {
        From::Server(from) => {
            let source = Source::connect(from, options)?;
            let target = Target::connect(options, temporary_prefix)?;
            from_server(source, target, options, UnusableKeys::default())
        }
        From::File(path) => {
            let parts = aof::parts(path)?;
            let mut target = Target::connect(options, temporary_prefix)?;
            let Some(parts) = parts else {
                return file::run(path, options, &mut target);
            };
            let replay = aof::replay(&parts, options, random, run_server)?;
            let source = Source::of_replay(replay.address(), options, aof::EXPIRY_SHIFT_MS)?;
            let mut counts = from_server(source, target, options, replay.unusable)?;
            if let Some(what) = replay.incomplete {
                counts.skip_named(what.name, what.why);
            }
            Ok(counts)
        }
    }
}

fn from_server(
    mut source: Source,
    mut target: Target,
    options: &Options,
    unusable: UnusableKeys,
) -> Result<Counts, ImportError> {
    let run_id = run_id(source.client())?;
    if run_id.is_some() && run_id == self::run_id(&mut target.client)? {
        return Err(ImportError::SameServer);
    }
    let databases = match &options.databases {
        Databases::All => source.client().databases()?,
        Databases::Some(numbers) => numbers.clone(),
    };
    let mut counts = Counts {
        is_of_cluster: source.is_of_cluster(),
        ..Counts::new(options)
    };
    for ((database, name), why) in &unusable.keys {
        if !options.wants(*database, name) {
            continue;
        }
        match why {
            Unusable::Skipped(why) => counts.skip(name, why.clone()),
            Unusable::Failed(why) => counts.failed(name, why),
        }
    }
    counts.take_others(unusable.others.as_deref());
    if options.pattern.is_none() {
        functions::copy_all(source.client(), &mut target, &mut counts)?;
    }
    let mut progress = Progress::start();
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
    let phases = [("copying:", true), ("comparing:", false)];
    let phases = phases.get(..if options.is_dry_run { 1 } else { 2 });
    for (phase, is_copying) in phases.unwrap_or_default() {
        progress.begin(phase);
        for database in &databases {
            source.select(*database)?;
            let has_place = target.select(options.to.database.unwrap_or(*database))?;
            let mut cursor = Some(b"0".to_vec());
            while let Some(at) = cursor {
                let (next, page) = source.page(&at)?;
                cursor = next;
                progress.keys += page.len() as u64;
                let Page {
                    mut keys,
                    others,
                    expired,
                } = page;
                keys.retain(|key| !unusable.has(*database, &key.name));
                if !is_copying {
                    if has_place {
                        compare(&mut source, &mut target.client, &keys, &mut counts)?;
                    }
                    show(&mut progress, &counts);
                    continue;
                }
                counts.vanished_keys += expired;
                if !has_place {
                    let names = keys.iter().map(|key| &key.name);
                    for name in names.chain(others.iter().map(|(name, _)| name)) {
                        counts.skip(name, no_database(*database));
                    }
                    continue;
                }
                for (name, why) in others {
                    counts.skip(&name, why);
                }
                if options.is_dry_run {
                    count(&mut target, &keys, &mut counts)?;
                } else {
                    let mut copier = Copier {
                        source: &mut source,
                        target: &mut target,
                        resume: options.resume,
                        counts: &mut counts,
                    };
                    copier.copy(keys, &mut |counts| show(&mut progress, counts))?;
                }
                show(&mut progress, &counts);
            }
        }
    }
    progress.end();
    Ok(counts)
}

/// Counts what would be copied.
fn count(target: &mut Target, keys: &[SourceKey], counts: &mut Counts) -> Result<(), ClientError> {
    let names: Vec<&[u8]> = keys.iter().map(|key| key.name.as_slice()).collect();
    let are_there = target.are_there(&names)?;
    for (name, is_there) in names.into_iter().zip(are_there) {
        match is_there && !target.replaces {
            true => counts.kept(name),
            false => counts.copied_keys += 1,
        }
    }
    Ok(())
}

fn show(progress: &mut Progress, counts: &Counts) {
    progress.show(format_args!("{} elements copied", counts.copied_elements));
}

/// Identifies a running server.
fn run_id(client: &mut Client) -> Result<Option<String>, ClientError> {
    let fields = client.info_fields(&["server"])?;
    Ok(fields
        .has("run_id")
        .then(|| fields.text("run_id").to_owned()))
}

/// Compares the numbers of elements.
fn compare(
    source: &mut Source,
    target: &mut Client,
    keys: &[SourceKey],
    counts: &mut Counts,
) -> Result<(), ClientError> {
    for key in keys {
        target.queue(&[key.kind.import.counting, &key.name]);
    }
    target.send()?;
    let mut different = Vec::new();
    for key in keys {
        // An error, because of another type, counts as no elements.
        let there = target.read()?.integer().unwrap_or(0);
        counts.checked_keys += 1;
        if there != key.count {
            different.push(key);
        }
    }
    for key in different {
        // Once more: it may have expired between the two questions.
        let question = [key.kind.import.counting, &key.name];
        let here = source.client().call(&question)?.integer().unwrap_or(0);
        let there = target.call(&question)?.integer().unwrap_or(0);
        // Fields may have expired, and are removed at each server when it gets to it.
        let has_lost = key.has_field_expiries && there < here;
        if here != there && !has_lost {
            counts.differs(&key.name, here, there);
        }
    }
    Ok(())
}
