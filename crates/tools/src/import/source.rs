//! The Redis that is read.

use std::collections::HashSet;

use super::kinds::{Kind, Place};
use super::options::Options;
use super::pace::{Pace, SIZE_SAMPLES};
use super::report::{ImportError, of_type};
use quoin_client::{Address, Client, ClientError, Transaction};
use quoin_data::keyspace::import::Reading;
use quoin_resp::wire::reply_reader::Value;

/// Keys that an import asks SCAN for at a time.
const SCAN_COUNT: usize = 1_000;

/// Number of fields of a hash whose expiries are requested at a time.
const FIELDS_AT_ONCE: usize = 100;

/// The type that may have fields that expire.
const HASH: &str = "hash";

/// How INFO calls the number of hashes with fields that expire: in Redis, in Valkey.
const COUNTS_OF_FIELD_EXPIRIES: [&str; 2] = ["subexpiry", "keys_with_volatile_items"];

/// A key of the source that is copied.
#[derive(Debug, Clone)]
pub(super) struct SourceKey {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// Number of elements that it had when it was found.
    pub(super) count: i64,
    pub(super) expire_at_ms: Option<i64>,
    /// Whether it is a hash with fields that expire, which are read as a payload.
    pub(super) has_field_expiries: bool,
}

impl SourceKey {
    /// Whether it is only read as a whole.
    pub(super) fn is_dumped(&self) -> bool {
        self.kind.is_dumped() || self.has_field_expiries
    }
}

/// The result of one SCAN.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) keys: Vec<SourceKey>,
    /// Names of keys that are not copied, and why.
    pub(super) others: Vec<(Vec<u8>, String)>,
    /// Expired keys, which a server that replays a file keeps.
    pub(super) expired: u64,
}

impl Page {
    /// Number of keys of all types.
    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.others.len()
    }
}

/// A small value with its expiry, both of one moment.
pub(super) struct Whole {
    /// Elements, or pairs of member and score, or a string. Empty if the key is gone or of another type.
    pub(super) words: Vec<Vec<u8>>,
    pub(super) expire_at_ms: Option<i64>,
}

/// The state of a large value before it is read.
pub(super) struct Watched {
    /// Number of elements; 0 if the key is gone or of another type.
    pub(super) count: i64,
    /// Approximate size at the source in bytes, if it reports that.
    pub(super) bytes: Option<u64>,
    pub(super) expire_at_ms: Option<i64>,
}

pub(super) struct Source {
    client: Client,
    pattern: Option<String>,
    /// Redis before 7.0 has no PEXPIRETIME. Its clock and PTTL give nearly the same time.
    tells_expiry: bool,
    is_of_cluster: bool,
    /// An older Quoin does not dump its own types completely.
    dumps_own_types: bool,
    /// Until it refuses MEMORY USAGE: some do not have it, some do not let everybody.
    tells_memory: bool,
    /// Whether it has expiries of fields (Redis 7.4, Valkey 9), and the selected database may have some.
    knows_field_expiries: bool,
    may_have_field_expiries: bool,
    /// Whether it refuses HSCAN without values.
    scans_values: bool,
    /// How far expiries are shifted into the future, because a server that replays a file must not
    /// remove expired keys. Expiries set by a script are not shifted.
    expiry_shift_ms: i64,
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
        // Without a key: a node of a cluster answers only for its own keys.
        let reply = client.call(&["PEXPIRETIME"])?;
        let tells_expiry = has_command(&reply);
        let reply = client.call(&["HPEXPIRETIME"])?;
        let knows_field_expiries = has_command(&reply);
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
            knows_field_expiries,
            may_have_field_expiries: knows_field_expiries,
            scans_values: false,
            expiry_shift_ms: 0,
            pace: Pace::new(),
        })
    }

    /// A server that has replayed a file, in which all expiries are shifted by `expiry_shift_ms`.
    pub(super) fn of_replay(
        address: &Address,
        options: &Options,
        expiry_shift_ms: i64,
    ) -> Result<Self, ImportError> {
        Ok(Self {
            expiry_shift_ms,
            ..Self::connect(address, options)?
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
        self.client.select_existing(database)?;
        if self.knows_field_expiries {
            let text = self.client.info("keyspace")?;
            self.may_have_field_expiries = may_have_field_expiries(&text, database);
        }
        Ok(())
    }

    /// The next page of keys, and the cursor after it; `None` after the last page.
    pub(super) fn page(&mut self, cursor: &[u8]) -> Result<(Option<Vec<u8>>, Page), ClientError> {
        let pattern = self.pattern.as_deref();
        let (next, names) = self.client.scan(cursor, SCAN_COUNT, pattern)?;
        Ok((next, self.describe(names)?))
    }

    /// Type, count and expiry of these keys. SCAN may return a name twice; it is used once.
    fn describe(&mut self, names: Vec<Vec<u8>>) -> Result<Page, ClientError> {
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
                Some(kind) if self.dumps_own_types || !kind.import.is_own => {
                    kept.push((name, kind))
                }
                // It is gone by now.
                None if word == b"none" => {}
                _ => {
                    let kind = String::from_utf8_lossy(word);
                    page.others.push((name, of_type(&kind)));
                }
            }
        }
        self.client.queue(&["TIME"]);
        for (name, kind) in &kept {
            self.client.queue(&[kind.import.counting, name]);
            self.client.queue(&[self.expiry_command(), name]);
        }
        self.client.send()?;
        let time = self.client.read()?;
        for (name, kind) in kept {
            let count = self.client.read()?;
            let expiry = self.client.read()?;
            // If it has another type now, or is gone, it is treated as absent.
            let count = self.count_of(&count)?;
            let expire_at_ms = self.expire_at_ms(&time, &expiry)?;
            let now_ms = self.time_ms(&time)?;
            if self.expiry_shift_ms > 0 && expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                page.expired += 1;
                continue;
            }
            if count > 0 || kind.may_be_empty {
                page.keys.push(SourceKey {
                    name,
                    kind,
                    count,
                    expire_at_ms,
                    has_field_expiries: false,
                });
            }
        }
        if self.may_have_field_expiries {
            let hashes = page.keys.iter().filter(|key| key.kind.name == HASH);
            let hashes = hashes.map(|key| key.name.clone()).collect();
            let found = self.with_field_expiries(hashes)?;
            for key in &mut page.keys {
                key.has_field_expiries = found.contains(&key.name);
            }
        }
        Ok(page)
    }

    /// Which of these hashes have fields that expire.
    fn with_field_expiries(
        &mut self,
        hashes: Vec<Vec<u8>>,
    ) -> Result<HashSet<Vec<u8>>, ClientError> {
        let count = FIELDS_AT_ONCE.to_string();
        let mut found = HashSet::new();
        let mut places: Vec<(Vec<u8>, Vec<u8>)> = { hashes.iter() }
            .map(|name| (name.clone(), b"0".to_vec()))
            .collect();
        while !places.is_empty() {
            for (name, cursor) in &places {
                let words: [&[u8]; 6] = [
                    b"HSCAN",
                    name,
                    cursor,
                    b"COUNT",
                    count.as_bytes(),
                    b"NOVALUES",
                ];
                let taken = if self.scans_values { 5 } else { 6 };
                self.client.queue(words.get(..taken).unwrap_or(&words));
            }
            self.client.send()?;
            let mut asked = Vec::new();
            let mut is_refused = false;
            for (name, _) in std::mem::take(&mut places) {
                let reply = self.client.read()?;
                if is_wrong_type(&reply) {
                    continue;
                }
                if !self.scans_values && reply.error().is_some() {
                    is_refused = true;
                    continue;
                }
                let (next, fields) = match reply.items() {
                    Some([cursor, fields]) => (cursor.bytes(), fields.clone().into_strings()),
                    _ => (None, None),
                };
                let fields = fields.map(|fields| match self.scans_values {
                    true => fields.into_iter().step_by(2).collect(),
                    false => fields,
                });
                let (Some(next), Some(fields)) = (next, fields) else {
                    return Err(self.client.unexpected(&reply));
                };
                asked.push((name, next.to_vec(), fields));
            }
            if is_refused {
                self.scans_values = true;
                return self.with_field_expiries(hashes);
            }
            let has_fields = |fields: &Vec<Vec<u8>>| !fields.is_empty();
            for (name, _, fields) in asked.iter().filter(|(.., fields)| has_fields(fields)) {
                let count = fields.len().to_string();
                let question: [&[u8]; 4] = [b"HPEXPIRETIME", name, b"FIELDS", count.as_bytes()];
                let fields = fields.iter().map(Vec::as_slice);
                self.client
                    .queue(&question.into_iter().chain(fields).collect::<Vec<_>>());
            }
            self.client.send()?;
            for (name, next, fields) in asked {
                let mut expires = false;
                if has_fields(&fields) {
                    let reply = self.client.read()?;
                    let times = reply.items().unwrap_or_default().iter();
                    // −2 for a field that has just gone, −1 for one without an expiry.
                    expires = times.filter_map(Value::integer).any(|time| time != -1);
                    if reply.error().is_some() && !is_wrong_type(&reply) {
                        return Err(self.client.unexpected(&reply));
                    }
                }
                if expires {
                    found.insert(name);
                } else if next != b"0" {
                    places.push((name, next));
                }
            }
        }
        Ok(found)
    }

    fn expiry_command(&self) -> &'static [u8] {
        if self.tells_expiry {
            b"PEXPIRETIME"
        } else {
            b"PTTL"
        }
    }

    /// The expiry of a field without the shift of the replay.
    pub(super) fn field_expiry(&self) -> impl Fn(i64) -> i64 + use<> {
        let shift_ms = self.expiry_shift_ms;
        move |at_ms| unshifted(at_ms, shift_ms)
    }

    /// Whether expiries in payloads are those of the keys.
    pub(super) fn dumps_true_expiries(&self) -> bool {
        self.expiry_shift_ms == 0
    }

    /// A number of elements; 0 if the key is of another type now.
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
        let at_ms = base_ms.saturating_add(expiry_ms);
        Ok(Some(unshifted(at_ms, self.expiry_shift_ms)))
    }

    pub(super) fn time_ms(&self, reply: &Value) -> Result<i64, ClientError> {
        let parts = reply.clone().into_strings().unwrap_or_default();
        let mut numbers = parts
            .iter()
            .filter_map(|part| std::str::from_utf8(part).ok()?.parse::<i64>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(seconds), Some(microseconds)) => Ok(seconds * 1_000 + microseconds / 1_000),
            _ => Err(self.client.unexpected(reply)),
        }
    }

    /// Requests a small value and its expiry, and whether both are of one moment: if a key is
    /// deleted and created again in between, it would get the other's expiry. Does not use a
    /// transaction, because a Redis whose memory is full refuses to queue commands.
    pub(super) fn queue_whole(&mut self, key: &SourceKey) {
        self.client.queue(&[b"WATCH", key.name.as_slice()]);
        self.client.queue(&["TIME"]);
        self.client
            .queue(&[self.expiry_command(), key.name.as_slice()]);
        match (&key.kind.import.reading_whole, &key.kind.import.reading) {
            _ if key.has_field_expiries => self.client.queue(&[b"DUMP", key.name.as_slice()]),
            (Some(command), _) | (None, Reading::Iteration(command)) => {
                self.client.queue(&[command, key.name.as_slice()]);
            }
            // It says how it is read whole.
            (None, Reading::Dump) => {}
            (None, Reading::Ranks(command, options)) => {
                // One element more than a small value may have shows that it is not small.
                let stop = key.kind.small_max().to_string();
                let words = by_rank(command, &key.name, [b"0", stop.as_bytes()], options);
                self.client.queue(&words);
            }
        }
        self.client.queue_transaction(&[]);
    }

    /// The value that `queue_whole` requested. `None` if it changed meanwhile. A payload that the
    /// source refuses is returned as an empty one, which no reader accepts.
    pub(super) fn read_whole(&mut self, key: &SourceKey) -> Result<Option<Whole>, ClientError> {
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
        let is_refused = key.is_dumped() && words.error().is_some();
        Ok(Some(Whole {
            words: match is_refused {
                true => vec![Vec::new()],
                false => self.words_of(words)?,
            },
            expire_at_ms: self.expire_at_ms(&time, &expiry)?,
        }))
    }

    /// Approximate sizes of values at the source in bytes, if it reports that.
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
            // It is gone by now.
            return Ok(Some(0));
        }
        Ok(reply.integer().and_then(|bytes| u64::try_from(bytes).ok()))
    }

    /// Begins to read a large value. From here on, changes of the key are detected. Must be ended
    /// with `is_unchanged` or `unwatch`.
    pub(super) fn watch(&mut self, key: &SourceKey) -> Result<Watched, ClientError> {
        let tells_memory = self.tells_memory;
        self.client.queue(&[b"WATCH", key.name.as_slice()]);
        self.client.queue(&["TIME"]);
        self.client
            .queue(&[self.expiry_command(), key.name.as_slice()]);
        self.client
            .queue(&[key.kind.import.counting, key.name.as_slice()]);
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

    /// Whether a watched key is unchanged. Ends the watch.
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

    /// About `size` elements of a value from `place` on, and the place after them, or `None` after
    /// the last ones. Empty if the key now has another type.
    pub(super) fn stretch(
        &mut self,
        key: &SourceKey,
        place: &Place,
        size: i64,
    ) -> Result<(Vec<Vec<u8>>, Option<Place>), ClientError> {
        match (&key.kind.import.reading, place) {
            (Reading::Ranks(command, options), Place::Rank(start)) => {
                let (first, last) = (start.to_string(), (start + size - 1).to_string());
                let ranks = [first.as_bytes(), last.as_bytes()];
                let reply = self
                    .client
                    .call(&by_rank(command, &key.name, ranks, options))?;
                let words = self.words_of(reply)?;
                let count = (key.kind.import.elements_in)(&words) as u64;
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

/// A value in a list of names and values.
pub(super) fn field<'v>(pairs: &'v Value, name: &str) -> Option<&'v Value> {
    let mut pairs = pairs.items()?.chunks(2);
    pairs.find_map(|pair| match pair {
        [key, value] if key.bytes() == Some(name.as_bytes()) => Some(value),
        _ => None,
    })
}

/// Whether a server knows the command that it was given without arguments.
fn has_command(reply: &Value) -> bool {
    let mut error = reply.error_text().into_iter();
    error.any(|line| line.contains("wrong number of arguments"))
}

/// Whether a database may have hashes with fields that expire. Servers that support them count
/// them.
fn may_have_field_expiries(keyspace: &str, database: u32) -> bool {
    let begin = format!("db{database}:");
    let line = keyspace.lines().find_map(|line| line.strip_prefix(&begin));
    let mut counts = line.unwrap_or_default().split(',').filter_map(|one| {
        let (name, count) = one.trim_end().split_once('=')?;
        COUNTS_OF_FIELD_EXPIRIES.contains(&name).then_some(count)
    });
    line.is_some() && counts.next() != Some("0")
}

/// The expiry that a key has without the shift of the replay. A time before the shift was not shifted: a
/// script in the file has set it.
fn unshifted(at_ms: i64, shift_ms: i64) -> i64 {
    match at_ms >= shift_ms {
        true => at_ms.saturating_sub(shift_ms),
        false => at_ms,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::aof::EXPIRY_SHIFT_MS;

    #[test]
    fn an_expiry_that_the_replay_has_not_shifted_stays() {
        for at_ms in [0, 1, 4_000_000_000_000] {
            assert_eq!(unshifted(at_ms, 0), at_ms);
            assert_eq!(unshifted(at_ms, EXPIRY_SHIFT_MS), at_ms);
            assert_eq!(unshifted(at_ms + EXPIRY_SHIFT_MS, EXPIRY_SHIFT_MS), at_ms);
        }
    }

    #[test]
    fn a_server_that_counts_no_fields_that_expire_is_not_asked_for_them() {
        let redis = "# Keyspace\r\ndb0:keys=2,expires=0,avg_ttl=0,subexpiry=1\r\n\
                     db1:keys=2,expires=0,avg_ttl=0,subexpiry=0\r\n";
        assert!(may_have_field_expiries(redis, 0));
        assert!(!may_have_field_expiries(redis, 1));
        assert!(!may_have_field_expiries(redis, 2));
        let valkey = "db0:keys=2,expires=0,avg_ttl=0,keys_with_volatile_items=0\r\n";
        assert!(!may_have_field_expiries(valkey, 0));
        // A server that does not count them may have some.
        assert!(may_have_field_expiries("db0:keys=2,expires=0,avg_ttl=0", 0));
    }
}
