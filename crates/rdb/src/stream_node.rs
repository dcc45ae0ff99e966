//! The nodes in which Redis keeps the entries of a stream.

use bytes::Bytes;

use super::listpack::ListpackWriter;

/// An id: milliseconds and sequence number.
pub type EntryId = (u64, u64);

const HAS_MASTER_NAMES: i64 = 2;
/// Parts of an entry besides names and values: flags and two distances.
const FIXED_PARTS: usize = 3;
/// Entries above which their number takes a byte more.
const SHORT_COUNT_MAX: u64 = 127;
/// Bytes of a node at most, whatever the settings (Redis: `STREAM_LISTPACK_MAX_SIZE`).
const BYTES_MAX: u64 = 1 << 30;

/// A node that is being filled, to tell how many entries Redis would keep in it.
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
    /// A node that begins with this entry, of names and values in turns.
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

    /// A node that one large entry fills.
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

    /// Whether Redis puts an entry into this node, and not into another one after it (Redis:
    /// `streamAppendItem`).
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

/// A node's head: how many entries it has, and the names of the first one's fields.
pub(super) fn node_head<'n>(
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
pub(super) fn push_entry(
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
