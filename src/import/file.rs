//! Importing an RDB file.
//!
//! The file is read twice. First to its end, with its checksum, so that nothing of a damaged file is
//! written; that also tells how many keys there are. Then its values are written, each with RESTORE,
//! or, where it is large, in parts under a temporary name. The number of elements of each key is asked
//! for right after.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use bytes::Bytes;

use super::counts::Counts;
use super::elements::{self, Elements};
use super::error::ImportError;
use super::kinds::Kind;
use super::options::Options;
use super::target::{ATTEMPTS_MAX, Attempt, RETRY_PAUSE, Target};
use crate::clock::{Clock, SystemClock};
use crate::dump::{RdbItem, RdbKey, RdbReader, RdbValue, libraries_payload};
use crate::glob::{Case, matches};
use crate::limits::{DATABASES, IMPORT_CHUNK_BYTES, IMPORT_VALUE_BYTES_MAX};
use crate::redis_client::{ClientError, Databases, Progress};

/// Small values that are sent together.
const KEYS_AT_ONCE: usize = 100;
/// Keys between two looks at the progress while nothing is written.
const KEYS_PER_LOOK: u64 = 1_000;
/// What is said of a value that is passed over because of its size.
const TOO_LARGE: &str = "value too large";
/// What is said of a module's value.
const MODULE: &str = "a module";

/// Writes what is in a file.
pub(super) fn run(
    path: &Path,
    options: &Options,
    target: &mut Target,
) -> Result<Counts, ImportError> {
    let mut progress = Progress::new();
    let mut counts = Counts {
        is_dry_run: options.is_dry_run,
        ..Counts::default()
    };
    progress.begin("reading:");
    let keys = read(path, options, |_| {
        progress.keys += 1;
        if progress.keys.is_multiple_of(KEYS_PER_LOOK) {
            progress.show(format_args!("the file is read to its end first"));
        }
        Ok(())
    })?;
    progress.keys_total = Some(keys);
    progress.begin("copying:");
    let mut copier = Copier {
        options,
        target,
        counts: &mut counts,
        progress: &mut progress,
        database: None,
        waiting: Vec::new(),
        waiting_bytes: 0,
        now_ms: SystemClock.now_ms(),
    };
    read(path, options, |item| copier.take(item))?;
    copier.flush()?;
    progress.end();
    Ok(counts)
}

/// Reads a file to its end, and answers how many keys it has that are wanted.
fn read(
    path: &Path,
    options: &Options,
    mut take: impl FnMut(RdbItem) -> Result<(), ClientError>,
) -> Result<u64, ImportError> {
    let file = File::open(path).map_err(|source| ImportError::File {
        path: path.to_owned(),
        source,
    })?;
    let damaged = |source| ImportError::Rdb {
        path: path.to_owned(),
        source,
    };
    let mut reader =
        RdbReader::begin(BufReader::new(file), IMPORT_VALUE_BYTES_MAX).map_err(damaged)?;
    let mut keys = 0;
    while let Some(item) = reader.next_item().map_err(damaged)? {
        let is_wanted = match &item {
            RdbItem::Key(key) => is_wanted(key, options),
            RdbItem::Library(_) => options.pattern.is_none(),
            RdbItem::ModuleData => false,
        };
        if is_wanted {
            keys += u64::from(matches!(item, RdbItem::Key(_)));
            take(item)?;
        }
    }
    Ok(keys)
}

fn is_wanted(key: &RdbKey, options: &Options) -> bool {
    let is_of_database = match &options.databases {
        Databases::All => true,
        Databases::Some(numbers) => numbers.contains(&key.database),
    };
    let pattern = options.pattern.as_ref();
    is_of_database
        && pattern.is_none_or(|pattern| matches(pattern.as_bytes(), &key.name, Case::Sensitive))
}

/// A key that waits to be sent.
struct Waiting {
    name: Bytes,
    kind: &'static Kind,
    payload: Bytes,
    expire_at_ms: Option<i64>,
    count: u64,
}

/// Writes keys as they come.
struct Copier<'a> {
    options: &'a Options,
    target: &'a mut Target,
    counts: &'a mut Counts,
    progress: &'a mut Progress,
    /// The database of the file whose keys are written.
    database: Option<u32>,
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    now_ms: i64,
}

impl Copier<'_> {
    fn take(&mut self, item: RdbItem) -> Result<(), ClientError> {
        match item {
            RdbItem::Library(code) => self.library(&code),
            RdbItem::Key(key) => self.key(key),
            RdbItem::ModuleData => Ok(()),
        }
    }

    fn library(&mut self, code: &Bytes) -> Result<(), ClientError> {
        if self.options.is_dry_run {
            self.counts.libraries += 1;
            return Ok(());
        }
        let payload = libraries_payload([code]);
        let policy: &[u8] = if self.target.replaces {
            b"REPLACE"
        } else {
            b"APPEND"
        };
        let words: [&[u8]; 4] = [b"FUNCTION", b"RESTORE", &payload, policy];
        let reply = self.target.client.call(&words)?;
        match reply.error_text() {
            None => self.counts.libraries += 1,
            Some(line) => self.counts.failed(b"a library of functions", &line),
        }
        Ok(())
    }

    fn key(&mut self, key: RdbKey) -> Result<(), ClientError> {
        self.progress.keys += 1;
        if key.expire_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
            self.counts.vanished_keys += 1;
            return Ok(());
        }
        if self.database != Some(key.database) {
            self.flush()?;
            self.database = Some(key.database);
            let database = self.options.to.database.unwrap_or(key.database);
            if database < DATABASES {
                self.target.select(database)?;
            }
        }
        if self.options.to.database.is_none() && key.database >= DATABASES {
            let refusal = format!("there is no database {}", key.database);
            self.counts.failed(&key.name, &refusal);
            return Ok(());
        }
        let payload = match key.value {
            RdbValue::Payload(payload) => payload,
            RdbValue::Module => {
                self.counts.skip(&key.name, MODULE.to_owned());
                return Ok(());
            }
            RdbValue::TooLarge(_) => {
                self.counts.failed(&key.name, TOO_LARGE);
                return Ok(());
            }
        };
        let (kind, count) = match elements::count(&payload) {
            Ok(counted) => counted,
            Err(error) => {
                self.counts.failed(&key.name, &error.to_string());
                return Ok(());
            }
        };
        let waiting = Waiting {
            name: key.name,
            kind,
            payload,
            expire_at_ms: key.expire_at_ms,
            count,
        };
        if self.options.is_dry_run {
            return self.look(&waiting);
        }
        if waiting.payload.len() > IMPORT_CHUNK_BYTES {
            self.flush()?;
            return self.large(&waiting);
        }
        self.waiting_bytes += waiting.payload.len();
        self.waiting.push(waiting);
        if self.waiting.len() >= KEYS_AT_ONCE || self.waiting_bytes > IMPORT_CHUNK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Says what would become of a key.
    fn look(&mut self, key: &Waiting) -> Result<(), ClientError> {
        let is_kept = !self.target.replaces && self.target.are_there(&[&key.name])?.contains(&true);
        match is_kept {
            true => self.counts.kept(&key.name),
            false => self.counts.copied_keys += 1,
        }
        self.show();
        Ok(())
    }

    /// Sends what waits.
    fn flush(&mut self) -> Result<(), ClientError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        for key in &waiting {
            self.target
                .queue_restore(&key.name, key.expire_at_ms, &key.payload);
            self.target.client.queue(&[key.kind.counting, &key.name]);
        }
        self.target.client.send()?;
        let mut replies = Vec::with_capacity(waiting.len());
        for key in &waiting {
            let restored = self.target.client.read()?;
            let counted = self.target.client.read()?;
            replies.push((Target::restored(&restored, key.count), counted.integer()));
        }
        for (key, (attempt, there)) in waiting.iter().zip(replies) {
            match attempt {
                // Too large for one transaction of the store, most likely.
                Attempt::Refused(_) => self.large(key)?,
                attempt => self.note(key, attempt, there),
            }
        }
        self.show();
        Ok(())
    }

    fn note(&mut self, key: &Waiting, attempt: Attempt, there: Option<i64>) {
        match attempt {
            Attempt::Copied(count) => {
                self.counts.copied_keys += 1;
                self.counts.copied_elements += count;
                self.compare(key, there);
            }
            Attempt::Kept => self.counts.kept(&key.name),
            Attempt::Vanished => self.counts.vanished_keys += 1,
            Attempt::Refused(why) => self.counts.failed(&key.name, &why),
        }
    }

    fn compare(&mut self, key: &Waiting, there: Option<i64>) {
        self.counts.checked_keys += 1;
        let here = i64::try_from(key.count).unwrap_or(i64::MAX);
        let there = there.unwrap_or(0);
        let has_expired = || {
            let now_ms = SystemClock.now_ms();
            key.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
        };
        if here != there && !has_expired() {
            self.counts.differs(&key.name, here, there);
        }
    }

    /// Writes a value in parts.
    fn large(&mut self, key: &Waiting) -> Result<(), ClientError> {
        if !self.target.replaces && self.target.are_there(&[&key.name])?.contains(&true) {
            self.counts.kept(&key.name);
            return Ok(());
        }
        let temporary = self.target.temporary_name(&key.name);
        let mut last = Attempt::Vanished;
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                std::thread::sleep(RETRY_PAUSE);
                self.target.client.call(&[b"DEL", temporary.as_slice()])?;
            }
            last = self.try_large(key, &temporary)?;
            if !matches!(last, Attempt::Refused(_)) {
                break;
            }
        }
        if let Attempt::Refused(_) = last {
            self.target.client.call(&[b"DEL", temporary.as_slice()])?;
        }
        let counted = self.target.client.call(&[key.kind.counting, &key.name])?;
        self.note(key, last, counted.integer());
        self.show();
        Ok(())
    }

    fn try_large(&mut self, key: &Waiting, temporary: &[u8]) -> Result<Attempt, ClientError> {
        let expire_at_ms = key.expire_at_ms;
        if key.kind.is_dumped() {
            let put = self
                .target
                .put_stream(&key.payload, temporary, &mut |_| ())?;
            return match put {
                Ok(count) => self
                    .target
                    .finish_large(&key.name, temporary, expire_at_ms, count),
                Err(refusal) => Ok(Attempt::Refused(refusal)),
            };
        }
        let mut elements = match Elements::new(&key.payload) {
            Ok(elements) => elements,
            Err(error) => return Ok(Attempt::Refused(error.to_string())),
        };
        loop {
            let words = match elements.next_words(IMPORT_CHUNK_BYTES) {
                Ok(words) => words,
                Err(error) => return Ok(Attempt::Refused(error.to_string())),
            };
            if words.is_empty() {
                break;
            }
            if let Err(refusal) = self.target.push(key.kind, temporary, words)? {
                return Ok(Attempt::Refused(refusal));
            }
        }
        self.target
            .finish_large(&key.name, temporary, expire_at_ms, key.count)
    }

    fn show(&mut self) {
        let copied = self.counts.copied_elements;
        self.progress.show(format_args!("{copied} elements copied"));
    }
}
