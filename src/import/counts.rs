//! What an import has done, for people.

use std::collections::BTreeMap;
use std::fmt;

/// Keys with which something is wrong that an import names.
const COMPLAINTS_MAX: usize = 20;

/// What an import has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Keys that were copied.
    pub copied_keys: u64,
    /// Their elements and members.
    pub copied_elements: u64,
    /// Keys that were there already.
    pub present_keys: u64,
    /// Keys that were deleted or expired while they were copied.
    pub vanished_keys: u64,
    /// Keys of types that are not copied, by type.
    pub skipped: BTreeMap<String, u64>,
    /// Keys that the target refused.
    pub failed_keys: u64,
    /// Keys whose number of elements was compared at the end.
    pub checked_keys: u64,
    /// Those of them that differed.
    pub different_keys: u64,
    /// Whether the source was one node of a Redis Cluster.
    pub is_of_cluster: bool,
    /// Lines about the first keys with which something is wrong.
    pub complaints: Vec<String>,
}

impl Counts {
    /// Whether everything is at the target.
    pub fn is_complete(&self) -> bool {
        self.failed_keys == 0 && self.different_keys == 0
    }

    pub(super) fn failed(&mut self, key: &[u8], refusal: &str) {
        self.failed_keys += 1;
        self.complain(key, format_args!("not copied: {refusal}"));
    }

    pub(super) fn differs(&mut self, key: &[u8], here: i64, there: i64) {
        self.different_keys += 1;
        let text = format_args!("{here} elements at the source, {there} at the target");
        self.complain(key, text);
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
        let wrong = self.failed_keys + self.different_keys;
        if wrong > self.complaints.len() as u64 {
            let more = wrong - self.complaints.len() as u64;
            writeln!(out, "… and {more} more")?;
        }
        writeln!(
            out,
            "{} keys copied, with {} elements",
            self.copied_keys, self.copied_elements
        )?;
        for (count, what) in [
            (self.present_keys, "were there already"),
            (self.vanished_keys, "were gone before they were copied"),
            (self.failed_keys, "could not be copied"),
        ] {
            if count > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        for (kind, count) in &self.skipped {
            writeln!(out, "{count} skipped: of type {kind}")?;
        }
        write!(out, "{} keys compared: ", self.checked_keys)?;
        match self.different_keys {
            0 => write!(out, "all have the same number of elements on both sides")?,
            count => write!(out, "{count} DIFFER in their number of elements")?,
        }
        if self.is_of_cluster {
            write!(
                out,
                "\nONLY THIS MASTER'S KEYS were copied, of a Redis Cluster: run it once for each \
                 of its masters"
            )?;
        }
        Ok(())
    }
}
