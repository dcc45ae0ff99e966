//! Streams that are too large for one transaction of the target's store.
//!
//! First comes a RESTORE of the stream without its entries: its groups, with their consumers and
//! pending entries. Then entries are added in parts, which does not affect the groups. At the end
//! XSETID sets the last id and the counters.
//!
//! If the payload of DUMP is not understood, XINFO, XPENDING and XRANGE give the same information.

use bytes::Bytes;

use super::source::{Source, field};
use super::target::{NOT_WHOLE, TEMPORARY_LIFETIME_MS, Target};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_client::ClientError;
use quoin_rdb::{
    DumpError, DumpedConsumer, DumpedEntry, DumpedGroup, DumpedPending, DumpedStream, EntryId,
    StreamReader, StreamWriter,
};
use quoin_resp::wire::reply_reader::Value;

/// Overhead of a command in a part, in addition to the entry's bytes.
const COMMAND_BYTES: usize = 128;
type Words = Vec<Vec<u8>>;

fn id_text((ms, seq): EntryId) -> String {
    format!("{ms}-{seq}")
}

/// A payload of a stream's groups, without entries.
fn groups_payload(writer: StreamWriter, stream: &DumpedStream) -> Bytes {
    writer.finish(&DumpedStream {
        last: (0, 0),
        deleted: (0, 0),
        added: 0,
        groups: stream.groups.clone(),
    })
}

/// The content of a payload without the entries, and the same as a payload.
fn without_entries(payload: &Bytes) -> Result<(DumpedStream, Bytes), DumpError> {
    let mut reader = StreamReader::new(quoin_rdb::open(payload)?)?;
    while reader.next_entry()?.is_some() {}
    let writer = reader.writer();
    let stream = reader.finish()?;
    let groups = groups_payload(writer, &stream);
    Ok((stream, groups))
}

/// The next entries, about [`IMPORT_CHUNK_BYTES`]. Empty at the end.
fn next_entries(reader: &mut StreamReader) -> Result<Vec<DumpedEntry>, DumpError> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    while bytes < IMPORT_CHUNK_BYTES
        && let Some((id, fields)) = reader.next_entry()?
    {
        bytes += COMMAND_BYTES + fields.iter().map(Bytes::len).sum::<usize>();
        entries.push((id, fields));
    }
    Ok(entries)
}

/// The command that adds an entry.
fn adding(name: &[u8], (id, fields): &DumpedEntry) -> Words {
    let mut words = vec![b"XADD".to_vec(), name.to_vec(), b"NOMKSTREAM".to_vec()];
    words.push(id_text(*id).into_bytes());
    words.extend(fields.iter().map(|field| field.to_vec()));
    words
}

/// Returns the next entries, empty at the end, or why there are no more.
type NextEntries<'n> = dyn FnMut() -> Result<Result<Vec<DumpedEntry>, String>, ClientError> + 'n;

impl Target {
    /// Puts the stream of a payload together under a temporary name.
    pub(super) fn put_dumped_stream(
        &mut self,
        payload: &Bytes,
        temporary: &[u8],
        after_each: &mut dyn FnMut(u64),
    ) -> Result<Result<u64, String>, ClientError> {
        let opened = without_entries(payload).and_then(|(stream, groups)| {
            Ok((
                stream,
                groups,
                StreamReader::new(quoin_rdb::open(payload)?)?,
            ))
        });
        let (stream, groups, mut entries) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut next = || Ok(next_entries(&mut entries).map_err(|error| error.to_string()));
        self.put_stream(&stream, &groups, temporary, &mut next, after_each)
    }

    /// Builds a stream under a temporary name. Returns the number of its entries, or why the target refused
    /// it. Calls `after_each` with the number of entries of each part.
    pub(super) fn put_stream(
        &mut self,
        stream: &DumpedStream,
        groups: &[u8],
        temporary: &[u8],
        next: &mut NextEntries<'_>,
        after_each: &mut dyn FnMut(u64),
    ) -> Result<Result<u64, String>, ClientError> {
        // The temporary key of a killed import expires.
        let lifetime = TEMPORARY_LIFETIME_MS.to_string();
        let restore = [b"RESTORE", temporary, lifetime.as_bytes(), groups];
        if let Some(error) = self.client.call(&restore)?.error_text() {
            return Ok(Err(error.into_owned()));
        }
        let mut count = 0;
        loop {
            let entries = match next()? {
                Ok(entries) if entries.is_empty() => break,
                Ok(entries) => entries,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let commands: Vec<Words> = entries
                .iter()
                .map(|entry| adding(temporary, entry))
                .collect();
            let added = commands.len() as u64;
            if let Err(refusal) = self.add_entries(&commands, temporary, &lifetime)? {
                return Ok(Err(refusal));
            }
            count += added;
            after_each(added);
        }
        let (last, deleted) = (id_text(stream.last), id_text(stream.deleted));
        let added = stream.added.to_string();
        let set_id: [&[u8]; 7] = [
            b"XSETID",
            temporary,
            last.as_bytes(),
            b"ENTRIESADDED",
            added.as_bytes(),
            b"MAXDELETEDID",
            deleted.as_bytes(),
        ];
        if let Some(error) = self.client.call(&set_id)?.error_text() {
            return Ok(Err(error.into_owned()));
        }
        Ok(Ok(count))
    }

    /// Adds entries in one transaction.
    fn add_entries(
        &mut self,
        commands: &[Words],
        temporary: &[u8],
        lifetime: &str,
    ) -> Result<Result<(), String>, ClientError> {
        let expire: [&[u8]; 3] = [b"PEXPIRE", temporary, lifetime.as_bytes()];
        let words: Vec<Vec<&[u8]>> = commands
            .iter()
            .map(|words| words.iter().map(Vec::as_slice).collect())
            .collect();
        let mut all: Vec<&[&[u8]]> = words.iter().map(Vec::as_slice).collect();
        all.push(&expire);
        let replies = match self.transaction(&all)? {
            Ok(replies) => replies,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(error) = replies.iter().find_map(Value::error_text) {
            return Ok(Err(error.into_owned()));
        }
        // If an import was paused for longer than the temporary key lives, there is nothing to add
        // to.
        let are_added = replies
            .iter()
            .zip(commands)
            .all(|(id, _)| id.bytes().is_some());
        Ok(are_added.then_some(()).ok_or(NOT_WHOLE.to_owned()))
    }
}

/// Pending entries that are asked for at a time.
const PENDING_AT_ONCE: usize = 1_000;

/// A stream without its entries.
pub(super) struct ShownStream {
    pub(super) stream: DumpedStream,
    /// The reply of XINFO GROUPS.
    groups: Value,
}

impl ShownStream {
    /// Its groups as a payload.
    pub(super) fn without_entries(&self) -> Bytes {
        groups_payload(StreamWriter::with_activity(), &self.stream)
    }

    /// Whether nothing happened between this and the other. Times are not compared, because they
    /// are relative to the moment of the request.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let (one, two) = (&self.stream, &other.stream);
        self.groups == other.groups
            && (one.last, one.deleted, one.added) == (two.last, two.deleted, two.added)
    }
}

fn count(value: &Value) -> Option<u64> {
    u64::try_from(value.integer()?).ok()
}

fn entry_id(value: &Value) -> Option<EntryId> {
    let (ms, seq) = std::str::from_utf8(value.bytes()?).ok()?.split_once('-')?;
    Some((ms.parse().ok()?, seq.parse().ok()?))
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
        // Redis before 7.2: the best approximation.
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
    /// The state of a stream according to XINFO and XPENDING. `None` if the stream does not exist.
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
                // Redis before 7.0 does not have it.
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
                    start = format!("({}", id_text(last.id));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Up to `count` entries, from the first one or after one.
    pub(super) fn entries_after(
        &mut self,
        name: &[u8],
        after: Option<EntryId>,
        count: i64,
    ) -> Result<Vec<DumpedEntry>, ClientError> {
        let start = after.map_or("-".to_owned(), |id| format!("({}", id_text(id)));
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

/// Adds a pending entry to its group and its consumer. `None` if the reply is unexpected.
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
        // Its consumer gave it back (XNACK of Redis 8.8): it is pending without a consumer.
        None => group.consumers.push(DumpedConsumer {
            name: Bytes::copy_from_slice(name),
            seen_at_ms: now_ms,
            active_at_ms: None,
            pending: vec![id],
        }),
    }
    Some(())
}
