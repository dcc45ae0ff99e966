//! Lists in Redis's serialization.

use bytes::Bytes;

use super::DumpError;
use super::packed::{ListpackWriter, Packed};
use super::payload::{Payload, Reader, put_length, put_string, seal};

/// Bytes of one node of a list in a payload of DUMP (Redis: `list-max-listpack-size` -2).
const LISTPACK_BYTES_MAX: usize = 8 * 1024;

/// Space for a type and a count before data that is written before the count is known.
const HEAD_BYTES: usize = 10;

/// Bytes per element that Redis adds to the element's own.
const ENTRY_OVERHEAD_BYTES: usize = 8;

/// The kind of a list node that is a listpack.
const PACKED_NODE: u64 = 2;

/// The encoding that is written, with its number in RDB files.
const LIST_OF_LISTPACKS: u8 = 18;

/// How a list is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListForm {
    Strings,
    OneZiplist,
    Ziplists,
    Listpacks,
}

impl ListForm {
    fn of(rdb_type: u8) -> Option<Self> {
        match rdb_type {
            1 => Some(ListForm::Strings),
            10 => Some(ListForm::OneZiplist),
            14 => Some(ListForm::Ziplists),
            LIST_OF_LISTPACKS => Some(ListForm::Listpacks),
            _ => None,
        }
    }
}

/// The elements of a list, from its head. Ends after the first error.
#[derive(Debug, Clone)]
pub struct ListElements {
    value: Reader,
    form: ListForm,
    /// Remaining strings or nodes.
    left: u64,
    node: Option<Packed>,
}

impl ListElements {
    /// Whether values of this RDB type are lists.
    pub fn reads(rdb_type: u8) -> bool {
        ListForm::of(rdb_type).is_some()
    }

    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a list, or ends too early.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let form = ListForm::of(payload.rdb_type()).ok_or(DumpError::Format)?;
        let mut value = payload.value;
        let left = match form {
            ListForm::OneZiplist => 1,
            _ => value.length()?,
        };
        Ok(Self {
            value,
            form,
            left,
            node: None,
        })
    }

    fn step(&mut self) -> Result<Option<Bytes>, DumpError> {
        loop {
            if let Some(node) = &mut self.node {
                if let Some(element) = node.next()? {
                    return Ok(Some(element));
                }
                self.node = None;
            }
            if self.left == 0 {
                return Ok(None);
            }
            self.left -= 1;
            self.node = Some(match self.form {
                ListForm::Strings => return self.value.string().map(Some),
                ListForm::OneZiplist | ListForm::Ziplists => {
                    Packed::ziplist(&self.value.string()?)?
                }
                ListForm::Listpacks => match self.value.length()? {
                    // One long element.
                    1 => {
                        let element = self.value.string()?;
                        return if element.is_empty() {
                            Err(DumpError::Format)
                        } else {
                            Ok(Some(element))
                        };
                    }
                    2 => Packed::listpack(&self.value.string()?)?,
                    _ => return Err(DumpError::Format),
                },
            });
        }
    }
}

impl Iterator for ListElements {
    type Item = Result<Bytes, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.step();
        if element.is_err() {
            self.left = 0;
            self.node = None;
        }
        element.transpose()
    }
}

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
        if node_bytes > LISTPACK_BYTES_MAX {
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
        let mut head = vec![LIST_OF_LISTPACKS];
        put_length(&mut head, self.node_count);
        // The head ends directly before the nodes. Unused bytes before it are cut off.
        let start = HEAD_BYTES - head.len();
        for (place, byte) in self.bytes.iter_mut().skip(start).zip(head) {
            *place = byte;
        }
        seal(self.bytes, start)
    }
}
