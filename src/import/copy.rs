//! Copying keys, a page at a time.
//!
//! A small value becomes a payload of RESTORE, which replaces the key at once. A large one is
//! put together under a temporary name and then renamed, so that no command is larger than a
//! transaction. Either way a key is there as a whole or as it was before, and copying it again
//! ends the same.

use std::time::Duration;

use bytes::Bytes;

use super::ImportError;
use super::client::Client;
use super::source::{Kind, Source, SourceKey};
use super::tally::Tally;
use crate::dump::{ListWriter, SetWriter, small_set};
use crate::limits::{
    IMPORT_ATTEMPTS_MAX, IMPORT_CHUNK_BYTES, IMPORT_CHUNK_ELEMENTS_MAX, IMPORT_CHUNK_ELEMENTS_MIN,
    IMPORT_KEYS_AT_ONCE, IMPORT_RETRY_PAUSE_MS, IMPORT_SMALL_ELEMENTS_MAX,
    IMPORT_TEMPORARY_LIFETIME_MS,
};
use crate::number::parse_double;

/// Writes what comes from a source into a target.
pub(super) struct Copier<'a> {
    pub(super) source: &'a mut Source,
    pub(super) target: &'a mut Client,
    /// What temporary names begin with, in this run only.
    pub(super) temporary_prefix: &'a str,
    pub(super) resume: bool,
    pub(super) tally: &'a mut Tally,
}

/// Why one key was not copied; others may be.
type Refusal = String;

impl Copier<'_> {
    /// Copies keys; calls `after_each` from time to time.
    pub(super) fn copy(
        &mut self,
        keys: Vec<SourceKey>,
        after_each: &mut dyn FnMut(&Tally),
    ) -> Result<(), ImportError> {
        let keys = if self.resume {
            self.not_there(keys)?
        } else {
            keys
        };
        let (small, mut large): (Vec<SourceKey>, Vec<SourceKey>) = keys
            .into_iter()
            .partition(|key| key.count <= IMPORT_SMALL_ELEMENTS_MAX);
        for group in small.chunks(IMPORT_KEYS_AT_ONCE) {
            self.copy_small(group, &mut large)?;
            after_each(self.tally);
        }
        for key in large {
            self.copy_large(&key, after_each)?;
            after_each(self.tally);
        }
        Ok(())
    }

    /// The keys that the target has not as they are at the source, by count and expiry.
    fn not_there(&mut self, keys: Vec<SourceKey>) -> Result<Vec<SourceKey>, ImportError> {
        for key in &keys {
            self.target.queue(&[key.kind.counting(), &key.name]);
            self.target.queue(&[b"PEXPIRETIME", key.name.as_slice()]);
        }
        self.target.send()?;
        let mut missing = Vec::new();
        for key in keys {
            // An error where the target has another type.
            let count = self.target.read()?.integer();
            let expiry = self.target.read()?.integer();
            let expiry_difference = match (expiry, key.expire_at_ms) {
                (Some(-1), None) => 0,
                (Some(there), Some(here)) if there >= 0 => there.abs_diff(here),
                _ => u64::MAX,
            };
            if count == Some(key.count) && expiry_difference <= self.source.expiry_tolerance_ms() {
                self.tally.present_keys += 1;
            } else {
                missing.push(key);
            }
        }
        Ok(missing)
    }

    /// Copies keys with a command each; those for which that does not do are put to `large`.
    fn copy_small(
        &mut self,
        keys: &[SourceKey],
        large: &mut Vec<SourceKey>,
    ) -> Result<(), ImportError> {
        for key in keys {
            self.source.queue_stretch(key, 0, -1);
        }
        self.source.client().send()?;
        let mut sent = Vec::new();
        for key in keys {
            let words = self.source.read_stretch()?.unwrap_or_default();
            if words.is_empty() {
                self.tally.vanished_keys += 1;
                continue;
            }
            let count = elements_in(key.kind, words.len());
            let Some(payload) = payload(key.kind, words) else {
                large.push(key.clone());
                continue;
            };
            let ttl = key.expire_at_ms.unwrap_or(0).to_string();
            let words: [&[u8]; 6] = [
                b"RESTORE",
                &key.name,
                ttl.as_bytes(),
                &payload,
                b"REPLACE",
                b"ABSTTL",
            ];
            self.target.queue(&words);
            sent.push((key, count));
            if self.target.queued_bytes() > IMPORT_CHUNK_BYTES {
                self.finish_small(&mut sent, large)?;
            }
        }
        self.finish_small(&mut sent, large)
    }

    fn finish_small(
        &mut self,
        sent: &mut Vec<(&SourceKey, u64)>,
        large: &mut Vec<SourceKey>,
    ) -> Result<(), ImportError> {
        self.target.send()?;
        for (key, count) in sent.drain(..) {
            if self.target.read()?.is_ok() {
                self.tally.copied_keys += 1;
                self.tally.copied_elements += count;
            } else {
                // The careful way tries again, and tells what is wrong.
                large.push(key.clone());
            }
        }
        Ok(())
    }

    fn copy_large(
        &mut self,
        key: &SourceKey,
        after_each: &mut dyn FnMut(&Tally),
    ) -> Result<(), ImportError> {
        let mut attempt = 1;
        loop {
            let elements_before = self.tally.copied_elements;
            let refusal = match self.try_copy_large(key, after_each)? {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            self.tally.copied_elements = elements_before;
            if attempt >= IMPORT_ATTEMPTS_MAX {
                self.tally.failed(&key.name, &refusal);
                return Ok(());
            }
            attempt += 1;
            std::thread::sleep(Duration::from_millis(IMPORT_RETRY_PAUSE_MS));
        }
    }

    fn try_copy_large(
        &mut self,
        key: &SourceKey,
        after_each: &mut dyn FnMut(&Tally),
    ) -> Result<Result<(), Refusal>, ImportError> {
        let name = [self.temporary_prefix.as_bytes(), &key.name].concat();
        self.target.call(&[b"DEL", name.as_slice()])?;
        let mut start = 0_i64;
        let mut size = IMPORT_CHUNK_ELEMENTS_MIN;
        loop {
            self.source.queue_stretch(key, start, start + size - 1);
            self.source.client().send()?;
            let words = self.source.read_stretch()?.unwrap_or_default();
            if words.is_empty() {
                break;
            }
            let bytes: usize = words.iter().map(Vec::len).sum();
            let count = elements_in(key.kind, words.len());
            if let Err(refusal) = self.push(key.kind, &name, words)? {
                return Ok(Err(refusal));
            }
            self.tally.copied_elements += count;
            after_each(self.tally);
            start = start.saturating_add_unsigned(count);
            size = next_size(size, count, bytes);
        }
        if start == 0 {
            self.tally.vanished_keys += 1;
            return Ok(Ok(()));
        }
        self.finish_large(key, &name)
    }

    /// Adds to the temporary key, in commands of bounded size.
    fn push(
        &mut self,
        kind: Kind,
        name: &[u8],
        words: Vec<Vec<u8>>,
    ) -> Result<Result<(), Refusal>, ImportError> {
        let lifetime = IMPORT_TEMPORARY_LIFETIME_MS.to_string();
        let words_of_one = match kind {
            Kind::List => 1,
            Kind::SortedSet => 2,
        };
        let mut words = words.as_slice();
        while !words.is_empty() {
            let mut bytes = 0;
            let taken = words
                .chunks(words_of_one)
                .take_while(|one| {
                    let fits = bytes < IMPORT_CHUNK_BYTES;
                    bytes += one.iter().map(Vec::len).sum::<usize>();
                    fits
                })
                .count();
            let (now, later) = words
                .split_at_checked(taken * words_of_one)
                .unwrap_or((words, &[]));
            words = later;
            let mut command: Vec<&[u8]> = Vec::with_capacity(now.len() + 2);
            match kind {
                Kind::List => {
                    command.extend([b"RPUSH", name]);
                    command.extend(now.iter().map(Vec::as_slice));
                }
                Kind::SortedSet => {
                    command.extend([b"ZADD", name]);
                    for pair in now.chunks(2) {
                        command.extend(pair.iter().rev().map(Vec::as_slice));
                    }
                }
            }
            self.target.queue(&command);
            // What a killed import leaves behind goes away by itself.
            self.target.queue(&[b"PEXPIRE", name, lifetime.as_bytes()]);
            self.target.send()?;
            let pushed = self.target.read()?;
            self.target.read()?;
            if pushed.integer().is_none() {
                return Ok(Err(pushed.error().unwrap_or("no number").to_owned()));
            }
        }
        Ok(Ok(()))
    }

    /// Gives the temporary key its expiry and its name.
    fn finish_large(
        &mut self,
        key: &SourceKey,
        name: &[u8],
    ) -> Result<Result<(), Refusal>, ImportError> {
        match key.expire_at_ms {
            Some(at_ms) => {
                let at_ms = at_ms.to_string();
                self.target.queue(&[b"PEXPIREAT", name, at_ms.as_bytes()]);
            }
            None => self.target.queue(&[b"PERSIST", name]),
        }
        self.target.queue(&[b"RENAME", name, key.name.as_slice()]);
        self.target.send()?;
        let expired = self.target.read()?;
        let renamed = self.target.read()?;
        if renamed.is_ok() {
            self.tally.copied_keys += 1;
            return Ok(Ok(()));
        }
        let line = expired.error().or(renamed.error()).unwrap_or("no OK");
        if key.expire_at_ms.is_some() && line == "ERR no such key" {
            // Its time was over before it had its name.
            self.target.call(&[b"DEL", key.name.as_slice()])?;
            self.tally.vanished_keys += 1;
            return Ok(Ok(()));
        }
        Ok(Err(line.to_owned()))
    }
}

/// Elements in so many words.
fn elements_in(kind: Kind, words: usize) -> u64 {
    match kind {
        Kind::List => words as u64,
        Kind::SortedSet => words as u64 / 2,
    }
}

/// How many elements to ask for after `count` that had so many bytes.
fn next_size(size: i64, count: u64, bytes: usize) -> i64 {
    let fitting = (IMPORT_CHUNK_BYTES as u64)
        .saturating_mul(count)
        .checked_div(bytes as u64)
        .unwrap_or(u64::MAX);
    i64::try_from(fitting)
        .unwrap_or(i64::MAX)
        .min(size.saturating_mul(4))
        .clamp(1, IMPORT_CHUNK_ELEMENTS_MAX)
}

/// A payload for RESTORE; `None` where it would be too large, or a score is no number.
fn payload(kind: Kind, words: Vec<Vec<u8>>) -> Option<Bytes> {
    let bytes: usize = words.iter().map(Vec::len).sum();
    if bytes > IMPORT_CHUNK_BYTES {
        return None;
    }
    if kind == Kind::List {
        let mut writer = ListWriter::new();
        for element in &words {
            writer.push(element);
        }
        return Some(writer.finish());
    }
    let mut words = words.into_iter();
    let mut members: Vec<(Bytes, f64)> = Vec::new();
    while let Some(member) = words.next() {
        let score = parse_double(&words.next()?)?;
        members.push((member.into(), score));
    }
    small_set(&members).or_else(|| {
        let mut writer = SetWriter::new(members.len() as u64);
        for (member, score) in members.iter().rev() {
            writer.push(member, *score);
        }
        Some(writer.finish())
    })
}
