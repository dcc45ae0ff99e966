//! The server that is written to.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;

use super::elements::{self, Elements};
use super::kinds::Kind;
use super::options::Options;
use super::report::ImportError;
use quoin_base::limits::{IMPORT_CHUNK_BYTES, TRANSACTION_QUEUE_BYTES_MAX};
use quoin_client::{Client, ClientError, Transaction};
use quoin_resp::wire::reply_reader::Value;

/// Expiries of fields that are sent together.
const FIELDS_AT_ONCE: usize = 1_000;

/// Number of attempts to copy one key.
pub(super) const ATTEMPTS_MAX: u32 = 5;

/// Pause between two attempts.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Lifetime of a temporary key of an import after its last addition.
pub(super) const TEMPORARY_LIFETIME_MS: u64 = 15 * 60 * 1_000;

/// Reason for a failed copy whose temporary key was incomplete at every attempt.
pub(super) const NOT_WHOLE: &str = "the target has lost a part of its temporary key";

/// The outcome of copying one key.
pub(super) enum Attempt {
    /// It is at the target, with this number of elements.
    Copied(u64),
    /// It was deleted or has expired.
    Vanished,
    /// The target has a key with that name, which stays.
    Kept,
    /// Why it was not copied; others may be.
    Refused(String),
}

/// The server that is written to, and how.
pub(super) struct Target {
    pub(super) client: Client,
    /// The prefix of temporary names, unique to this run.
    temporary_prefix: String,
    /// Whether existing keys are replaced.
    pub(super) replaces: bool,
}

impl Target {
    /// Connects to it, and refuses a server that is not Quoin, unless any server is allowed.
    pub(super) fn connect(
        options: &Options,
        temporary_prefix: String,
    ) -> Result<Self, ImportError> {
        let mut client = Client::connect(&options.to)?;
        if !options.any_target && !client.info_fields(&["server"])?.has("quoin_version") {
            return Err(ImportError::NoQuoin(options.to.clone()));
        }
        Ok(Self {
            client,
            temporary_prefix,
            replaces: options.replaces,
        })
    }

    /// Selects a database. False if the target does not have it.
    pub(super) fn select(&mut self, database: u32) -> Result<bool, ClientError> {
        self.client.select(database)
    }

    /// The name under which a large value is built.
    pub(super) fn temporary_name(&self, name: &[u8]) -> Vec<u8> {
        [self.temporary_prefix.as_bytes(), name].concat()
    }

    /// Whether keys with these names exist.
    pub(super) fn are_there(&mut self, names: &[&[u8]]) -> Result<Vec<bool>, ClientError> {
        for name in names {
            self.client.queue(&[b"EXISTS", *name]);
        }
        self.client.send()?;
        let replies = names.iter().map(|_| self.client.read());
        let replies = replies.collect::<Result<Vec<_>, _>>()?;
        Ok(replies
            .iter()
            .map(|reply| reply.integer() != Some(0))
            .collect())
    }

    /// Queues a RESTORE.
    pub(super) fn queue_restore(&mut self, name: &[u8], expire_at_ms: Option<i64>, payload: &[u8]) {
        let ttl = expire_at_ms.unwrap_or(0).to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE", name, ttl.as_bytes(), payload, b"ABSTTL"];
        if self.replaces {
            words.push(b"REPLACE");
        }
        self.client.queue(&words);
    }

    /// The outcome of a RESTORE of a value with `count` elements.
    pub(super) fn restored(reply: &Value, count: u64) -> Attempt {
        match reply.error_text() {
            None => Attempt::Copied(count),
            Some(line) if line.starts_with("BUSYKEY") => Attempt::Kept,
            Some(line) => Attempt::Refused(line.into_owned()),
        }
    }

    /// Adds to the temporary key, in commands of bounded size.
    pub(super) fn push(
        &mut self,
        kind: Kind,
        name: &[u8],
        words: Vec<Vec<u8>>,
    ) -> Result<Result<(), String>, ClientError> {
        let lifetime = TEMPORARY_LIFETIME_MS.to_string();
        let mut words = words.as_slice();
        while !words.is_empty() {
            let mut bytes = 0;
            let taken = words
                .chunks(kind.import.element_words)
                .take_while(|one| {
                    let fits = bytes < IMPORT_CHUNK_BYTES;
                    bytes += one.iter().map(Vec::len).sum::<usize>();
                    fits
                })
                .count();
            let (now, later) = words
                .split_at_checked(taken * kind.import.element_words)
                .unwrap_or((words, &[]));
            words = later;
            let bytes: usize = now.iter().map(Vec::len).sum();
            let mut command: Vec<&[u8]> = Vec::with_capacity(now.len() + 2);
            command.extend([kind.import.adding, name]);
            for one in now.chunks(kind.import.element_words) {
                let words = one.iter().map(Vec::as_slice);
                if kind.import.adds_reversed {
                    command.extend(words.rev());
                } else {
                    command.extend(words);
                }
            }
            // The temporary key of a killed import expires.
            let expire: &[&[u8]] = &[b"PEXPIRE", name, lifetime.as_bytes()];
            let replies = if bytes <= TRANSACTION_QUEUE_BYTES_MAX / 2 {
                match self.transaction(&[&command, expire])? {
                    Ok(replies) => replies,
                    Err(refusal) => return Ok(Err(refusal)),
                }
            } else {
                // A single element that a transaction would not take.
                self.client.queue(&command);
                self.client.queue(expire);
                self.client.send()?;
                vec![self.client.read()?, self.client.read()?]
            };
            if let Some(error) = replies.iter().find_map(Value::error_text) {
                return Ok(Err(error.into_owned()));
            }
        }
        Ok(Ok(()))
    }

    /// Puts the elements of a payload into the temporary key. `moved` returns the time at which a
    /// field expires. Returns whether the key exists, because all its fields may have expired.
    pub(super) fn put_payload(
        &mut self,
        kind: Kind,
        name: &[u8],
        payload: &Bytes,
        moved: impl Fn(i64) -> i64,
    ) -> Result<Result<bool, String>, ClientError> {
        let mut elements = match Elements::new(payload) {
            Ok(elements) => elements,
            Err(error) => return Ok(Err(error.to_string())),
        };
        loop {
            let words = match elements.next_words(IMPORT_CHUNK_BYTES) {
                Ok(words) => words,
                Err(error) => return Ok(Err(error.to_string())),
            };
            if words.is_empty() {
                break;
            }
            if let Err(refusal) = self.push(kind, name, words)? {
                return Ok(Err(refusal));
            }
        }
        let mut expiries = elements::field_expiries(payload).peekable();
        if expiries.peek().is_none() {
            return Ok(Ok(true));
        }
        loop {
            let mut sent = 0;
            for (field, at_ms) in expiries.by_ref().take(FIELDS_AT_ONCE) {
                let at_ms = moved(at_ms).to_string();
                let words: [&[u8]; 6] = [
                    b"HPEXPIREAT",
                    name,
                    at_ms.as_bytes(),
                    b"FIELDS",
                    b"1",
                    &field,
                ];
                self.client.queue(&words);
                sent += 1;
            }
            if sent == 0 {
                break;
            }
            self.client.send()?;
            let mut refusal = None;
            for _ in 0..sent {
                let reply = self.client.read()?;
                refusal = refusal.or(reply.error_text().map(Cow::into_owned));
            }
            if let Some(refusal) = refusal {
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(self.are_there(&[name])?.contains(&true)))
    }

    /// Gives the temporary key its expiry and its name, unless it is incomplete. `put` is the number of its
    /// elements, or why the target refused some.
    pub(super) fn finish_large(
        &mut self,
        name: &[u8],
        temporary: &[u8],
        expire_at_ms: Option<i64>,
        put: Result<u64, String>,
    ) -> Result<Attempt, ClientError> {
        let count = match put {
            Ok(count) => count,
            Err(refusal) => return Ok(Attempt::Refused(refusal)),
        };
        let at_ms = expire_at_ms.unwrap_or_default().to_string();
        let expire: &[&[u8]] = match expire_at_ms {
            Some(_) => &[b"PEXPIREAT", temporary, at_ms.as_bytes()],
            None => &[b"PERSIST", temporary],
        };
        // Both or neither, because a temporary key without an expiry would never be removed.
        let rename: &[u8] = if self.replaces {
            b"RENAME"
        } else {
            b"RENAMENX"
        };
        let commands = [expire, &[rename, temporary, name]];
        let replies = match self.transaction(&commands)? {
            Ok(replies) => replies,
            Err(refusal) => return Ok(Attempt::Refused(refusal)),
        };
        if !self.replaces && replies.last().and_then(Value::integer) == Some(0) {
            self.client.call(&[b"DEL", temporary])?;
            return Ok(Attempt::Kept);
        }
        match replies.iter().find_map(Value::error_text) {
            None => Ok(Attempt::Copied(count)),
            Some(line) if line == "ERR no such key" && expire_at_ms.is_some() => {
                // It expired before it was renamed.
                if self.replaces {
                    self.client.call(&[b"DEL", name])?;
                }
                Ok(Attempt::Vanished)
            }
            Some(line) => Ok(Attempt::Refused(line.into_owned())),
        }
    }

    /// Runs commands at the target, all or none: their replies, or why it refuses them.
    pub(super) fn transaction(
        &mut self,
        commands: &[&[&[u8]]],
    ) -> Result<Result<Vec<Value>, String>, ClientError> {
        self.client.queue_transaction(commands);
        self.client.send()?;
        Ok(match self.client.read_transaction(commands.len())? {
            Transaction::Done(replies) => Ok(replies),
            Transaction::Changed => Err("no reply to EXEC".to_owned()),
            Transaction::Refused(reply) => {
                Err(reply.error_text().unwrap_or("no OK".into()).into_owned())
            }
        })
    }
}
