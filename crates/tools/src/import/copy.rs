//! Copying keys, a page at a time.
//!
//! A small value becomes a payload of RESTORE, which replaces the key at once. A large value is
//! built under a temporary name and then renamed, so that no command is larger than a transaction.
//! Either way, the key is always either complete or unchanged, and copying it again gives the same
//! result. Either way, the copy is the value of one moment: a small value is read in a transaction.
//! A large value takes many commands, and the source says at the end whether it has changed.

use bytes::Bytes;

use super::elements;
use super::pace::{first_size, next_size, size_max};
use super::report::Counts;
use super::source::{Source, SourceKey, Watched, Whole};
use super::target::{ATTEMPTS_MAX, Attempt, NOT_WHOLE, RETRY_PAUSE, Target};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_client::ClientError;

/// Writes data from a source into a target.
pub(super) struct Copier<'a> {
    pub(super) source: &'a mut Source,
    pub(super) target: &'a mut Target,
    pub(super) resume: bool,
    pub(super) counts: &'a mut Counts,
}

/// Why a key was not copied that was busy at every attempt.
const CHANGED: &str = "it changed at the source each time while it was being read";

impl Copier<'_> {
    /// Copies keys. Calls `after_each` after each step.
    pub(super) fn copy(
        &mut self,
        keys: Vec<SourceKey>,
        after_each: &mut dyn FnMut(&Counts),
    ) -> Result<(), ClientError> {
        let keys = if self.resume {
            self.not_there(keys)?
        } else {
            keys
        };
        let (few, mut large): (Vec<SourceKey>, Vec<SourceKey>) = keys
            .into_iter()
            .partition(|key| key.count <= key.kind.small_max());
        let mut small = Vec::new();
        let sizes = self.source.sizes(&few)?;
        for (key, bytes) in few.into_iter().zip(sizes) {
            let is_large = bytes.is_some_and(|bytes| bytes > IMPORT_CHUNK_BYTES as u64);
            if is_large {
                large.push(key);
            } else {
                small.push((key, bytes));
            }
        }
        let mut rest = small.as_slice();
        while !rest.is_empty() {
            let sizes = rest.iter().map(|(_, bytes)| *bytes);
            let count = self.source.pace.values_at_once(sizes);
            let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            self.copy_small(now, &mut large)?;
            rest = later;
            after_each(self.counts);
        }
        for key in large {
            self.copy_large(&key, after_each)?;
            after_each(self.counts);
        }
        Ok(())
    }

    /// The keys that the target does not have with the same count and expiry.
    fn not_there(&mut self, keys: Vec<SourceKey>) -> Result<Vec<SourceKey>, ClientError> {
        for key in &keys {
            let target = &mut self.target.client;
            target.queue(&[key.kind.import.counting, &key.name]);
            target.queue(&[b"PEXPIRETIME", key.name.as_slice()]);
        }
        self.target.client.send()?;
        let mut missing = Vec::new();
        for key in keys {
            // An error if the target has another type.
            let count = self.target.client.read()?.integer();
            let expiry = self.target.client.read()?.integer();
            let expiry_difference = match (expiry, key.expire_at_ms) {
                (Some(-1), None) => 0,
                (Some(there), Some(here)) if there >= 0 => there.abs_diff(here),
                _ => u64::MAX,
            };
            if count == Some(key.count) && expiry_difference <= self.source.expiry_tolerance_ms() {
                self.counts.present_keys += 1;
            } else {
                missing.push(key);
            }
        }
        Ok(missing)
    }

    /// Copies keys with one command each. Keys for which that fails are added to `large`.
    fn copy_small(
        &mut self,
        keys: &[(SourceKey, Option<u64>)],
        large: &mut Vec<SourceKey>,
    ) -> Result<(), ClientError> {
        for (key, _) in keys {
            self.source.queue_whole(key);
        }
        self.source.client().send()?;
        let mut sent = Vec::new();
        let mut largest_bytes = 0;
        for (key, _) in keys {
            let Some(Whole {
                mut words,
                expire_at_ms,
            }) = self.source.read_whole(key)?
            else {
                // The slower way tries again.
                large.push(key.clone());
                continue;
            };
            if words.is_empty() {
                self.counts.vanished_keys += 1;
                continue;
            }
            let bytes: usize = words.iter().map(Vec::len).sum();
            largest_bytes = largest_bytes.max(bytes);
            let count = match key.is_dumped() {
                true => key.count.unsigned_abs(),
                false => (key.kind.import.elements_in)(&words) as u64,
            };
            let is_small = count <= key.kind.small_max().unsigned_abs();
            let payload = match is_small && bytes <= IMPORT_CHUNK_BYTES {
                true if !key.has_field_expiries => (key.kind.import.payload)(words),
                true if self.source.dumps_true_expiries() => words.pop().map(Bytes::from),
                _ => None,
            };
            let Some(payload) = payload else {
                large.push(key.clone());
                continue;
            };
            self.target.queue_restore(&key.name, expire_at_ms, &payload);
            sent.push((key, count));
            if self.target.client.queued_bytes() > IMPORT_CHUNK_BYTES {
                self.finish_small(&mut sent, large)?;
            }
        }
        self.source.pace.learn(largest_bytes);
        self.finish_small(&mut sent, large)
    }

    fn finish_small(
        &mut self,
        sent: &mut Vec<(&SourceKey, u64)>,
        large: &mut Vec<SourceKey>,
    ) -> Result<(), ClientError> {
        self.target.client.send()?;
        for (key, count) in sent.drain(..) {
            let reply = self.target.client.read()?;
            match Target::restored(&reply, count) {
                Attempt::Copied(count) => {
                    self.counts.copied_keys += 1;
                    self.counts.copied_elements += count;
                }
                Attempt::Kept => self.counts.kept(&key.name),
                // `copy_large` tries again, and reports the error.
                Attempt::Vanished | Attempt::Refused(_) => large.push(key.clone()),
            }
        }
        Ok(())
    }

    fn copy_large(
        &mut self,
        key: &SourceKey,
        after_each: &mut dyn FnMut(&Counts),
    ) -> Result<(), ClientError> {
        if !self.target.replaces && self.target.are_there(&[&key.name])?.contains(&true) {
            // Checked before it is read in vain.
            self.counts.kept(&key.name);
            return Ok(());
        }
        let temporary = self.target.temporary_name(&key.name);
        let elements_before = self.counts.copied_elements;
        let mut refusal = String::new();
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                std::thread::sleep(RETRY_PAUSE);
            }
            let tried = match key.is_dumped() {
                true => self.try_copy_dumped(key, &temporary, after_each)?,
                false => self.try_copy_large(key, &temporary, after_each)?,
            };
            match tried {
                Attempt::Copied(count) => {
                    self.counts.copied_keys += 1;
                    self.counts.copied_elements = elements_before + count;
                    return Ok(());
                }
                Attempt::Vanished => {
                    self.counts.copied_elements = elements_before;
                    self.counts.vanished_keys += 1;
                    return Ok(());
                }
                Attempt::Kept => {
                    self.counts.copied_elements = elements_before;
                    self.counts.kept(&key.name);
                    return Ok(());
                }
                Attempt::Refused(why) => refusal = why,
            }
            // This attempt must leave nothing under the name, so that the next one starts clean.
            self.counts.copied_elements = elements_before;
            self.target.client.call(&[b"DEL", temporary.as_slice()])?;
        }
        self.counts.failed(&key.name, &refusal);
        Ok(())
    }

    /// Copies a key that is read as a whole, and written in parts if it is large.
    fn try_copy_dumped(
        &mut self,
        key: &SourceKey,
        temporary: &[u8],
        after_each: &mut dyn FnMut(&Counts),
    ) -> Result<Attempt, ClientError> {
        self.source.queue_whole(key);
        self.source.client().send()?;
        let Some(Whole {
            mut words,
            expire_at_ms,
        }) = self.source.read_whole(key)?
        else {
            return Ok(Attempt::Refused(CHANGED.to_owned()));
        };
        let Some(payload) = words.pop().map(Bytes::from) else {
            return Ok(Attempt::Vanished);
        };
        if key.has_field_expiries {
            return self.try_copy_fields(key, temporary, expire_at_ms, &payload);
        }
        if elements::count(&payload).is_err() {
            // Of a later version than is known, or refused.
            return self.try_copy_by_commands(key, temporary, after_each);
        }
        if payload.len() <= IMPORT_CHUNK_BYTES {
            self.target.queue_restore(&key.name, expire_at_ms, &payload);
            self.target.client.send()?;
            let reply = self.target.client.read()?;
            return Ok(Target::restored(&reply, key.count.unsigned_abs()));
        }
        let counts = &mut *self.counts;
        let put = self
            .target
            .put_dumped_stream(&payload, temporary, &mut |entries| {
                counts.copied_elements += entries;
                after_each(counts);
            })?;
        self.target
            .finish_large(&key.name, temporary, expire_at_ms, put)
    }

    /// Copies a hash with fields that expire.
    fn try_copy_fields(
        &mut self,
        key: &SourceKey,
        temporary: &[u8],
        expire_at_ms: Option<i64>,
        payload: &Bytes,
    ) -> Result<Attempt, ClientError> {
        let count = match elements::count(payload) {
            Ok((_, count)) => count,
            Err(error) => return Ok(Attempt::Refused(error.to_string())),
        };
        let moved = self.source.field_expiry();
        let put = self
            .target
            .put_payload(key.kind, temporary, payload, moved)?;
        if put == Ok(false) {
            // All its fields have expired, so it is gone, as if it had expired itself.
            if self.target.replaces {
                self.target.client.call(&[b"DEL", key.name.as_slice()])?;
            }
            return Ok(Attempt::Vanished);
        }
        self.counts.copied_elements += count;
        self.target
            .finish_large(&key.name, temporary, expire_at_ms, put.map(|_| count))
    }

    /// Copies a stream whose payload is not understood: its state with XINFO and XPENDING, its
    /// entries with XRANGE.
    fn try_copy_by_commands(
        &mut self,
        key: &SourceKey,
        temporary: &[u8],
        after_each: &mut dyn FnMut(&Counts),
    ) -> Result<Attempt, ClientError> {
        let Watched {
            count: count_watched,
            bytes,
            expire_at_ms,
        } = self.source.watch(key)?;
        let Some(shown) = self.source.shown_stream(&key.name)? else {
            self.source.unwatch()?;
            return Ok(Attempt::Vanished);
        };
        let (source, counts) = (&mut *self.source, &mut *self.counts);
        let mut size = first_size(count_watched, bytes, key.kind.chunk_max());
        let mut after = None;
        let put = self.target.put_stream(
            &shown.stream,
            &shown.without_entries(),
            temporary,
            &mut || {
                let entries = source.entries_after(&key.name, after, size)?;
                after = entries.last().map(|(id, _)| *id).or(after);
                let fields = entries.iter().flat_map(|(_, fields)| fields);
                let bytes: usize = fields.map(Bytes::len).sum();
                size = next_size(size, entries.len() as u64, bytes).min(key.kind.chunk_max());
                Ok(Ok(entries))
            },
            &mut |entries| {
                counts.copied_elements += entries;
                after_each(counts);
            },
        )?;
        // A group reading entries does not end a WATCH.
        let shows_the_same = self.source.shown_stream(&key.name)?;
        let is_unchanged = shows_the_same.is_some_and(|now| now.is_like(&shown));
        if !self.source.is_unchanged()? || !is_unchanged {
            return Ok(Attempt::Refused(CHANGED.to_owned()));
        }
        let put = put.and_then(|count| match i64::try_from(count) == Ok(count_watched) {
            true => Ok(count),
            false => Err(CHANGED.to_owned()),
        });
        self.target
            .finish_large(&key.name, temporary, expire_at_ms, put)
    }

    fn try_copy_large(
        &mut self,
        key: &SourceKey,
        temporary: &[u8],
        after_each: &mut dyn FnMut(&Counts),
    ) -> Result<Attempt, ClientError> {
        let Watched {
            count: count_watched,
            bytes,
            expire_at_ms,
        } = self.source.watch(key)?;
        let (mut copied, mut has_pushed) = (0_i64, false);
        let mut place = Some(key.kind.first_place());
        let chunk_max = key.kind.chunk_max();
        let mut size = first_size(count_watched, bytes, chunk_max);
        let size_max = size_max(count_watched, size, bytes, chunk_max);
        while let Some(at) = place {
            let (words, next) = self.source.stretch(key, &at, size)?;
            place = next;
            if words.is_empty() {
                continue;
            }
            let bytes: usize = words.iter().map(Vec::len).sum();
            let count = (key.kind.import.elements_in)(&words) as u64;
            if let Err(refusal) = self.target.push(key.kind, temporary, words)? {
                self.source.unwatch()?;
                return Ok(Attempt::Refused(refusal));
            }
            has_pushed = true;
            self.counts.copied_elements += count;
            after_each(self.counts);
            copied = copied.saturating_add_unsigned(count);
            size = next_size(size, count, bytes).min(size_max);
        }
        // Stretches are counted from the head, so a pop between two of them hides an element.
        // (Before 6.0.9 an expired key did not end a WATCH.)
        let is_other = key.kind.reads_each_once() && copied != 0 && copied != count_watched;
        if !self.source.is_unchanged()? || is_other {
            return Ok(Attempt::Refused(CHANGED.to_owned()));
        }
        if !has_pushed {
            return Ok(Attempt::Vanished);
        }
        // An import that was paused for longer than the temporary key lives has only the rest.
        let question = [key.kind.import.counting, temporary];
        if self.target.client.call(&question)?.integer() != Some(count_watched) {
            return Ok(Attempt::Refused(NOT_WHOLE.to_owned()));
        }
        let count = count_watched.unsigned_abs();
        self.target
            .finish_large(&key.name, temporary, expire_at_ms, Ok(count))
    }
}
