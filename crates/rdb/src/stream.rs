//! Streams in Redis's serialization: nodes of entries, each a listpack under the id of its first
//! entry, then the stream's information about itself, then its consumer groups.
//!
//! A node begins with the number of its entries, the number of its deleted entries, and the names
//! of the fields of its first entry (the *master*). Each entry follows with flags, the distance of
//! its id from the id of the node, its names and values (only the values if the names are those of
//! the master), and the number of its parts.

use std::collections::HashSet;

use bytes::Bytes;

use super::DumpError;
use super::packed::{Listpack, ListpackWriter};
use super::payload::{Payload, Reader, put_length, put_string, seal};
use quoin_base::number::parse_i64;

/// The encodings, with their numbers in RDB files: those of Redis 5, 7.0, 7.2 and 8.6.
const FIRST_FORM: u8 = 15;
const SECOND_FORM: u8 = 19;
const THIRD_FORM: u8 = 21;
const FOURTH_FORM: u8 = 26;

/// Entries of a node that is written (Redis: `stream-node-max-entries`).
const NODE_ENTRIES_MAX: usize = 100;

/// Bytes of a node that is written, unless one entry has more (Redis: `stream-node-max-bytes`).
const NODE_BYTES_MAX: usize = 4_096;

/// Space for a type and a count before data that is written before the count is known.
const HEAD_BYTES: usize = 10;
const IS_DELETED: i64 = 1;
const HAS_MASTER_NAMES: i64 = 2;

/// Parts of each entry besides names and values: flags and two distances.
const FIXED_PARTS: usize = 3;

/// How Redis writes that it is not known how many entries a group has read: −1.
const UNKNOWN_READ: u64 = u64::MAX;

/// An entry: its id, and pairs of name and value.
pub type DumpedEntry = (EntryId, Vec<Bytes>);

/// A stream of a payload without its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedStream {
    /// The id that was given last.
    pub last: EntryId,
    /// The greatest id that was deleted.
    pub deleted: EntryId,
    /// How many entries were ever added.
    pub added: u64,
    /// The consumer groups.
    pub groups: Vec<DumpedGroup>,
}

/// A consumer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedGroup {
    /// Its name.
    pub name: Bytes,
    /// The id that was delivered last.
    pub last: EntryId,
    /// How many entries it has read, if known.
    pub entries_read: Option<u64>,
    /// Its pending entries, by id.
    pub pending: Vec<DumpedPending>,
    /// Its consumers, by name.
    pub consumers: Vec<DumpedConsumer>,
}

/// A pending entry of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpedPending {
    /// The entry's id.
    pub id: EntryId,
    /// When it was delivered last, in milliseconds since the Unix epoch.
    pub delivered_at_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedConsumer {
    /// Its name.
    pub name: Bytes,
    /// When it last attempted something, in milliseconds since the Unix epoch.
    pub seen_at_ms: i64,
    /// When it last read or claimed an entry, if it did.
    pub active_at_ms: Option<i64>,
    /// The pending entries that it has, by id.
    pub pending: Vec<EntryId>,
}

/// Reads a stream: the entries in their order, and then the rest.
#[derive(Debug, Clone)]
pub struct StreamReader {
    value: Reader,
    rdb_type: u8,
    /// Remaining nodes.
    nodes_left: u64,
    node: Option<Node>,
    /// The entries so far.
    count: u64,
    first: Option<EntryId>,
    last: Option<EntryId>,
}

/// A node that is being read.
#[derive(Debug, Clone)]
struct Node {
    parts: Listpack,
    id: EntryId,
    master_names: Vec<Bytes>,
    /// Remaining entries, and how many of them are deleted.
    left: u64,
    deleted_left: u64,
}

impl Node {
    fn new(id: EntryId, listpack: &Bytes) -> Result<Self, DumpError> {
        let mut parts = Listpack::new(listpack)?;
        let count = count(&mut parts)?;
        let deleted_left = self::count(&mut parts)?;
        let names = self::count(&mut parts)?;
        let mut master_names = Vec::new();
        for _ in 0..names {
            master_names.push(part(&mut parts)?);
        }
        if integer(&mut parts)? != 0 {
            return Err(DumpError::Format);
        }
        Ok(Self {
            parts,
            id,
            master_names,
            left: count.checked_add(deleted_left).ok_or(DumpError::Format)?,
            deleted_left,
        })
    }

    /// The next entry that is not deleted. `None` after the last.
    fn next(&mut self) -> Result<Option<DumpedEntry>, DumpError> {
        while self.left > 0 {
            self.left -= 1;
            let (flags, entry) = self.entry()?;
            if flags & IS_DELETED == 0 {
                return Ok(Some(entry));
            }
            self.deleted_left = self.deleted_left.checked_sub(1).ok_or(DumpError::Format)?;
        }
        match (self.parts.next()?, self.deleted_left) {
            (None, 0) => Ok(None),
            _ => Err(DumpError::Format),
        }
    }

    fn entry(&mut self) -> Result<(i64, DumpedEntry), DumpError> {
        let flags = integer(&mut self.parts)?;
        let id = (
            self.id.0.wrapping_add_signed(integer(&mut self.parts)?),
            self.id.1.wrapping_add_signed(integer(&mut self.parts)?),
        );
        let mut fields = Vec::new();
        let parts = if flags & HAS_MASTER_NAMES != 0 {
            for name in &self.master_names {
                fields.push(name.clone());
                fields.push(part(&mut self.parts)?);
            }
            fields.len() as u64 / 2
        } else {
            for _ in 0..count(&mut self.parts)? {
                fields.push(part(&mut self.parts)?);
                fields.push(part(&mut self.parts)?);
            }
            fields.len() as u64 + 1
        };
        // Redis uses this to walk a node from its end.
        if count(&mut self.parts)? != parts + FIXED_PARTS as u64 {
            return Err(DumpError::Format);
        }
        Ok((flags, (id, fields)))
    }
}

fn part(parts: &mut Listpack) -> Result<Bytes, DumpError> {
    parts.next()?.ok_or(DumpError::Format)
}

fn integer(parts: &mut Listpack) -> Result<i64, DumpError> {
    parse_i64(&part(parts)?).ok_or(DumpError::Format)
}

fn count(parts: &mut Listpack) -> Result<u64, DumpError> {
    u64::try_from(integer(parts)?).map_err(|_| DumpError::Format)
}

impl StreamReader {
    /// Whether values of this RDB type are streams.
    pub fn reads(rdb_type: u8) -> bool {
        matches!(
            rdb_type,
            FIRST_FORM | SECOND_FORM | THIRD_FORM | FOURTH_FORM
        )
    }

    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a stream, or ends too early.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let rdb_type = payload.rdb_type();
        if !Self::reads(rdb_type) {
            return Err(DumpError::Format);
        }
        let mut value = payload.value;
        Ok(Self {
            nodes_left: value.length()?,
            value,
            rdb_type,
            node: None,
            count: 0,
            first: None,
            last: None,
        })
    }

    /// The next entry; `None` after the last.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn next_entry(&mut self) -> Result<Option<DumpedEntry>, DumpError> {
        loop {
            if let Some(node) = &mut self.node {
                if let Some((id, fields)) = node.next()? {
                    if self.last.is_some_and(|last| last >= id) {
                        return Err(DumpError::Format);
                    }
                    self.first.get_or_insert(id);
                    self.last = Some(id);
                    self.count += 1;
                    return Ok(Some((id, fields)));
                }
                self.node = None;
            }
            if self.nodes_left == 0 {
                return Ok(None);
            }
            self.nodes_left -= 1;
            let id = big_endian_id(&mut Reader::new(self.value.string()?))?;
            self.node = Some(Node::new(id, &self.value.string()?)?);
        }
    }

    /// A writer that keeps this payload's information about consumers.
    pub fn writer(&self) -> StreamWriter {
        match knows_activity(self.rdb_type) {
            true => StreamWriter::with_activity(),
            false => StreamWriter::new(),
        }
    }

    /// The part after the entries. All entries must have been read.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn finish(mut self) -> Result<DumpedStream, DumpError> {
        let value = &mut self.value;
        if value.length()? != self.count {
            return Err(DumpError::Format);
        }
        let last = id(value)?;
        if self.last.is_some_and(|greatest| greatest > last) {
            return Err(DumpError::Format);
        }
        let mut stream = DumpedStream {
            last,
            deleted: (0, 0),
            added: self.count,
            groups: Vec::new(),
        };
        if self.rdb_type != FIRST_FORM {
            // The first entry's id, which is already known.
            id(value)?;
            stream.deleted = id(value)?;
            stream.added = value.length()?;
        }
        let mut names = HashSet::new();
        for _ in 0..self.value.length()? {
            let group = self.group(&stream)?;
            if !names.insert(group.name.clone()) {
                return Err(DumpError::Format);
            }
            stream.groups.push(group);
        }
        if self.rdb_type == FOURTH_FORM {
            pass_producers(&mut self.value)?;
        }
        Ok(stream)
    }

    fn group(&mut self, stream: &DumpedStream) -> Result<DumpedGroup, DumpError> {
        let name = self.value.string()?;
        let last = id(&mut self.value)?;
        let entries_read = match self.rdb_type {
            FIRST_FORM => self.estimated_read(stream, last),
            _ => Some(self.value.length()?).filter(|read| *read != UNKNOWN_READ),
        };
        let value = &mut self.value;
        let mut pending: Vec<DumpedPending> = Vec::new();
        for _ in 0..value.length()? {
            let one = DumpedPending {
                id: big_endian_id(value)?,
                delivered_at_ms: i64::from_le_bytes(value.array()?),
                deliveries: value.length()?,
            };
            if pending.last().is_some_and(|last| last.id >= one.id) {
                return Err(DumpError::Format);
            }
            pending.push(one);
        }
        let mut unclaimed: HashSet<EntryId> = pending.iter().map(|one| one.id).collect();
        let mut names = HashSet::new();
        let mut consumers = Vec::new();
        for _ in 0..value.length()? {
            let consumer = consumer(value, self.rdb_type)?;
            // Each entry is pending for one consumer only.
            let is_sound = consumer.pending.iter().all(|id| unclaimed.remove(id));
            if !is_sound || !names.insert(consumer.name.clone()) {
                return Err(DumpError::Format);
            }
            consumers.push(consumer);
        }
        if !unclaimed.is_empty() {
            return Err(DumpError::Format);
        }
        Ok(DumpedGroup {
            name,
            last,
            entries_read,
            pending,
            consumers,
        })
    }

    /// How many entries a group has read, which the first form does not contain (Redis:
    /// `streamEstimateDistanceFromFirstEverEntry`).
    fn estimated_read(&self, stream: &DumpedStream, read: EntryId) -> Option<u64> {
        if stream.added == 0 {
            return Some(0);
        }
        match (read.cmp(&stream.last), self.first) {
            (std::cmp::Ordering::Equal, _) => Some(stream.added),
            (std::cmp::Ordering::Less, Some(first)) if read < first => Some(0),
            (std::cmp::Ordering::Less, Some(first)) if read == first => Some(1),
            _ => None,
        }
    }
}

/// Whether a form says when consumers last read or claimed an entry.
fn knows_activity(rdb_type: u8) -> bool {
    matches!(rdb_type, THIRD_FORM | FOURTH_FORM)
}

/// Skips the end of the fourth form: which producers recently added which messages. Redis uses it
/// to ignore repeated messages for a few seconds.
fn pass_producers(value: &mut Reader) -> Result<(), DumpError> {
    // How long and how many messages of a producer are remembered.
    id(value)?;
    for _ in 0..value.length()? {
        value.string()?;
        for _ in 0..value.length()? {
            value.string()?;
            id(value)?;
        }
    }
    // How many messages had producer ids, and how many were repeated.
    id(value)?;
    Ok(())
}

fn consumer(value: &mut Reader, rdb_type: u8) -> Result<DumpedConsumer, DumpError> {
    let name = value.string()?;
    let seen_at_ms = i64::from_le_bytes(value.array()?);
    let active_at_ms = match knows_activity(rdb_type) {
        true => i64::from_le_bytes(value.array()?),
        // As in Redis, the best approximation.
        false => seen_at_ms,
    };
    let mut pending = Vec::new();
    for _ in 0..value.length()? {
        pending.push(big_endian_id(value)?);
    }
    Ok(DumpedConsumer {
        name,
        seen_at_ms,
        active_at_ms: Some(active_at_ms).filter(|at_ms| *at_ms != -1),
        pending,
    })
}

fn id(value: &mut Reader) -> Result<EntryId, DumpError> {
    Ok((value.length()?, value.length()?))
}

fn big_endian_id(value: &mut Reader) -> Result<EntryId, DumpError> {
    Ok((
        u64::from_be_bytes(value.array()?),
        u64::from_be_bytes(value.array()?),
    ))
}

/// Writes a stream: the entries in their order, and then the rest.
#[derive(Debug)]
pub struct StreamWriter {
    form: u8,
    bytes: Vec<u8>,
    /// Entries of the node that is not full.
    node: Vec<DumpedEntry>,
    node_bytes: usize,
    node_count: u64,
    count: u64,
    first: EntryId,
}

impl Default for StreamWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamWriter {
    /// Without entries.
    pub fn new() -> Self {
        Self {
            form: SECOND_FORM,
            bytes: vec![0; HEAD_BYTES],
            node: Vec::new(),
            node_bytes: 0,
            node_count: 0,
            count: 0,
            first: (0, 0),
        }
    }

    /// An empty writer, for consumers whose last activity is known.
    pub fn with_activity() -> Self {
        Self {
            form: THIRD_FORM,
            ..Self::new()
        }
    }

    /// Adds an entry after the others.
    pub fn push(&mut self, id: EntryId, fields: Vec<Bytes>) {
        if self.count == 0 {
            self.first = id;
        }
        self.count += 1;
        let entry_bytes: usize = fields.iter().map(Bytes::len).sum();
        let is_full = self.node_bytes + entry_bytes >= NODE_BYTES_MAX;
        if !self.node.is_empty() && (is_full || self.node.len() >= NODE_ENTRIES_MAX) {
            self.end_node();
        }
        self.node_bytes += entry_bytes;
        self.node.push((id, fields));
    }

    fn end_node(&mut self) {
        let node = std::mem::take(&mut self.node);
        self.node_bytes = 0;
        let Some((id, master)) = node.first() else {
            return;
        };
        let names: Vec<Bytes> = master.iter().step_by(2).cloned().collect();
        let mut listpack = node_head(node.len(), names.iter());
        for (entry, fields) in &node {
            push_entry(&mut listpack, *id, &names, *entry, fields);
        }
        put_length(&mut self.bytes, 16);
        self.put_big_endian(*id);
        put_string(&mut self.bytes, &listpack.finish());
        self.node_count += 1;
    }

    fn put_big_endian(&mut self, (ms, seq): EntryId) {
        self.bytes.extend(ms.to_be_bytes());
        self.bytes.extend(seq.to_be_bytes());
    }

    fn put_id(&mut self, (ms, seq): EntryId) {
        put_length(&mut self.bytes, ms);
        put_length(&mut self.bytes, seq);
    }

    fn put_count(&mut self, count: usize) {
        put_length(&mut self.bytes, count as u64);
    }

    /// About how many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len() + self.node_bytes
    }

    /// The payload.
    pub fn finish(mut self, stream: &DumpedStream) -> Bytes {
        self.end_node();
        put_length(&mut self.bytes, self.count);
        self.put_id(stream.last);
        self.put_id(self.first);
        self.put_id(stream.deleted);
        put_length(&mut self.bytes, stream.added);
        self.put_count(stream.groups.len());
        for group in &stream.groups {
            self.put_group(group);
        }
        let mut head = vec![self.form];
        put_length(&mut head, self.node_count);
        // The head ends directly before the nodes. Unused bytes before it are cut off.
        let start = HEAD_BYTES - head.len();
        for (place, byte) in self.bytes.iter_mut().skip(start).zip(head) {
            *place = byte;
        }
        seal(self.bytes, start)
    }

    fn put_group(&mut self, group: &DumpedGroup) {
        put_string(&mut self.bytes, &group.name);
        self.put_id(group.last);
        put_length(&mut self.bytes, group.entries_read.unwrap_or(UNKNOWN_READ));
        self.put_count(group.pending.len());
        for one in &group.pending {
            self.put_big_endian(one.id);
            self.bytes.extend(one.delivered_at_ms.to_le_bytes());
            put_length(&mut self.bytes, one.deliveries);
        }
        self.put_count(group.consumers.len());
        for consumer in &group.consumers {
            put_string(&mut self.bytes, &consumer.name);
            self.bytes.extend(consumer.seen_at_ms.to_le_bytes());
            if self.form == THIRD_FORM {
                let active_at_ms = consumer.active_at_ms.unwrap_or(-1);
                self.bytes.extend(active_at_ms.to_le_bytes());
            }
            self.put_count(consumer.pending.len());
            for id in &consumer.pending {
                self.put_big_endian(*id);
            }
        }
    }
}

/// An id: milliseconds and sequence number.
pub type EntryId = (u64, u64);

/// With more entries, their number takes another byte.
const SHORT_COUNT_MAX: u64 = 127;

/// Most bytes of a node, with any settings (Redis: `STREAM_LISTPACK_MAX_SIZE`).
const BYTES_MAX: u64 = 1 << 30;

/// A node that is being filled, to find out how many entries Redis would put into it.
#[derive(Debug)]
pub struct StreamNode {
    listpack: ListpackWriter,
    first: EntryId,
    names: Vec<Bytes>,
    entries: u64,
    /// It takes no more entries.
    is_full: bool,
}

impl StreamNode {
    /// A node that begins with this entry, given as pairs of name and value.
    pub fn begin(id: EntryId, fields: &[Bytes]) -> Self {
        let names: Vec<Bytes> = fields.iter().step_by(2).cloned().collect();
        let mut node = Self {
            listpack: node_head(1, names.iter()),
            first: id,
            names,
            entries: 0,
            is_full: false,
        };
        node.push(id, fields);
        node
    }

    /// A node that a single large entry fills.
    pub fn of_one_large_entry() -> Self {
        Self {
            listpack: ListpackWriter::new(),
            first: (0, 0),
            names: Vec::new(),
            entries: 1,
            is_full: true,
        }
    }

    /// Its entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Whether Redis puts an entry into this node instead of a new one (Redis: `streamAppendItem`).
    pub fn takes(&self, fields: &[Bytes], entries_max: u64, bytes_max: u64) -> bool {
        let bytes: usize = fields.iter().map(Bytes::len).sum();
        let longer = usize::from(self.entries > SHORT_COUNT_MAX);
        let bytes = (self.listpack.len() + longer + bytes) as u64;
        !self.is_full && self.entries < entries_max && bytes < bytes_max.min(BYTES_MAX)
    }

    /// Adds an entry.
    pub fn push(&mut self, id: EntryId, fields: &[Bytes]) {
        push_entry(&mut self.listpack, self.first, &self.names, id, fields);
        self.entries += 1;
    }
}

/// A node's head: the number of its entries, and the names of the first one's fields.
fn node_head<'n>(
    entries: usize,
    names: impl ExactSizeIterator<Item = &'n Bytes>,
) -> ListpackWriter {
    let mut listpack = ListpackWriter::new();
    push_count(&mut listpack, entries);
    listpack.push_integer(0);
    push_count(&mut listpack, names.len());
    names.for_each(|name| listpack.push(name));
    listpack.push_integer(0);
    listpack
}

/// Adds an entry to a node that begins with the id `first` and these names.
fn push_entry(
    listpack: &mut ListpackWriter,
    first: EntryId,
    names: &[Bytes],
    (ms, seq): EntryId,
    fields: &[Bytes],
) {
    let has_master_names = fields.iter().step_by(2).eq(names);
    let flags = if has_master_names {
        HAS_MASTER_NAMES
    } else {
        0
    };
    listpack.push_integer(flags);
    listpack.push_integer(ms.wrapping_sub(first.0).cast_signed());
    listpack.push_integer(seq.wrapping_sub(first.1).cast_signed());
    let parts = if has_master_names {
        let values = fields.iter().skip(1).step_by(2);
        values.for_each(|value| listpack.push(value));
        fields.len() / 2
    } else {
        push_count(listpack, fields.len() / 2);
        fields.iter().for_each(|part| listpack.push(part));
        fields.len() + 1
    };
    push_count(listpack, parts + FIXED_PARTS);
}

fn push_count(listpack: &mut ListpackWriter, count: usize) {
    listpack.push_integer(i64::try_from(count).unwrap_or(i64::MAX));
}
