//! What an export has done, for people.

use quoin_base::size::counted;
use std::collections::BTreeMap;
use std::fmt;

/// Keys that could not be exported and are named.
const COMPLAINTS_MAX: usize = 20;
/// Keys that are skipped and are named.
const SKIPPED_NAMES_MAX: usize = 20;

/// What an export has done.
#[derive(Debug, Default)]
pub struct Report {
    /// Keys in the file.
    pub exported_keys: u64,
    /// Libraries of functions in the file.
    pub libraries: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Those of them that redis-server refuses the file for, by type.
    own: BTreeMap<String, u64>,
    /// Keys of types that Redis does not have and that were left out, by type.
    pub skipped: BTreeMap<String, u64>,
    /// Names of the first of them.
    skipped_names: Vec<String>,
    /// Keys that could not be exported.
    pub failed_keys: u64,
    complaints: Vec<String>,
}

impl Report {
    /// Whether all that was asked for is in the file.
    pub fn is_complete(&self) -> bool {
        self.failed_keys == 0
    }

    /// A key of a type that Redis does not have is in the file.
    pub(super) fn exported_own(&mut self, kind: String) {
        self.exported_keys += 1;
        *self.own.entry(kind).or_default() += 1;
    }

    pub(super) fn skip(&mut self, key: &[u8], kind: String) {
        if self.skipped_names.len() < SKIPPED_NAMES_MAX {
            self.skipped_names
                .push(format!("\"{}\"", key.escape_ascii()));
        }
        *self.skipped.entry(kind).or_default() += 1;
    }

    pub(super) fn fail(&mut self, key: &[u8], why: &str) {
        self.failed_keys += 1;
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints
                .push(format!("\"{}\": not exported: {why}", key.escape_ascii()));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.complaints {
            writeln!(out, "{line}")?;
        }
        if self.failed_keys > 0 {
            writeln!(out, "{} could not be exported", self.failed_keys)?;
        }
        for (kind, count) in &self.skipped {
            writeln!(out, "{count} skipped: Redis has no type {kind}")?;
        }
        if !self.skipped_names.is_empty() {
            let skipped: u64 = self.skipped.values().sum();
            write!(out, "skipped are {}", self.skipped_names.join(", "))?;
            match skipped.saturating_sub(self.skipped_names.len() as u64) {
                0 => writeln!(out)?,
                more => writeln!(out, " and {more} more")?,
            }
        }
        for (kind, count) in &self.own {
            writeln!(out, "{count} of type {kind}, which Redis does not have")?;
        }
        if !self.own.is_empty() {
            writeln!(
                out,
                "quoin import reads this file; redis-server refuses it, unless --for-redis leaves \
                 these out"
            )?;
        }
        if self.libraries > 0 {
            let libraries = counted(
                self.libraries,
                "library of functions",
                "libraries of functions",
            );
            writeln!(out, "{libraries} exported")?;
        }
        let keys = counted(self.exported_keys, "key", "keys");
        write!(out, "{keys} exported, {} bytes", self.bytes)
    }
}
