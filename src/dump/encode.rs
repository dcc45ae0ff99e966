//! From elements to payloads.
//!
//! Encodings and their thresholds are those of Redis 7.2 with its default settings, but nothing
//! is compressed, which Redis leaves to the writer.

use bytes::Bytes;

use super::listpack::ListpackWriter;
use super::{VERSION_WRITTEN, checksum, value_type};
use crate::limits::{
    DUMP_LISTPACK_BYTES_MAX, DUMP_SMALL_SET_MEMBER_BYTES_MAX, DUMP_SMALL_SET_MEMBERS_MAX,
};
use crate::number::{format_double, parse_i64};

/// Room for a type and a count in front of what is written before the count is known.
const HEAD_BYTES: usize = 10;
/// Bytes that Redis reckons an element to need beside its own.
const ENTRY_OVERHEAD_BYTES: usize = 8;
/// The kind of a list's node that is a listpack.
const PACKED_NODE: u64 = 2;
/// Length of a string up to which it may be written as an integer.
const INTEGER_TEXT_BYTES_MAX: usize = 11;

/// Writes a list, from its head.
#[derive(Debug)]
pub struct ListWriter {
    bytes: Vec<u8>,
    node: ListpackWriter,
    node_count: u64,
}

impl Default for ListWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ListWriter {
    /// Without elements.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; HEAD_BYTES],
            node: ListpackWriter::new(),
            node_count: 0,
        }
    }

    /// Adds an element at the tail.
    pub fn push(&mut self, element: &[u8]) {
        let node_bytes = self.node.len() + element.len() + ENTRY_OVERHEAD_BYTES;
        if node_bytes > DUMP_LISTPACK_BYTES_MAX {
            self.end_node();
        }
        self.node.push(element);
    }

    fn end_node(&mut self) {
        if self.node.is_empty() {
            return;
        }
        let node = std::mem::replace(&mut self.node, ListpackWriter::new()).finish();
        put_length(&mut self.bytes, PACKED_NODE);
        put_string(&mut self.bytes, &node);
        self.node_count += 1;
    }

    /// About how many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len() + self.node.len()
    }

    /// The payload.
    pub fn finish(mut self) -> Bytes {
        self.end_node();
        let mut head = vec![value_type::LIST_OF_LISTPACKS];
        put_length(&mut head, self.node_count);
        // The head ends where the nodes begin; what is free in front of it is cut off.
        let start = HEAD_BYTES - head.len();
        for (place, byte) in self.bytes.iter_mut().skip(start).zip(head) {
            *place = byte;
        }
        seal(self.bytes, start)
    }
}

/// The payload of a sorted set that Redis would keep in its compact encoding; `None` where there
/// are too many members or too long ones. They must be distinct and in Redis's order.
pub fn small_set(members: &[(Bytes, f64)]) -> Option<Bytes> {
    let is_small = members.len() <= DUMP_SMALL_SET_MEMBERS_MAX
        && members
            .iter()
            .all(|(member, _)| member.len() <= DUMP_SMALL_SET_MEMBER_BYTES_MAX);
    if !is_small {
        return None;
    }
    let mut listpack = ListpackWriter::new();
    for (member, score) in members {
        listpack.push(member);
        // Becomes an integer where it is whole, as in Redis.
        listpack.push(format_double(*score).as_bytes());
    }
    let mut bytes = vec![value_type::SET_LISTPACK];
    put_string(&mut bytes, &listpack.finish());
    Some(seal(bytes, 0))
}

/// Writes a sorted set of whatever size.
#[derive(Debug)]
pub struct SetWriter {
    bytes: Vec<u8>,
}

impl SetWriter {
    /// For so many members.
    pub fn new(count: u64) -> Self {
        let mut bytes = vec![value_type::SET_WITH_BINARY_SCORES];
        put_length(&mut bytes, count);
        Self { bytes }
    }

    /// Adds a member. Redis reads a set fastest from the last of its order to the first.
    pub fn push(&mut self, member: &[u8], score: f64) {
        put_string(&mut self.bytes, member);
        self.bytes.extend(score.to_le_bytes());
    }

    /// How many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The payload.
    pub fn finish(self) -> Bytes {
        seal(self.bytes, 0)
    }
}

/// Adds version and checksum to what stands in `bytes` from `start` on, and leaves out the rest.
fn seal(mut bytes: Vec<u8>, start: usize) -> Bytes {
    bytes.extend(VERSION_WRITTEN.to_le_bytes());
    let sum = checksum(bytes.get(start..).unwrap_or_default());
    bytes.extend(sum.to_le_bytes());
    Bytes::from(bytes).slice(start..)
}

fn put_length(bytes: &mut Vec<u8>, length: u64) {
    let [.., b, a] = length.to_be_bytes();
    if length < 1 << 6 {
        bytes.push(a);
    } else if length < 1 << 14 {
        bytes.extend([0x40 | b, a]);
    } else if let Ok(length) = u32::try_from(length) {
        bytes.push(0x80);
        bytes.extend(length.to_be_bytes());
    } else {
        bytes.push(0x81);
        bytes.extend(length.to_be_bytes());
    }
}

fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    let integer = if string.len() <= INTEGER_TEXT_BYTES_MAX {
        parse_i64(string).and_then(|integer| i32::try_from(integer).ok())
    } else {
        None
    };
    let Some(integer) = integer else {
        put_length(bytes, string.len() as u64);
        bytes.extend_from_slice(string);
        return;
    };
    let [a, b, c, d] = integer.to_le_bytes();
    match integer {
        -128..128 => bytes.extend([0xc0, a]),
        -32_768..32_768 => bytes.extend([0xc1, a, b]),
        _ => bytes.extend([0xc2, a, b, c, d]),
    }
}
