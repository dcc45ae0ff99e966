//! Streams as commands show them, where their payload is not understood.

use bytes::Bytes;

use super::source::Source;
use super::streams::groups_payload;
use quoin_client::ClientError;
use quoin_rdb::{
    DumpedConsumer, DumpedEntry, DumpedGroup, DumpedPending, DumpedStream, EntryId, StreamWriter,
};
use quoin_resp::wire::reply_reader::Value;

/// Pending entries that are asked for at a time.
const PENDING_AT_ONCE: usize = 1_000;

/// A stream besides its entries.
pub(super) struct ShownStream {
    pub(super) stream: DumpedStream,
    /// What XINFO GROUPS has answered.
    groups: Value,
}

impl ShownStream {
    /// Its groups as a payload.
    pub(super) fn without_entries(&self) -> Bytes {
        groups_payload(StreamWriter::with_activity(), &self.stream)
    }

    /// Whether nothing has happened between this and the other. Times are not compared: they are as
    /// exact as the moment of the question.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (one, two) = (&self.stream, &other.stream);
        self.groups == other.groups
            && (one.last, one.deleted, one.added) == (two.last, two.deleted, two.added)
    }
}

/// A value among names and values in turns.
fn field<'v>(pairs: &'v Value, name: &str) -> Option<&'v Value> {
    let mut pairs = pairs.items()?.chunks(2);
    pairs.find_map(|pair| match pair {
        [key, value] if key.bytes() == Some(name.as_bytes()) => Some(value),
        _ => None,
    })
}

fn count(value: &Value) -> Option<u64> {
    u64::try_from(value.integer()?).ok()
}

fn entry_id(value: &Value) -> Option<EntryId> {
    let (ms, seq) = std::str::from_utf8(value.bytes()?).ok()?.split_once('-')?;
    Some((ms.parse().ok()?, seq.parse().ok()?))
}

fn text((ms, seq): EntryId) -> String {
    format!("{ms}-{seq}")
}

fn entry(value: &Value) -> Option<DumpedEntry> {
    let [id, fields] = value.items()? else {
        return None;
    };
    let fields = fields.clone().into_strings()?;
    Some((entry_id(id)?, fields.into_iter().map(Bytes::from).collect()))
}

/// A group without its consumers and pending entries.
fn group(value: &Value) -> Option<DumpedGroup> {
    Some(DumpedGroup {
        name: Bytes::copy_from_slice(field(value, "name")?.bytes()?),
        last: entry_id(field(value, "last-delivered-id")?)?,
        entries_read: field(value, "entries-read").and_then(count),
        pending: Vec::new(),
        consumers: Vec::new(),
    })
}

fn consumer(value: &Value, now_ms: i64) -> Option<DumpedConsumer> {
    let seen_at_ms = now_ms - field(value, "idle")?.integer()?;
    let active_at_ms = match field(value, "inactive").map(Value::integer) {
        Some(Some(-1)) => None,
        Some(Some(inactive_ms)) => Some(now_ms - inactive_ms),
        // Redis before 7.2: the best that is known.
        _ => Some(seen_at_ms),
    };
    Some(DumpedConsumer {
        name: Bytes::copy_from_slice(field(value, "name")?.bytes()?),
        seen_at_ms,
        active_at_ms,
        pending: Vec::new(),
    })
}

impl Source {
    /// What a stream is besides its entries; `None` where there is none.
    pub(super) fn shown_stream(&mut self, name: &[u8]) -> Result<Option<ShownStream>, ClientError> {
        let info = self.client().call(&[&b"XINFO"[..], b"STREAM", name])?;
        let mut error = info.error_text().into_iter();
        if error.any(|line| line.contains("no such key") || line.starts_with("WRONGTYPE")) {
            return Ok(None);
        }
        let read = || {
            let length = field(&info, "length").and_then(count)?;
            Some(DumpedStream {
                last: entry_id(field(&info, "last-generated-id")?)?,
                // What Redis before 7.0 does not know.
                deleted: field(&info, "max-deleted-entry-id").map_or(Some((0, 0)), entry_id)?,
                added: field(&info, "entries-added").map_or(Some(length), count)?,
                groups: Vec::new(),
            })
        };
        let Some(mut stream) = read() else {
            return Err(self.client().unexpected(&info));
        };
        let groups = self.client().call(&[&b"XINFO"[..], b"GROUPS", name])?;
        let shown: Option<Vec<DumpedGroup>> = groups
            .items()
            .and_then(|groups| groups.iter().map(group).collect());
        let Some(shown) = shown else {
            return Err(self.client().unexpected(&groups));
        };
        for mut group in shown {
            self.show_consumers(name, &mut group)?;
            self.show_pending(name, &mut group)?;
            stream.groups.push(group);
        }
        Ok(Some(ShownStream { stream, groups }))
    }

    fn show_consumers(&mut self, name: &[u8], group: &mut DumpedGroup) -> Result<(), ClientError> {
        let time = self.client().call(&["TIME"])?;
        let now_ms = self.time_ms(&time)?;
        let question: [&[u8]; 4] = [b"XINFO", b"CONSUMERS", name, &group.name];
        let reply = self.client().call(&question)?;
        let consumers = reply
            .items()
            .and_then(|all| all.iter().map(|one| consumer(one, now_ms)).collect());
        match consumers {
            Some(consumers) => group.consumers = consumers,
            None => return Err(self.client().unexpected(&reply)),
        }
        Ok(())
    }

    fn show_pending(&mut self, name: &[u8], group: &mut DumpedGroup) -> Result<(), ClientError> {
        let count = PENDING_AT_ONCE.to_string();
        let mut start = "-".to_owned();
        loop {
            let time = self.client().call(&["TIME"])?;
            let now_ms = self.time_ms(&time)?;
            let question: [&[u8]; 6] = [
                b"XPENDING",
                name,
                &group.name,
                start.as_bytes(),
                b"+",
                count.as_bytes(),
            ];
            let reply = self.client().call(&question)?;
            let Some(page) = reply.items() else {
                return Err(self.client().unexpected(&reply));
            };
            for one in page {
                if add_pending(group, one, now_ms).is_none() {
                    return Err(self.client().unexpected(&reply));
                }
            }
            match group.pending.last() {
                Some(last) if page.len() == PENDING_AT_ONCE => {
                    start = format!("({}", text(last.id));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Up to so many entries, from the first one or after one.
    pub(super) fn entries_after(
        &mut self,
        name: &[u8],
        after: Option<EntryId>,
        count: i64,
    ) -> Result<Vec<DumpedEntry>, ClientError> {
        let start = after.map_or("-".to_owned(), |id| format!("({}", text(id)));
        let count = count.to_string();
        let question: [&[u8]; 6] = [
            b"XRANGE",
            name,
            start.as_bytes(),
            b"+",
            b"COUNT",
            count.as_bytes(),
        ];
        let reply = self.client().call(&question)?;
        let entries = reply
            .items()
            .and_then(|entries| entries.iter().map(entry).collect());
        entries.ok_or_else(|| self.client().unexpected(&reply))
    }
}

/// Adds a pending entry to its group and its consumer; `None` where the reply makes no sense.
fn add_pending(group: &mut DumpedGroup, value: &Value, now_ms: i64) -> Option<()> {
    let [id, consumer, idle_ms, deliveries] = value.items()? else {
        return None;
    };
    let id = entry_id(id)?;
    let name = consumer.bytes()?;
    group.pending.push(DumpedPending {
        id,
        delivered_at_ms: now_ms - idle_ms.integer()?,
        deliveries: count(deliveries)?,
    });
    let mut consumers = group.consumers.iter_mut();
    match consumers.find(|one| one.name == name) {
        Some(consumer) => consumer.pending.push(id),
        // Given back by its consumer (XNACK of Redis 8.8): it is pending, and nobody's.
        None => group.consumers.push(DumpedConsumer {
            name: Bytes::copy_from_slice(name),
            seen_at_ms: now_ms,
            active_at_ms: None,
            pending: vec![id],
        }),
    }
    Some(())
}
