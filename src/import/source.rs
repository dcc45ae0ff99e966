//! The Redis that is read.

use std::collections::HashSet;

use super::ImportError;
use super::client::{Client, Value};
use super::options::Options;
use crate::limits::IMPORT_SCAN_COUNT;

/// The types that are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    SortedSet,
}

impl Kind {
    /// The command that counts elements.
    pub(super) fn counting(self) -> &'static [u8] {
        match self {
            Kind::List => b"LLEN",
            Kind::SortedSet => b"ZCARD",
        }
    }
}

/// A list or sorted set of the source.
#[derive(Debug, Clone)]
pub(super) struct SourceKey {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// Elements that it had when it was met.
    pub(super) count: i64,
    pub(super) expire_at_ms: Option<i64>,
}

/// What one call of SCAN brings.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) keys: Vec<SourceKey>,
    /// Types of keys that are not copied.
    pub(super) others: Vec<String>,
}

impl Page {
    /// Keys of whatever type.
    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.others.len()
    }
}

pub(super) struct Source {
    client: Client,
    pattern: Option<String>,
    /// Redis before 7.0 has no PEXPIRETIME; its clock and PTTL tell the same, nearly.
    tells_expiry: bool,
}

impl Source {
    pub(super) fn connect(options: &Options) -> Result<Self, ImportError> {
        let mut client = Client::connect(&options.from)?;
        let reply = client.call(&["PEXPIRETIME", "x"])?;
        let tells_expiry = reply.integer().is_some();
        if reply.error().is_some_and(|line| !line.starts_with("ERR")) {
            return Err(client.unexpected(&reply));
        }
        Ok(Self {
            client,
            pattern: options.pattern.clone(),
            tells_expiry,
        })
    }

    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// How far apart the same expiry may be read twice.
    pub(super) fn expiry_tolerance_ms(&self) -> u64 {
        if self.tells_expiry { 0 } else { 10_000 }
    }

    /// The databases that have keys.
    pub(super) fn databases(&mut self) -> Result<Vec<u32>, ImportError> {
        let reply = self.client.call(&["INFO", "keyspace"])?;
        let Value::Bytes(text) = &reply else {
            return Err(self.client.unexpected(&reply));
        };
        let text = String::from_utf8_lossy(text);
        Ok(text
            .lines()
            .filter_map(|line| line.strip_prefix("db")?.split_once(':')?.0.parse().ok())
            .collect())
    }

    pub(super) fn select(&mut self, database: u32) -> Result<(), ImportError> {
        self.client.call_ok(&["SELECT", &database.to_string()])
    }

    /// Keys in the selected database.
    pub(super) fn size(&mut self) -> Result<u64, ImportError> {
        let reply = self.client.call(&["DBSIZE"])?;
        let size = reply.integer().and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| self.client.unexpected(&reply))
    }

    /// The next page of keys, and the cursor behind it; `None` behind the last.
    pub(super) fn page(&mut self, cursor: &[u8]) -> Result<(Option<Vec<u8>>, Page), ImportError> {
        let count = IMPORT_SCAN_COUNT.to_string();
        let mut words: Vec<&[u8]> = vec![b"SCAN", cursor, b"COUNT", count.as_bytes()];
        if let Some(pattern) = &self.pattern {
            words.extend([b"MATCH", pattern.as_bytes()]);
        }
        let reply = self.client.call(&words)?;
        let (cursor, names) = match reply {
            Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([Value::Bytes(cursor), names]) => (cursor, names.into_strings()),
                _ => (Vec::new(), None),
            },
            other => return Err(self.client.unexpected(&other)),
        };
        let Some(names) = names else {
            return Err(self.client.unexpected(&Value::Nil));
        };
        let page = self.look_at(names)?;
        Ok((Some(cursor).filter(|cursor| cursor != b"0"), page))
    }

    /// What the keys of these names are. One that comes twice, as SCAN may bring it, is taken
    /// once.
    fn look_at(&mut self, names: Vec<Vec<u8>>) -> Result<Page, ImportError> {
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
            match self.client.read()? {
                Value::Line(line) if line == "+list" => kept.push((name, Kind::List)),
                Value::Line(line) if line == "+zset" => kept.push((name, Kind::SortedSet)),
                // Gone meanwhile.
                Value::Line(line) if line == "+none" => {}
                Value::Line(line) if line.starts_with('+') => {
                    page.others.push(line.trim_start_matches('+').to_owned());
                }
                other => return Err(self.client.unexpected(&other)),
            }
        }
        self.client.queue(&["TIME"]);
        for (name, kind) in &kept {
            let expiry: &[u8] = if self.tells_expiry {
                b"PEXPIRETIME"
            } else {
                b"PTTL"
            };
            self.client.queue(&[kind.counting(), name]);
            self.client.queue(&[expiry, name]);
        }
        self.client.send()?;
        let base_ms = match self.time_ms()? {
            _ if self.tells_expiry => 0,
            now_ms => now_ms,
        };
        for (name, kind) in kept {
            let count = self.client.read()?;
            let expiry = self.client.read()?;
            // Another type by now, or nothing: as if it had not been met.
            if let (Some(count), Some(expiry)) = (count.integer(), expiry.integer())
                && count > 0
            {
                page.keys.push(SourceKey {
                    name,
                    kind,
                    count,
                    expire_at_ms: (expiry >= 0).then_some(base_ms + expiry),
                });
            }
        }
        Ok(page)
    }

    fn time_ms(&mut self) -> Result<i64, ImportError> {
        let reply = self.client.read()?;
        let parts = reply.clone().into_strings().unwrap_or_default();
        let mut numbers = parts
            .iter()
            .filter_map(|part| std::str::from_utf8(part).ok()?.parse::<i64>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(seconds), Some(microseconds)) => Ok(seconds * 1_000 + microseconds / 1_000),
            _ => Err(self.client.unexpected(&reply)),
        }
    }

    /// Asks for a stretch of a value, from one rank to another; −1 is the last.
    pub(super) fn queue_stretch(&mut self, key: &SourceKey, start: i64, stop: i64) {
        let (start, stop) = (start.to_string(), stop.to_string());
        let bounds = [key.name.as_slice(), start.as_bytes(), stop.as_bytes()];
        match key.kind {
            Kind::List => {
                let [name, start, stop] = bounds;
                self.client.queue(&[b"LRANGE", name, start, stop]);
            }
            Kind::SortedSet => {
                let [name, start, stop] = bounds;
                self.client
                    .queue(&[b"ZRANGE", name, start, stop, b"WITHSCORES"]);
            }
        }
    }

    /// A stretch of a value: elements, or members and scores in turn. `None` where the key is of
    /// another type by now.
    pub(super) fn read_stretch(&mut self) -> Result<Option<Vec<Vec<u8>>>, ImportError> {
        let reply = self.client.read()?;
        if reply
            .error()
            .is_some_and(|line| line.starts_with("WRONGTYPE"))
        {
            return Ok(None);
        }
        match &reply {
            Value::Array(_) => Ok(reply.into_strings()),
            other => Err(self.client.unexpected(other)),
        }
    }
}
