//! Streams that are too large for one transaction of the target's store.
//!
//! First comes a RESTORE of the stream without its entries: its groups, with their consumers and
//! pending entries. Then entries are added in parts, which no group notices. At last XSETID says what
//! the stream knows of itself.

use bytes::Bytes;

use super::target::{NOT_WHOLE, TEMPORARY_LIFETIME_MS, Target};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_client::ClientError;
use quoin_rdb::{DumpError, DumpedEntry, DumpedStream, StreamReader, StreamWriter};
use quoin_resp::wire::reply_reader::Value;

/// Bytes that a command takes besides an entry's, in a part.
const COMMAND_BYTES: usize = 128;

type Words = Vec<Vec<u8>>;

fn id_text((ms, seq): (u64, u64)) -> Vec<u8> {
    format!("{ms}-{seq}").into_bytes()
}

/// A payload of a stream's groups, without entries.
pub(super) fn groups_payload(writer: StreamWriter, stream: &DumpedStream) -> Bytes {
    writer.finish(&DumpedStream {
        last: (0, 0),
        deleted: (0, 0),
        added: 0,
        groups: stream.groups.clone(),
    })
}

/// What a payload holds besides its entries, and that as a payload.
fn without_entries(payload: &Bytes) -> Result<(DumpedStream, Bytes), DumpError> {
    let mut reader = StreamReader::new(quoin_rdb::open(payload)?)?;
    while reader.next_entry()?.is_some() {}
    let writer = reader.writer();
    let stream = reader.finish()?;
    let groups = groups_payload(writer, &stream);
    Ok((stream, groups))
}

/// The next entries, of about [`IMPORT_CHUNK_BYTES`]; empty at the end.
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
    words.push(id_text(*id));
    words.extend(fields.iter().map(|field| field.to_vec()));
    words
}

/// Hands out the next entries, empty at the end, or why there are no more.
pub(super) type NextEntries<'n> =
    dyn FnMut() -> Result<Result<Vec<DumpedEntry>, String>, ClientError> + 'n;

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

    /// Puts a stream together under a temporary name, and answers how many entries it has, or why
    /// that is refused. Calls `after_each` with the number of entries of each part.
    pub(super) fn put_stream(
        &mut self,
        stream: &DumpedStream,
        groups: &[u8],
        temporary: &[u8],
        next: &mut NextEntries<'_>,
        after_each: &mut dyn FnMut(u64),
    ) -> Result<Result<u64, String>, ClientError> {
        // What a killed import leaves behind goes away by itself.
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
            &last,
            b"ENTRIESADDED",
            added.as_bytes(),
            b"MAXDELETEDID",
            &deleted,
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
        // An import that was paused for longer than the temporary key lives adds to nothing.
        let are_added = replies
            .iter()
            .zip(commands)
            .all(|(id, _)| id.bytes().is_some());
        Ok(are_added.then_some(()).ok_or(NOT_WHOLE.to_owned()))
    }
}
