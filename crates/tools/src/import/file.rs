//! Importing an RDB file.
//!
//! The file is read twice. The first pass reads to the end and verifies the checksum, so that
//! nothing of a damaged file is written, and counts the keys. The second pass writes the values,
//! each with RESTORE, or in parts under a temporary name if it is large. The number of elements of
//! each key is compared directly afterwards.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use bytes::Bytes;

use super::elements::{self, field_expiries};
use super::functions;
use super::kinds::Kind;
use super::options::Options;
use super::report::{Counts, ImportError, no_database, no_file, no_rdb, of_type};
use super::target::{ATTEMPTS_MAX, Attempt, RETRY_PAUSE, Target};
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::limits::{IMPORT_CHUNK_BYTES, IMPORT_VALUE_BYTES_MAX};
use quoin_client::{ClientError, Progress};
use quoin_rdb::{AofRole, DumpError, RdbError, RdbItem, RdbKey, RdbReader, RdbValue};

/// Small values that are sent together.
const KEYS_AT_ONCE: usize = 100;

/// Number of keys between two updates of the progress while nothing is written.
const KEYS_PER_UPDATE: u64 = 1_000;

/// Reason for skipping a value that is too large.
const TOO_LARGE: &str = "larger than a value that is read from a file may be";

/// Reason for skipping the value of a module.
const MODULE: &str = "a module";

/// Reason for skipping data of a module without a key.
const MODULE_DATA: &str = "data of no key";

/// Writes the content of a file.
pub(super) fn run(
    path: &Path,
    options: &Options,
    target: &mut Target,
) -> Result<Counts, ImportError> {
    let mut progress = Progress::start();
    progress.begin("reading:");
    let read = read(path, options, |_| {
        progress.keys += 1;
        if progress.keys.is_multiple_of(KEYS_PER_UPDATE) {
            progress.show(format_args!("the file is read to its end first"));
        }
        Ok(())
    })?;
    check_end(path, &read)?;
    progress.keys_total = Some(read.keys);
    let mut counts = Counts::new(options);
    write(path, options, target, 0, &mut counts, &mut progress)?;
    progress.end();
    if read.role == AofRole::Base {
        counts.skip_named(
            format!("the end of {}", path.display()),
            "the file is the base of an append-only file: what was written after it is in *.incr.aof \
             files next to it; import their folder"
                .to_owned(),
        );
    }
    Ok(counts)
}

/// Nothing may come after the checksum.
fn check_end(path: &Path, read: &ReadFile) -> Result<(), ImportError> {
    match read.file_bytes.checked_sub(read.end) {
        None | Some(0) => Ok(()),
        Some(bytes) => Err(ImportError::Rdb {
            path: path.to_owned(),
            source: RdbError::Trailing {
                at: read.end,
                bytes,
            },
        }),
    }
}

/// Writes a file that was already read completely. Keys expire `expiry_shift_ms` later than the
/// file says. If that is not 0, expired keys are written too.
pub(super) fn write(
    path: &Path,
    options: &Options,
    target: &mut Target,
    expiry_shift_ms: i64,
    counts: &mut Counts,
    progress: &mut Progress,
) -> Result<(), ImportError> {
    progress.begin("copying:");
    let mut copier = Copier {
        options,
        target,
        counts,
        progress,
        database: None,
        has_place: false,
        expiry_shift_ms,
        waiting: Vec::new(),
        waiting_bytes: 0,
        now_ms: SystemClock.now_ms(),
    };
    read(path, options, |item| copier.take(item))?;
    copier.flush()?;
    Ok(())
}

/// A file that was read completely.
pub(super) struct ReadFile {
    /// Keys that are wanted.
    pub(super) keys: u64,
    /// The greatest number of a database.
    pub(super) database_max: u32,
    /// Its role in an append-only file, according to the file.
    pub(super) role: AofRole,
    /// The offset of its end.
    pub(super) end: u64,
    /// How many bytes the file has.
    pub(super) file_bytes: u64,
}

/// Reads a file to its end.
pub(super) fn read(
    path: &Path,
    options: &Options,
    mut take: impl FnMut(RdbItem) -> Result<(), ClientError>,
) -> Result<ReadFile, ImportError> {
    let file = File::open(path).map_err(no_file(path))?;
    let file_bytes = file.metadata().map_err(no_file(path))?.len();
    let mut reader =
        RdbReader::begin(BufReader::new(file), IMPORT_VALUE_BYTES_MAX).map_err(no_rdb(path))?;
    let mut keys = 0;
    let mut database_max = 0;
    while let Some(item) = reader.next_item().map_err(no_rdb(path))? {
        let is_wanted = match &item {
            RdbItem::Key(key) => {
                database_max = database_max.max(key.database);
                options.wants(key.database, &key.name)
            }
            RdbItem::Library(_) => options.pattern.is_none(),
            RdbItem::ModuleData => options.pattern.is_none(),
        };
        if is_wanted {
            keys += u64::from(matches!(item, RdbItem::Key(_)));
            take(item)?;
        }
    }
    Ok(ReadFile {
        keys,
        database_max,
        role: reader.aof_role(),
        end: reader.position(),
        file_bytes,
    })
}

/// A key that waits to be sent.
struct Waiting {
    name: Bytes,
    kind: Kind,
    payload: Bytes,
    expire_at_ms: Option<i64>,
    count: u64,
}

/// Writes keys as they arrive.
struct Copier<'a> {
    options: &'a Options,
    target: &'a mut Target,
    counts: &'a mut Counts,
    progress: &'a mut Progress,
    /// The database of the file whose keys are written.
    database: Option<u32>,
    /// Whether the target has the database that the keys are written to.
    has_place: bool,
    /// How much later than in the file all keys expire.
    expiry_shift_ms: i64,
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    now_ms: i64,
}

impl Copier<'_> {
    fn take(&mut self, item: RdbItem) -> Result<(), ClientError> {
        match item {
            RdbItem::Library(code) => functions::copy(&code, self.target, self.counts),
            RdbItem::Key(key) => self.key(key),
            RdbItem::ModuleData => {
                self.counts
                    .skip_named(MODULE_DATA.to_owned(), of_type(MODULE));
                Ok(())
            }
        }
    }

    fn key(&mut self, key: RdbKey) -> Result<(), ClientError> {
        self.progress.keys += 1;
        let is_over = key.expire_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms);
        if is_over && self.expiry_shift_ms == 0 {
            self.counts.vanished_keys += 1;
            return Ok(());
        }
        if self.database != Some(key.database) {
            self.flush()?;
            self.database = Some(key.database);
            let database = self.options.to.database.unwrap_or(key.database);
            self.has_place = self.target.select(database)?;
            if let Some(unusable) = &mut self.counts.unusable {
                unusable.database = key.database;
            }
        }
        if !self.has_place {
            self.counts.skip(&key.name, no_database(key.database));
            return Ok(());
        }
        let payload = match key.value {
            RdbValue::Payload(payload) => payload,
            RdbValue::Module => {
                self.counts.skip(&key.name, of_type(MODULE));
                return Ok(());
            }
            RdbValue::TooLarge(_) => {
                self.counts.skip(&key.name, TOO_LARGE.to_owned());
                return Ok(());
            }
        };
        let (kind, count) = match elements::count(&payload) {
            Ok(counted) => counted,
            Err(DumpError::OtherType(kind)) => {
                self.counts.skip(&key.name, format!("a {kind}"));
                return Ok(());
            }
            Err(error) => {
                self.counts.failed(&key.name, &error.to_string());
                return Ok(());
            }
        };
        let waiting = Waiting {
            name: key.name,
            kind,
            payload,
            expire_at_ms: key
                .expire_at_ms
                // A time before the epoch has expired just as much as the epoch itself.
                .map(|at_ms| at_ms.max(0).saturating_add(self.expiry_shift_ms)),
            count,
        };
        if self.options.is_dry_run {
            return self.count(&waiting);
        }
        // RESTORE would not move the expiries of fields.
        let is_moved =
            self.expiry_shift_ms > 0 && field_expiries(&waiting.payload).next().is_some();
        if waiting.payload.len() > IMPORT_CHUNK_BYTES || is_moved {
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

    /// Reports what would happen to a key.
    fn count(&mut self, key: &Waiting) -> Result<(), ClientError> {
        let is_kept = !self.target.replaces && self.target.are_there(&[&key.name])?.contains(&true);
        match is_kept {
            true => self.counts.kept(&key.name),
            false => self.counts.copied_keys += 1,
        }
        self.show();
        Ok(())
    }

    /// Sends the waiting keys.
    fn flush(&mut self) -> Result<(), ClientError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        for key in &waiting {
            self.target
                .queue_restore(&key.name, key.expire_at_ms, &key.payload);
            self.target
                .client
                .queue(&[key.kind.import.counting, &key.name]);
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
                // Most likely too large for one transaction of the store.
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
            let gone = field_expiries(&key.payload).filter(|(_, at_ms)| *at_ms <= now_ms);
            let gone = i64::try_from(gone.count()).unwrap_or(i64::MAX);
            key.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
                || (here.saturating_sub(gone)..here).contains(&there)
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
        let counted = self
            .target
            .client
            .call(&[key.kind.import.counting, &key.name])?;
        self.note(key, last, counted.integer());
        self.show();
        Ok(())
    }

    fn try_large(&mut self, key: &Waiting, temporary: &[u8]) -> Result<Attempt, ClientError> {
        let expire_at_ms = key.expire_at_ms;
        if key.kind.is_dumped() {
            let put = self
                .target
                .put_dumped_stream(&key.payload, temporary, &mut |_| ())?;
            return self
                .target
                .finish_large(&key.name, temporary, expire_at_ms, put);
        }
        let shift_ms = self.expiry_shift_ms;
        let moved = |at_ms: i64| at_ms.saturating_add(shift_ms);
        let put = self
            .target
            .put_payload(key.kind, temporary, &key.payload, moved)?;
        if put == Ok(false) {
            // All its fields have expired, so it is gone, as if it had expired itself.
            if self.target.replaces {
                self.target.client.call(&[b"DEL", &key.name[..]])?;
            }
            return Ok(Attempt::Vanished);
        }
        let put = put.map(|_| key.count);
        self.target
            .finish_large(&key.name, temporary, expire_at_ms, put)
    }

    fn show(&mut self) {
        let copied = self.counts.copied_elements;
        self.progress.show(format_args!("{copied} elements copied"));
    }
}
