//! What an import has done, for people.

use crate::size::counted;
use std::collections::BTreeMap;
use std::fmt;

/// Keys with which something is wrong that an import names.
const COMPLAINTS_MAX: usize = 20;
/// Keys that are skipped which it names.
const SKIPPED_NAMES_MAX: usize = 20;

/// What an import has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Keys that were copied.
    pub copied_keys: u64,
    /// Their elements and members.
    pub copied_elements: u64,
    /// Keys that were there already, as they are at the source.
    pub present_keys: u64,
    /// Keys that were there already, and stay because they are not to be replaced.
    pub kept_keys: u64,
    /// Libraries of functions that were loaded.
    pub libraries: u64,
    /// Keys that were deleted or expired while they were copied.
    pub vanished_keys: u64,
    /// Keys of types that are not copied, by type.
    pub skipped: BTreeMap<String, u64>,
    /// Names of the first of them.
    pub skipped_names: Vec<String>,
    /// Keys that the target refused.
    pub failed_keys: u64,
    /// Keys whose number of elements was compared at the end.
    pub checked_keys: u64,
    /// Those of them that differed.
    pub different_keys: u64,
    /// Whether nothing was written: the numbers are of what would be.
    pub is_dry_run: bool,
    /// Whether the source was one node of a Redis Cluster.
    pub is_of_cluster: bool,
    /// Lines about the first keys with which something is wrong.
    pub complaints: Vec<String>,
}

impl Counts {
    /// Whether everything is at the target.
    pub fn is_complete(&self) -> bool {
        self.failed_keys == 0 && self.different_keys == 0 && self.kept_keys == 0
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

    /// A key is there already, and is not to be replaced.
    pub(super) fn kept(&mut self, key: &[u8]) {
        self.kept_keys += 1;
        self.complain(key, format_args!("is there already; --replace replaces it"));
    }

    /// A key is of a type that is not copied.
    pub(super) fn skip(&mut self, key: &[u8], kind: String) {
        if self.skipped_names.len() < SKIPPED_NAMES_MAX {
            self.skipped_names
                .push(format!("\"{}\"", key.escape_ascii()));
        }
        *self.skipped.entry(kind).or_default() += 1;
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
        for (count, what) in [
            (self.libraries, "libraries of functions loaded"),
            (self.present_keys, "were there already"),
            (self.kept_keys, "WERE THERE ALREADY and were not replaced"),
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
        if !self.skipped_names.is_empty() {
            let names = self.skipped_names.join(", ");
            let skipped: u64 = self.skipped.values().sum();
            let more = skipped - (self.skipped_names.len() as u64).min(skipped);
            match more {
                0 => writeln!(out, "skipped are {names}")?,
                more => writeln!(out, "skipped are {names} and {more} more")?,
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
                "\nONLY THIS MASTER'S KEYS were copied, of a Redis Cluster: run it once for each \
                 of its masters"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_named_up_to_a_number() {
        let mut counts = Counts::default();
        for number in 0..30 {
            counts.skip(format!("bloom{number}").as_bytes(), "MBbloom--".to_owned());
        }
        counts.kept(b"list");
        let text = counts.to_string();
        for line in [
            "\"list\": is there already; --replace replaces it\n",
            "1 WERE THERE ALREADY and were not replaced\n",
            "30 skipped: of type MBbloom--\n",
            "skipped are \"bloom0\", \"bloom1\",",
            "\"bloom19\" and 10 more\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(!counts.is_complete());
    }
}
