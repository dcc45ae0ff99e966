//! The Redis that is read.

use std::collections::HashSet;

use super::error::ImportError;
use super::kinds::{Kind, Place, Reading};
use super::options::Options;
use super::pace::{Pace, SIZE_SAMPLES};
use crate::redis_client::{Address, Client, ClientError, Transaction};
use crate::wire::reply_reader::Value;

/// Keys that an import asks SCAN for at a time.
const SCAN_COUNT: usize = 1_000;

/// A key of the source that is copied.
#[derive(Debug, Clone)]
pub(super) struct SourceKey {
    pub(super) name: Vec<u8>,
    pub(super) kind: &'static Kind,
    /// Elements that it had when it was met.
    pub(super) count: i64,
    pub(super) expire_at_ms: Option<i64>,
}

/// What one call of SCAN brings.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) keys: Vec<SourceKey>,
    /// Names and types of keys that are not copied.
    pub(super) others: Vec<(Vec<u8>, String)>,
}

impl Page {
    /// Keys of whatever type.
    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.others.len()
    }
}

/// A small value with its expiry, both of one moment.
pub(super) struct Whole {
    /// Elements, or members and scores in turn, or a string; none where the key is gone or of
    /// another type.
    pub(super) words: Vec<Vec<u8>>,
    pub(super) expire_at_ms: Option<i64>,
}

/// What a large value is before it is read.
pub(super) struct Watched {
    /// Elements; 0 where the key is gone or of another type.
    pub(super) count: i64,
    /// Bytes that it takes at the source, nearly, where that tells.
    pub(super) bytes: Option<u64>,
    pub(super) expire_at_ms: Option<i64>,
}

pub(super) struct Source {
    client: Client,
    pattern: Option<String>,
    /// Redis before 7.0 has no PEXPIRETIME; its clock and PTTL tell the same, nearly.
    tells_expiry: bool,
    is_of_cluster: bool,
    /// An older Quoin does not say all of values of its own types.
    dumps_own_types: bool,
    /// Until it refuses MEMORY USAGE: some do not have it, some do not let everybody.
    tells_memory: bool,
    /// How small values are asked for.
    pub(super) pace: Pace,
}

impl Source {
    pub(super) fn connect(from: &Address, options: &Options) -> Result<Self, ImportError> {
        let mut client = Client::connect(from)?;
        let is_of_cluster = has_line(&client.info("cluster")?, "cluster_enabled:1");
        if is_of_cluster && has_line(&client.info("replication")?, "role:slave") {
            // It sends each question about a key to its master.
            return Err(ImportError::ClusterReplica {
                address: from.clone(),
            });
        }
        // Without a key: a node of a cluster answers only for keys of its own.
        let reply = client.call(&["PEXPIRETIME"])?;
        let mut error = reply.error_text().into_iter();
        let tells_expiry = error.any(|line| line.contains("wrong number of arguments"));
        let reply = client.call(&["COMMAND", "INFO", "TASK.SCANDUMP"])?;
        let rows = reply.items().unwrap_or_default();
        let dumps_own_types = rows.iter().any(|row| !row.is_null());
        Ok(Self {
            client,
            pattern: options.pattern.clone(),
            tells_expiry,
            is_of_cluster,
            dumps_own_types,
            tells_memory: true,
            pace: Pace::new(),
        })
    }

    /// Whether it is a node of a Redis Cluster, and so has a part of the keys only.
    pub(super) fn is_of_cluster(&self) -> bool {
        self.is_of_cluster
    }

    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// How far apart the same expiry may be read twice.
    pub(super) fn expiry_tolerance_ms(&self) -> u64 {
        if self.tells_expiry { 0 } else { 10_000 }
    }

    pub(super) fn select(&mut self, database: u32) -> Result<(), ClientError> {
        self.client.call_ok(&["SELECT", &database.to_string()])
    }

    /// The next page of keys, and the cursor behind it; `None` behind the last.
    pub(super) fn page(&mut self, cursor: &[u8]) -> Result<(Option<Vec<u8>>, Page), ClientError> {
        let count = SCAN_COUNT.to_string();
        let mut words: Vec<&[u8]> = vec![b"SCAN", cursor, b"COUNT", count.as_bytes()];
        if let Some(pattern) = &self.pattern {
            words.extend([b"MATCH", pattern.as_bytes()]);
        }
        let reply = self.client.call(&words)?;
        let (cursor, names) = match reply.items() {
            Some([cursor, names]) => (cursor.bytes(), names.clone().into_strings()),
            _ => (None, None),
        };
        let (Some(cursor), Some(names)) = (cursor.map(<[u8]>::to_vec), names) else {
            return Err(self.client.unexpected(&reply));
        };
        let page = self.look_at(names)?;
        Ok((Some(cursor).filter(|cursor| cursor != b"0"), page))
    }

    /// What the keys of these names are. One that comes twice, as SCAN may bring it, is taken
    /// once.
    fn look_at(&mut self, names: Vec<Vec<u8>>) -> Result<Page, ClientError> {
        let mut seen = HashSet::new();
        let names: Vec<Vec<u8>> = names
            .into_iter()
            .filter(|name| seen.insert(name.clone()))
            .collect();
        for name in &names {
            self.client.queue(&[b"TYPE", name.as_slice()]);
        }
        self.client.send()?;
        let mut page = Page::default();
        let mut kept = Vec::new();
        for name in names {
            let reply = self.client.read()?;
            let Some(word) = reply.status() else {
                return Err(self.client.unexpected(&reply));
            };
            match Kind::named(word) {
                Some(kind) if self.dumps_own_types || !kind.is_own() => kept.push((name, kind)),
                // Gone meanwhile.
                None if word == b"none" => {}
                _ => {
                    let kind = String::from_utf8_lossy(word).into_owned();
                    page.others.push((name, kind));
                }
            }
        }
        self.client.queue(&["TIME"]);
        for (name, kind) in &kept {
            self.client.queue(&[kind.counting, name]);
            self.client.queue(&[self.expiry_command(), name]);
        }
        self.client.send()?;
        let time = self.client.read()?;
        for (name, kind) in kept {
            let count = self.client.read()?;
            let expiry = self.client.read()?;
            // Another type by now, or nothing: as if it had not been met.
            let count = self.count_of(&count)?;
            let expire_at_ms = self.expire_at_ms(&time, &expiry)?;
            if count > 0 || kind.may_be_empty {
                page.keys.push(SourceKey {
                    name,
                    kind,
                    count,
                    expire_at_ms,
                });
            }
        }
        Ok(page)
    }

    fn expiry_command(&self) -> &'static [u8] {
        if self.tells_expiry {
            b"PEXPIRETIME"
        } else {
            b"PTTL"
        }
    }

    /// A number of elements; 0 where the key is of another type by now.
    fn count_of(&self, reply: &Value) -> Result<i64, ClientError> {
        match reply.integer() {
            Some(count) => Ok(count),
            None if is_wrong_type(reply) => Ok(0),
            None => Err(self.client.unexpected(reply)),
        }
    }

    /// When a key expires, of the replies to TIME and to the command that asks for its expiry.
    fn expire_at_ms(&self, time: &Value, expiry: &Value) -> Result<Option<i64>, ClientError> {
        let Some(expiry_ms) = expiry.integer() else {
            return Err(self.client.unexpected(expiry));
        };
        if expiry_ms < 0 {
            return Ok(None);
        }
        let base_ms = if self.tells_expiry {
            0
        } else {
            self.time_ms(time)?
        };
        Ok(Some(base_ms.saturating_add(expiry_ms)))
    }

    fn time_ms(&self, reply: &Value) -> Result<i64, ClientError> {
        let parts = reply.clone().into_strings().unwrap_or_default();
        let mut numbers = parts
            .iter()
            .filter_map(|part| std::str::from_utf8(part).ok()?.parse::<i64>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(seconds), Some(microseconds)) => Ok(seconds * 1_000 + microseconds / 1_000),
            _ => Err(self.client.unexpected(reply)),
        }
    }

    /// Asks for a small value and its expiry, and whether they are of one moment: a key that is
    /// deleted and made again between two questions would get the other's expiry. Not by a
    /// transaction that reads: a Redis whose memory is full refuses to queue anything in one.
    pub(super) fn queue_whole(&mut self, key: &SourceKey) {
        self.client.queue(&[b"WATCH", key.name.as_slice()]);
        self.client.queue(&["TIME"]);
        self.client
            .queue(&[self.expiry_command(), key.name.as_slice()]);
        match (&key.kind.reading_whole, &key.kind.reading) {
            (Some(command), _) | (None, Reading::Iteration(command)) => {
                self.client.queue(&[command, key.name.as_slice()]);
            }
            // It says how it is read whole.
            (None, Reading::Dump) => {}
            (None, Reading::Ranks(command, options)) => {
                // One element more than is small tells that it is not.
                let stop = key.kind.small_max.to_string();
                let words = by_rank(command, &key.name, [b"0", stop.as_bytes()], options);
                self.client.queue(&words);
            }
        }
        self.client.queue_transaction(&[]);
    }

    /// What was asked for so; `None` where it changed meanwhile.
    pub(super) fn read_whole(&mut self) -> Result<Option<Whole>, ClientError> {
        let watched = self.client.read()?;
        let (time, expiry, words) = (
            self.client.read()?,
            self.client.read()?,
            self.client.read()?,
        );
        if !watched.is_ok() {
            return Err(self.client.unexpected(&watched));
        }
        if !self.was_unchanged()? {
            return Ok(None);
        }
        Ok(Some(Whole {
            words: self.words_of(words)?,
            expire_at_ms: self.expire_at_ms(&time, &expiry)?,
        }))
    }

    /// Bytes that values take at the source, nearly, where that tells.
    pub(super) fn sizes(&mut self, keys: &[SourceKey]) -> Result<Vec<Option<u64>>, ClientError> {
        if !self.tells_memory {
            return Ok(vec![None; keys.len()]);
        }
        for key in keys {
            self.queue_size(key);
        }
        self.client.send()?;
        keys.iter().map(|_| self.read_size()).collect()
    }

    fn queue_size(&mut self, key: &SourceKey) {
        let samples = SIZE_SAMPLES.to_string();
        let words: [&[u8]; 5] = [
            b"MEMORY",
            b"USAGE",
            &key.name,
            b"SAMPLES",
            samples.as_bytes(),
        ];
        self.client.queue(&words);
    }

    fn read_size(&mut self) -> Result<Option<u64>, ClientError> {
        let reply = self.client.read()?;
        if reply.error().is_some() {
            self.tells_memory = false;
        }
        if reply.is_null() {
            // Gone meanwhile.
            return Ok(Some(0));
        }
        Ok(reply.integer().and_then(|bytes| u64::try_from(bytes).ok()))
    }

    /// Begins to read a large value: from here on it is known whether the key changes. To be
    /// ended with `is_unchanged` or `unwatch`.
    pub(super) fn watch(&mut self, key: &SourceKey) -> Result<Watched, ClientError> {
        let tells_memory = self.tells_memory;
        self.client.queue(&[b"WATCH", key.name.as_slice()]);
        self.client.queue(&["TIME"]);
        self.client
            .queue(&[self.expiry_command(), key.name.as_slice()]);
        self.client.queue(&[key.kind.counting, key.name.as_slice()]);
        if tells_memory {
            self.queue_size(key);
        }
        self.client.send()?;
        let watched = self.client.read()?;
        let time = self.client.read()?;
        let expiry = self.client.read()?;
        let count = self.client.read()?;
        let bytes = if tells_memory {
            self.read_size()?
        } else {
            None
        };
        if !watched.is_ok() {
            return Err(self.client.unexpected(&watched));
        }
        Ok(Watched {
            count: self.count_of(&count)?,
            bytes,
            expire_at_ms: self.expire_at_ms(&time, &expiry)?,
        })
    }

    /// Whether a watched key is as it was; no longer watches it.
    pub(super) fn is_unchanged(&mut self) -> Result<bool, ClientError> {
        self.client.queue_transaction(&[]);
        self.client.send()?;
        self.was_unchanged()
    }

    fn was_unchanged(&mut self) -> Result<bool, ClientError> {
        match self.client.read_transaction(0)? {
            Transaction::Done(_) => Ok(true),
            Transaction::Changed => Ok(false),
            Transaction::Refused(reply) => Err(self.client.unexpected(&reply)),
        }
    }

    /// No longer watches a key.
    pub(super) fn unwatch(&mut self) -> Result<(), ClientError> {
        self.client.call_ok(&["UNWATCH"])
    }

    /// A stretch of a value of about so many elements: these, and where the next begins, unless it
    /// was the last. Nothing where the key is of another type by now.
    pub(super) fn stretch(
        &mut self,
        key: &SourceKey,
        place: &Place,
        size: i64,
    ) -> Result<(Vec<Vec<u8>>, Option<Place>), ClientError> {
        match (&key.kind.reading, place) {
            (Reading::Ranks(command, options), Place::Rank(start)) => {
                let (first, last) = (start.to_string(), (start + size - 1).to_string());
                let ranks = [first.as_bytes(), last.as_bytes()];
                let reply = self
                    .client
                    .call(&by_rank(command, &key.name, ranks, options))?;
                let words = self.words_of(reply)?;
                let count = (key.kind.elements_in)(&words) as u64;
                let next = (count > 0).then(|| Place::Rank(start.saturating_add_unsigned(count)));
                Ok((if count > 0 { words } else { Vec::new() }, next))
            }
            (Reading::Iteration(command), Place::Cursor(cursor)) => {
                let size = size.to_string();
                let words: [&[u8]; 5] = [command, &key.name, cursor, b"COUNT", size.as_bytes()];
                let reply = self.client.call(&words)?;
                if is_wrong_type(&reply) {
                    return Ok((Vec::new(), None));
                }
                let (cursor, items) = match reply.items() {
                    Some([cursor, items]) => (cursor.bytes(), items.clone().into_strings()),
                    _ => (None, None),
                };
                let (Some(cursor), Some(words)) = (cursor, items) else {
                    return Err(self.client.unexpected(&reply));
                };
                let next = (cursor != b"0").then(|| Place::Cursor(cursor.to_vec()));
                Ok((words, next))
            }
            _ => Ok((Vec::new(), None)),
        }
    }

    fn words_of(&self, reply: Value) -> Result<Vec<Vec<u8>>, ClientError> {
        if is_wrong_type(&reply) {
            return Ok(Vec::new());
        }
        match (reply.items(), reply.bytes()) {
            (Some(_), _) => Ok(reply.into_strings().unwrap_or_default()),
            (None, Some(string)) => Ok(vec![string.to_vec()]),
            (None, None) if reply.is_null() => Ok(Vec::new()),
            (None, None) => Err(self.client.unexpected(&reply)),
        }
    }
}

fn has_line(info: &str, line: &str) -> bool {
    info.lines().any(|one| one == line)
}

fn is_wrong_type(reply: &Value) -> bool {
    let mut line = reply.error().into_iter();
    line.any(|line| line.starts_with(b"WRONGTYPE"))
}

/// The command for a stretch of a value by ranks.
fn by_rank<'a>(
    command: &'a [u8],
    name: &'a [u8],
    [start, stop]: [&'a [u8]; 2],
    options: &[&'a [u8]],
) -> Vec<&'a [u8]> {
    [&[command, name, start, stop], options].concat()
}
