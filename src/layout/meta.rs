//! A key's metadata.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{Id, KeyName, corrupt, take};
use crate::store::StoreError;

/// Format byte of a metadata value.
const META_FORMAT: u8 = 1;

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ValueType {
    /// A list.
    List = 1,
    /// A sorted set.
    SortedSet = 2,
    /// A priority queue.
    PriorityQueue = 3,
    /// A task queue.
    TaskQueue = 4,
}

impl ValueType {
    /// All types.
    pub const ALL: &[ValueType] = &[
        ValueType::List,
        ValueType::SortedSet,
        ValueType::PriorityQueue,
        ValueType::TaskQueue,
    ];

    /// The word that TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::List => "list",
            ValueType::SortedSet => "zset",
            ValueType::PriorityQueue => "pqueue",
            ValueType::TaskQueue => "taskqueue",
        }
    }

    /// Whether an empty value of the type may still have rows: those of a task queue's counters,
    /// registry and index.
    pub fn keeps_more_than_elements(self) -> bool {
        match self {
            ValueType::List | ValueType::SortedSet | ValueType::PriorityQueue => false,
            ValueType::TaskQueue => true,
        }
    }

    pub(super) fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(ValueType::List),
            2 => Some(ValueType::SortedSet),
            3 => Some(ValueType::PriorityQueue),
            4 => Some(ValueType::TaskQueue),
            _ => None,
        }
    }
}

/// A key's type, expiry and data id. Apart from the data, so that RENAME moves no data; and not
/// touched by pushes and pops, so that those of two servers do not conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// What the key holds.
    pub value_type: ValueType,
    /// Where its data lies.
    pub data: Id,
    /// When it ceases to exist, in milliseconds since the Unix epoch.
    pub expire_at_ms: Option<i64>,
    /// The full name, where the key holds only its digest.
    pub long_name: Option<Bytes>,
}

impl Meta {
    /// The stored form: format byte, then the tuple (type, data id…, expiry | nil, name | nil).
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(16);
        value.push(META_FORMAT);
        pack_into(
            &(
                self.value_type as u64,
                self.data.instance,
                self.data.sequence,
                self.expire_at_ms,
                self.long_name.as_deref(),
            ),
            &mut value,
        );
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` where it is none, or of a newer format.
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let Some((&META_FORMAT, mut rest)) = value.split_first() else {
            return corrupt("metadata format");
        };
        let code: u64 = take(&mut rest, "type")?;
        let Some(value_type) = ValueType::from_code(code) else {
            return corrupt("unknown type");
        };
        let data = Id {
            instance: take(&mut rest, "data id")?,
            sequence: take(&mut rest, "data id")?,
        };
        let expire_at_ms = take(&mut rest, "expiry")?;
        let long_name: Option<TupleBytes<'_>> = take(&mut rest, "long name")?;
        Ok(Self {
            value_type,
            data,
            expire_at_ms,
            long_name: long_name.map(|name| Bytes::from(name.into_owned())),
        })
    }

    /// The key's full name, from the store key or, for a long one, from here.
    ///
    /// # Errors
    /// `Corrupt` where neither holds it.
    pub fn full_name<'m>(&'m self, name: &'m KeyName) -> Result<&'m Bytes, StoreError> {
        match name.inline().or(self.long_name.as_ref()) {
            Some(name) => Ok(name),
            None => corrupt("long name missing"),
        }
    }
}
