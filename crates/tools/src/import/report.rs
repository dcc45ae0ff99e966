//! The report of an import: its counts, keys that it could not copy, and the errors that end it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::options::Options;
use quoin_base::size::counted;
use quoin_client::{Address, ClientError};
use quoin_rdb::RdbError;

/// Maximum number of keys with problems that an import names.
const COMPLAINTS_MAX: usize = 20;

/// Maximum number of skipped keys that it names.
const SKIPPED_NAMES_MAX: usize = 20;

/// The result of an import.
#[derive(Debug, Default)]
pub struct Counts {
    /// Keys that were copied.
    pub copied_keys: u64,
    /// Their elements and members.
    pub copied_elements: u64,
    /// Keys that the target already had with the source's value.
    pub present_keys: u64,
    /// Keys that already existed, and stay because they should not be replaced.
    pub kept_keys: u64,
    /// Libraries of functions that were loaded.
    pub libraries: u64,
    /// Keys that were deleted or expired while they were copied.
    pub vanished_keys: u64,
    /// What was skipped because Quoin or the target cannot store it, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Names of the first skipped keys.
    pub skipped_names: Vec<String>,
    /// Whether an import that skips something counts as complete.
    pub may_skip: bool,
    /// Libraries of functions that already existed with the same code.
    pub present_libraries: u64,
    /// Keys that the target refused.
    pub failed_keys: u64,
    /// Keys whose number of elements was compared at the end.
    pub checked_keys: u64,
    /// Those among them that differed.
    pub different_keys: u64,
    /// Whether nothing was written. The numbers then say what would be.
    pub is_dry_run: bool,
    /// Whether the source was one node of a Redis Cluster.
    pub is_of_cluster: bool,
    /// Lines about the first keys with problems.
    pub complaints: Vec<String>,
    /// While an append-only file is replayed: keys that will not be copied.
    pub(super) unusable: Option<UnusableKeys>,
}

/// Why a key that an append-only file has is not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    Skipped(String),
    Failed(String),
}

/// Keys of an append-only file that are unusable: Quoin cannot keep them, or did not understand a command
/// that changed them.
#[derive(Debug, Default)]
pub(super) struct UnusableKeys {
    /// The database of the keys that are added next.
    pub(super) database: u32,
    pub(super) keys: BTreeMap<(u32, Vec<u8>), Unusable>,
    /// What was skipped in addition to keys.
    pub(super) others: Option<Box<Counts>>,
}

impl UnusableKeys {
    /// Whether a key is among them.
    pub(super) fn has(&self, database: u32, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.contains_key(&(database, key.to_vec()))
    }

    /// The first reason stays.
    pub(super) fn add(&mut self, key: &[u8], why: Unusable) {
        self.add_in(self.database, key, why);
    }

    /// In another database.
    pub(super) fn add_in(&mut self, database: u32, key: &[u8], why: Unusable) {
        let place = (database, key.to_vec());
        self.keys.entry(place).or_insert(why);
    }
}

/// Reason for skipping a key whose database the target does not have.
pub(super) fn no_database(database: u32) -> String {
    format!("of database {database}, which is beyond the target's setting databases")
}

/// Reason for skipping a key of a type that Quoin does not have.
pub(super) fn of_type(kind: &str) -> String {
    format!("of type {kind}")
}

impl Counts {
    /// An empty result.
    pub(super) fn new(options: &Options) -> Self {
        Self {
            is_dry_run: options.is_dry_run,
            may_skip: options.may_skip,
            ..Self::default()
        }
    }

    /// Whether everything is at the target, or was skipped as the command line allows it.
    pub fn is_complete(&self) -> bool {
        self.failed_keys == 0
            && self.different_keys == 0
            && self.kept_keys == 0
            && (self.may_skip || self.skipped.is_empty())
    }

    pub(super) fn failed(&mut self, key: &[u8], refusal: &str) {
        if let Some(unusable) = &mut self.unusable {
            unusable.add(key, Unusable::Failed(refusal.to_owned()));
            return;
        }
        self.failed_keys += 1;
        self.complain(key, format_args!("not copied: {refusal}"));
    }

    pub(super) fn differs(&mut self, key: &[u8], here: i64, there: i64) {
        self.different_keys += 1;
        let text = format_args!("{here} elements at the source, {there} at the target");
        self.complain(key, text);
    }

    /// Notes a key that exists at the target and is not replaced.
    pub(super) fn kept(&mut self, key: &[u8]) {
        self.kept_keys += 1;
        self.complain(key, format_args!("exists already; --replace replaces it"));
    }

    /// Records a skipped key that Quoin or the target cannot store.
    pub(super) fn skip(&mut self, key: &[u8], why: String) {
        if let Some(unusable) = &mut self.unusable {
            unusable.add(key, Unusable::Skipped(why));
            return;
        }
        self.skip_named(format!("\"{}\"", key.escape_ascii()), why);
    }

    /// Adds the counts of what is not a key.
    pub(super) fn take_others(&mut self, others: Option<&Counts>) {
        let Some(others) = others else { return };
        for (why, count) in &others.skipped {
            *self.skipped.entry(why.clone()).or_default() += count;
        }
        self.skipped_names.extend(others.skipped_names.clone());
        self.failed_keys += others.failed_keys;
        self.different_keys += others.different_keys;
        self.kept_keys += others.kept_keys;
        self.complaints.extend(others.complaints.clone());
    }

    /// Records something else that is skipped.
    pub(super) fn skip_named(&mut self, name: String, why: String) {
        if self.skipped_names.len() < SKIPPED_NAMES_MAX {
            self.skipped_names.push(name);
        }
        *self.skipped.entry(why).or_default() += 1;
    }

    /// A library of functions could not be loaded.
    pub(super) fn library_failed(&mut self, name: &str, refusal: &str) {
        self.failed_keys += 1;
        if self.complaints.len() < COMPLAINTS_MAX {
            let text = format!("library of functions '{name}': not copied: {refusal}");
            self.complaints.push(text);
        }
    }

    fn complain(&mut self, key: &[u8], what: fmt::Arguments<'_>) {
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints
                .push(format!("\"{}\": {what}", key.escape_ascii()));
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.complaints {
            writeln!(out, "{line}")?;
        }
        let wrong = self.failed_keys + self.different_keys + self.kept_keys;
        if wrong > self.complaints.len() as u64 {
            let more = wrong - self.complaints.len() as u64;
            writeln!(out, "… and {more} more")?;
        }
        if self.is_dry_run {
            writeln!(
                out,
                "nothing was written: {} would be copied",
                counted(self.copied_keys, "key", "keys")
            )?;
        } else {
            writeln!(
                out,
                "{} copied, with {}",
                counted(self.copied_keys, "key", "keys"),
                counted(self.copied_elements, "element", "elements")
            )?;
        }
        if self.libraries > 0 {
            let libraries = counted(
                self.libraries,
                "library of functions",
                "libraries of functions",
            );
            writeln!(out, "{libraries} loaded")?;
        }
        for (count, what) in [
            (
                self.present_libraries,
                "libraries of functions existed already",
            ),
            (self.present_keys, "existed already"),
            (self.kept_keys, "EXISTED ALREADY and were not replaced"),
            (self.vanished_keys, "were gone before they were copied"),
            (self.failed_keys, "could not be copied"),
        ] {
            if count > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        for (kind, count) in &self.skipped {
            writeln!(out, "{count} skipped: {kind}")?;
        }
        if !self.skipped_names.is_empty() {
            let names = self.skipped_names.join(", ");
            let skipped: u64 = self.skipped.values().sum();
            let more = skipped - (self.skipped_names.len() as u64).min(skipped);
            match more {
                0 => writeln!(out, "skipped: {names}")?,
                more => writeln!(out, "skipped: {names} and {more} more")?,
            }
            if !self.may_skip {
                writeln!(out, "with --skip, that does not count as a failure")?;
            }
        }
        if self.is_dry_run {
            write!(out, "nothing was compared")?;
        } else {
            let checked = counted(self.checked_keys, "key", "keys");
            write!(out, "{checked} compared: ")?;
            match self.different_keys {
                0 => write!(out, "all have the same number of elements on both sides")?,
                count => write!(out, "{count} DIFFER in their number of elements")?,
            }
        }
        if self.is_of_cluster {
            write!(
                out,
                "\n\
                 ONLY THIS MASTER'S KEYS were copied. It belongs to a Redis Cluster: run the \
                 import once for each master"
            )?;
        }
        Ok(())
    }
}

/// Why an import failed. What it has copied is complete, and it can be run again.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A server cannot be reached, breaks the connection, or refuses something that is required.
    #[error("{}{}", .0, advice(.0))]
    Client(#[from] ClientError),
    /// The source is a replica in a Redis Cluster, which does not allow its keys to be watched.
    #[error("{address} is a replica of a Redis Cluster; import from its master")]
    ClusterReplica {
        /// The server.
        address: Address,
    },
    /// The target is another program.
    #[error("{0} is not a Quoin; --any-target writes to it anyway")]
    NoQuoin(Address),
    /// The file cannot be opened.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read, or is damaged.
    #[error("{}: {source}", path.display())]
    Rdb {
        /// The file.
        path: PathBuf,
        /// Why.
        source: RdbError,
    },
    /// A file of commands is damaged.
    #[error("{}: it is damaged at byte {at}: {what}; redis-check-aof may help", path.display())]
    Aof {
        /// The file.
        path: PathBuf,
        /// Byte offset.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The manifest of an append-only file cannot be used.
    #[error("manifest of {}: {what}", path.display())]
    Manifest {
        /// The manifest, or the folder.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// One file of several.
    #[error(
        "{}: it is one of the files of an append-only file, and has only what was written after the \
         others; import their folder", .0.display()
    )]
    LoneIncrement(PathBuf),
    /// The server for replaying an append-only file does not start.
    #[error("cannot start the server that replays the file: {0}")]
    Scratch(String),
    /// Both addresses lead to one server.
    #[error("--from and --to are the same server")]
    SameServer,
}

fn advice(error: &ClientError) -> &'static str {
    match error {
        ClientError::Lost { .. } => "; run it again, with --resume, to go on",
        _ => "",
    }
}

/// The error for a damaged RDB file.
pub(super) fn no_rdb(path: &Path) -> impl Fn(RdbError) -> ImportError + '_ {
    move |source| ImportError::Rdb {
        path: path.to_owned(),
        source,
    }
}

/// The error of a file that cannot be opened or read.
pub(super) fn no_file(path: &Path) -> impl Fn(io::Error) -> ImportError + '_ {
    move |source| ImportError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_named_up_to_a_number() {
        let mut counts = Counts::default();
        for number in 0..30 {
            let name = format!("bloom{number}");
            counts.skip(name.as_bytes(), of_type("MBbloom--"));
        }
        counts.kept(b"list");
        let text = counts.to_string();
        for line in [
            "\"list\": exists already; --replace replaces it\n",
            "1 EXISTED ALREADY and were not replaced\n",
            "30 skipped: of type MBbloom--\n",
            "skipped: \"bloom0\", \"bloom1\",",
            "\"bloom19\" and 10 more\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(!counts.is_complete());
    }

    #[test]
    fn what_is_left_behind_is_complete_only_where_that_is_allowed() {
        let mut counts = Counts::default();
        assert!(counts.is_complete());
        counts.skip(b"bloom", of_type("MBbloom--"));
        assert!(!counts.is_complete());
        counts.may_skip = true;
        assert!(counts.is_complete());
        counts.failed(b"key", "refused");
        assert!(!counts.is_complete());
    }

    #[test]
    fn what_went_wrong_before_counts_as_well() {
        let mut different = Counts::default();
        different.differs(b"list", 2, 1);
        let mut kept = Counts::default();
        kept.kept(b"list");
        for others in [different, kept] {
            let mut counts = Counts::default();
            counts.take_others(Some(&others));
            assert!(!counts.is_complete());
            assert_eq!(counts.complaints.len(), 1);
        }
    }
}
