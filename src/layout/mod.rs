//! Where everything lies in the store: the one module that knows keys and stored values byte by
//! byte. docs/understand/layout.md is its prose; `tests.rs` pins it with golden bytes, because stored data
//! must stay readable.
//!
//! Every key is the root prefix followed by FoundationDB tuple elements, the first of which
//! names the space ([`Space`]).

use bytes::Bytes;
use foundationdb_tuple::{TupleDepth, TuplePack, TupleUnpack, pack_into};

pub mod member;
pub mod message;
pub mod meta;
pub mod name;
pub mod position;
pub mod priority;
pub mod signpost;
pub mod staging;
pub mod survey;
pub mod task;
pub mod value;

#[cfg(test)]
mod tests;

pub use member::{LongPlace, Member, MemberEntry, ScoreEntry};
pub use meta::{Meta, ValueType};
pub use name::KeyName;
pub use position::Position;
pub use priority::{Priority, PriorityNumber, QueuePlace};
pub use signpost::Signpost;
pub use staging::{
    PopRun, StagedClaim, StagedElement, StagedRequest, decode_elements, encode_elements,
};
pub use task::{OrderRow, TaskClass, TaskCounter, TaskPlace, TaskRegistry, TaskRow, TaskState};
pub use value::StoredValue;

pub use crate::store::key_after as successor;

use crate::store::StoreError;

/// Version of this layout, stored under [`Space::Version`] and checked at start.
pub const LAYOUT_VERSION: i64 = 2;

/// The first tuple element behind the root prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Space {
    /// `(0) = LAYOUT_VERSION`.
    Version = 0,
    /// `(1, namespace…, hash, name) = meta`, `(…, 0) = length counter`.
    Keys = 1,
    /// `(2, data id…, section, …)`: elements, score index, member index, chunks.
    Data = 2,
    /// `(3, expire_at_ms, namespace…, hash, name) = ""`.
    Expiry = 3,
    /// `(4, kind, id…) = ""`: what a background task still has to clear.
    Trash = 4,
    /// `(5, instance, slot) = batch number`: tells whether a commit of unknown result applied.
    Operations = 5,
    /// `(6) = number of server starts`, a counter that hands out instance numbers.
    Instances = 6,
    /// `(7, database) = namespace`: what SWAPDB and FLUSHDB change.
    Databases = 7,
    /// `(8, 0)`: the bell, a counter; `(8, 1, versionstamp)`: published messages.
    Messages = 8,
    /// `(9, at_ms, namespace…, hash, name) = ""`: task queues to be looked at.
    Alarms = 9,
    /// `(10, kind, data id…, …)`: what servers pop for each other.
    Staging = 10,
    /// `(63, random)`: a row that `quoin doctor` measures with, and removes.
    Scratch = 63,
}

/// The part of a data id's keys that a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Section {
    /// A list's elements by position.
    Elements = 0,
    /// A sorted set's members by score.
    Scores = 1,
    /// A sorted set's scores by member.
    Members = 2,
    /// Chunks of values that are split.
    Chunks = 3,
    /// A priority queue's elements by priority.
    Queue = 4,
    /// A task queue's ready tasks by class and place.
    TaskOrder = 8,
    /// Minima over stretches of that order.
    TaskNodes = 9,
    /// A task queue's tasks by id.
    Tasks = 10,
    /// Leases and delays by when they end.
    TaskDue = 11,
    /// Dead tasks by when they died.
    TaskDead = 12,
    /// A task queue's counters and what it knows of resources.
    TaskQueue = 13,
    /// Places whose minima are to be looked at by background work.
    TaskUntended = 14,
}

/// What kind of id a trash row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TrashKind {
    /// Everything below a data id.
    Data = 0,
    /// Every key of a namespace, with its data.
    Namespace = 1,
}

/// An id that is unique in the store without coordination: the number of the server start that
/// made it, and a number from that server's counter. Names data, namespaces and split values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// Which server start made the id; 0 for those that exist from the beginning.
    pub instance: u64,
    /// Number within that server start.
    pub sequence: u64,
}

/// A half-open key range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key inside.
    pub begin: Vec<u8>,
    /// First key behind.
    pub end: Vec<u8>,
}

impl KeyRange {
    /// Every key that has `prefix` followed by at least one more tuple element.
    pub fn children(prefix: &[u8]) -> Self {
        Self {
            begin: with_byte(prefix, 0x00),
            end: with_byte(prefix, 0xff),
        }
    }
}

fn with_byte(prefix: &[u8], byte: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 1);
    key.extend_from_slice(prefix);
    key.push(byte);
    key
}

pub(crate) fn corrupt<T>(what: &'static str) -> Result<T, StoreError> {
    Err(StoreError::Corrupt(what))
}

/// What of a key has not been read yet. (The tuple crate only unpacks whole tuples; an element
/// that takes all the rest lets keys be read one element at a time.)
struct Rest<'k>(&'k [u8]);

impl<'k> TupleUnpack<'k> for Rest<'k> {
    fn unpack(
        input: &'k [u8],
        _depth: TupleDepth,
    ) -> foundationdb_tuple::PackResult<(&'k [u8], Self)> {
        Ok((&[], Rest(input)))
    }
}

/// Takes one tuple element off the front of `input`.
pub(crate) fn take<'k, T: TupleUnpack<'k>>(
    input: &mut &'k [u8],
    what: &'static str,
) -> Result<T, StoreError> {
    match foundationdb_tuple::unpack::<(T, Rest<'k>)>(input) {
        Ok((element, Rest(rest))) => {
            *input = rest;
            Ok(element)
        }
        Err(_) => corrupt(what),
    }
}

/// Builds and reads keys below one root prefix.
#[derive(Debug, Clone)]
pub struct Layout {
    root: Vec<u8>,
}

impl Layout {
    /// A layout below the tuple `(root_prefix)`, or at the very top where it is empty.
    pub fn new(root_prefix: &str) -> Self {
        let root = if root_prefix.is_empty() {
            Vec::new()
        } else {
            foundationdb_tuple::pack(&(root_prefix,))
        };
        Self { root }
    }

    fn pack<T: TuplePack>(&self, space: Space, tuple: &T) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.root.len() + 48);
        key.extend_from_slice(&self.root);
        pack_into(&(space as u64,), &mut key);
        pack_into(tuple, &mut key);
        key
    }

    /// What follows the space's element in `key`.
    fn strip<'k>(&self, space: Space, key: &'k [u8]) -> Result<&'k [u8], StoreError> {
        let Some(mut rest) = key.strip_prefix(self.root.as_slice()) else {
            return corrupt("key outside the root prefix");
        };
        let found: u64 = take(&mut rest, "space")?;
        if found == space as u64 {
            Ok(rest)
        } else {
            corrupt("key of another space")
        }
    }

    /// Key of the layout version.
    pub fn version_key(&self) -> Vec<u8> {
        self.pack(Space::Version, &())
    }

    /// Key of the counter that hands out instance numbers.
    pub fn instances_key(&self) -> Vec<u8> {
        self.pack(Space::Instances, &())
    }

    /// Key that tells which namespace a database shows.
    pub fn database_key(&self, database: u32) -> Vec<u8> {
        self.pack(Space::Databases, &(database,))
    }

    /// Key that records the last batch committed through one slot of one server.
    pub fn operation_key(&self, instance: u64, slot: u64) -> Vec<u8> {
        self.pack(Space::Operations, &(instance, slot))
    }

    /// Key of a key's metadata.
    pub fn meta_key(&self, namespace: Id, name: &KeyName) -> Vec<u8> {
        let mut key = self.pack(
            Space::Keys,
            &(namespace.instance, namespace.sequence, name.hash()),
        );
        name.pack_into(&mut key);
        key
    }

    /// Key of the length counter beside a metadata key.
    pub fn length_key(&self, meta_key: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(meta_key.len() + 1);
        key.extend_from_slice(meta_key);
        pack_into(&(0_u64,), &mut key);
        key
    }

    /// All metadata of a namespace from a hash onwards: the range that SCAN walks.
    pub fn keys_from(&self, namespace: Id, hash: u64) -> KeyRange {
        let all = self.pack(Space::Keys, &(namespace.instance, namespace.sequence));
        let mut begin = all.clone();
        pack_into(&(hash,), &mut begin);
        KeyRange {
            begin,
            end: with_byte(&all, 0xff),
        }
    }

    /// Reads a key of [`Layout::keys_from`]: metadata or the length beside it.
    ///
    /// # Errors
    /// `Corrupt` where the key is not of this space.
    pub fn read_keys_row(&self, key: &[u8]) -> Result<KeysRow, StoreError> {
        let mut rest = self.strip(Space::Keys, key)?;
        let _: u64 = take(&mut rest, "namespace")?;
        let _: u64 = take(&mut rest, "namespace")?;
        let hash: u64 = take(&mut rest, "key hash")?;
        let name = KeyName::take(hash, &mut rest)?;
        if rest.is_empty() {
            Ok(KeysRow::Meta(name))
        } else {
            Ok(KeysRow::Length(name))
        }
    }

    /// Prefix of everything that belongs to a data id.
    pub fn data_prefix(&self, data: Id) -> Vec<u8> {
        self.pack(Space::Data, &(data.instance, data.sequence))
    }

    /// Prefix of one section of a data id.
    pub fn section_prefix(&self, data: Id, section: Section) -> Vec<u8> {
        self.pack(Space::Data, &(data.instance, data.sequence, section as u64))
    }

    /// Prefix of the chunks of one split value.
    pub fn chunks_prefix(&self, data: Id, chunks: Id) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::Chunks);
        pack_into(&(chunks.instance, chunks.sequence), &mut key);
        key
    }

    /// Key of one chunk of a split value.
    pub fn chunk_key(&self, data: Id, chunks: Id, number: u64) -> Vec<u8> {
        let mut key = self.chunks_prefix(data, chunks);
        pack_into(&(number,), &mut key);
        key
    }

    /// Key in the expiry index.
    pub fn expiry_key(&self, expire_at_ms: i64, namespace: Id, name: &KeyName) -> Vec<u8> {
        let mut key = self.pack(
            Space::Expiry,
            &(
                expire_at_ms,
                namespace.instance,
                namespace.sequence,
                name.hash(),
            ),
        );
        name.pack_into(&mut key);
        key
    }

    /// The expiry index up to and including `now_ms`.
    pub fn expired_by(&self, now_ms: i64) -> KeyRange {
        let all = self.pack(Space::Expiry, &());
        let mut end = all.clone();
        pack_into(&(now_ms.saturating_add(1),), &mut end);
        KeyRange {
            begin: with_byte(&all, 0x00),
            end,
        }
    }

    /// Reads a key of the expiry index: when, in which namespace, which key.
    ///
    /// # Errors
    /// `Corrupt` where the key is not of this space.
    pub fn read_expiry_key(&self, key: &[u8]) -> Result<(i64, Id, KeyName), StoreError> {
        let mut rest = self.strip(Space::Expiry, key)?;
        let expire_at_ms = take(&mut rest, "expiry time")?;
        let namespace = take_id(&mut rest, "namespace")?;
        let hash = take(&mut rest, "key hash")?;
        let name = KeyName::take(hash, &mut rest)?;
        Ok((expire_at_ms, namespace, name))
    }

    /// Key that marks an id as trash.
    pub fn trash_key(&self, kind: TrashKind, id: Id) -> Vec<u8> {
        self.pack(Space::Trash, &(kind as u64, id.instance, id.sequence))
    }

    /// All trash.
    pub fn trash(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Trash, &()))
    }

    /// Reads a key of the trash.
    ///
    /// # Errors
    /// `Corrupt` where the key is not of this space.
    pub fn read_trash_key(&self, key: &[u8]) -> Result<(TrashKind, Id), StoreError> {
        let mut rest = self.strip(Space::Trash, key)?;
        let kind = match take::<u64>(&mut rest, "trash kind")? {
            0 => TrashKind::Data,
            1 => TrashKind::Namespace,
            _ => return corrupt("trash kind"),
        };
        Ok((kind, take_id(&mut rest, "trash id")?))
    }

    /// Key of the counter that changes with each transaction that publishes.
    pub fn bell_key(&self) -> Vec<u8> {
        self.pack(Space::Messages, &(0_u64,))
    }

    /// What the keys of published messages begin with; the commit chooses the rest.
    pub fn messages_prefix(&self) -> Vec<u8> {
        let mut prefix = self.pack(Space::Messages, &(1_u64,));
        prefix.push(VERSIONSTAMP_CODE);
        prefix
    }

    /// All published messages.
    pub fn messages(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Messages, &(1_u64,)))
    }

    /// Reads the key of a published message: what the commit chose, and the row's number.
    ///
    /// # Errors
    /// `Corrupt` where the key is not of this space.
    pub fn read_message_key(&self, key: &[u8]) -> Result<([u8; 10], u16), StoreError> {
        let rest = key.strip_prefix(self.messages_prefix().as_slice());
        let split = rest.and_then(|rest| rest.split_first_chunk::<10>());
        match split {
            Some((stamp, &[high, low])) => Ok((*stamp, u16::from_be_bytes([high, low]))),
            _ => corrupt("key of a message"),
        }
    }
}

/// FoundationDB's type code of a versionstamp.
const VERSIONSTAMP_CODE: u8 = 0x33;

/// A row of [`Space::Keys`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysRow {
    /// The row holds a key's metadata.
    Meta(KeyName),
    /// The row holds the length counter of the key before it.
    Length(KeyName),
}

fn take_id(input: &mut &[u8], what: &'static str) -> Result<Id, StoreError> {
    Ok(Id {
        instance: take(input, what)?,
        sequence: take(input, what)?,
    })
}

/// The stored form of an id.
pub fn encode_id(id: Id) -> Vec<u8> {
    foundationdb_tuple::pack(&(id.instance, id.sequence))
}

/// Reads [`encode_id`].
///
/// # Errors
/// `Corrupt` where the bytes are no id.
pub fn decode_id(mut value: &[u8]) -> Result<Id, StoreError> {
    take_id(&mut value, "id")
}

/// The stored form of a counter: 8 bytes, little-endian, as FoundationDB's atomic add wants.
pub fn encode_counter(count: i64) -> [u8; 8] {
    count.to_le_bytes()
}

/// Reads a counter; absent counts as 0.
///
/// # Errors
/// `Corrupt` where the value has not 8 bytes.
pub fn decode_counter(value: Option<&Bytes>) -> Result<i64, StoreError> {
    match value {
        None => Ok(0),
        Some(bytes) => match <[u8; 8]>::try_from(bytes.as_ref()) {
            Ok(array) => Ok(i64::from_le_bytes(array)),
            Err(_) => corrupt("counter"),
        },
    }
}

/// Bits of a length counter that hold the length; those above count the key's changes.
const LENGTH_BITS: u32 = 40;
const LENGTH_MASK: i64 = (1 << LENGTH_BITS) - 1;

/// The most elements that a key can hold.
pub const LENGTH_MAX: i64 = LENGTH_MASK;

/// The stored form of a key's length (the low 40 bits) and of a number that every change of the
/// key changes (the high 24), by which WATCH recognises one. A new key begins with any number.
pub fn encode_length(length: i64, changes: u64) -> [u8; 8] {
    let changes = (changes as i64) << LENGTH_BITS;
    encode_counter((length & LENGTH_MASK) | changes)
}

/// What to add to a stored length when a key changes and has `delta` elements more. The sum
/// never borrows from the changes, because a length never becomes negative.
pub fn length_delta(delta: i64) -> i64 {
    delta.wrapping_add(1 << LENGTH_BITS)
}

/// Reads a length; absent counts as 0.
///
/// # Errors
/// `Corrupt` where the value has not 8 bytes.
pub fn decode_length(value: Option<&Bytes>) -> Result<i64, StoreError> {
    Ok(decode_counter(value)? & LENGTH_MASK)
}

/// FoundationDB's type code of nil.
const NIL_CODE: u8 = 0x00;

/// Whether the next tuple element of `input` is nil (which marks a digest in place of a name).
pub(crate) fn next_is_nil(input: &[u8]) -> bool {
    input.first() == Some(&NIL_CODE)
}
