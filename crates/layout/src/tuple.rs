//! The building blocks of keys and values: tuple elements, ids, counters and ranges of keys.

use bytes::Bytes;
use foundationdb_tuple::{TupleDepth, TupleUnpack};

use quoin_base::decode_error::DecodeError;

pub(crate) fn corrupt<T>(what: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError(what))
}

/// The part of a key that has not been read yet. The tuple crate only unpacks whole tuples. This
/// type takes the rest as one element, so that keys can be read one element at a time.
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
) -> Result<T, DecodeError> {
    match foundationdb_tuple::unpack::<(T, Rest<'k>)>(input) {
        Ok((element, Rest(rest))) => {
            *input = rest;
            Ok(element)
        }
        Err(_) => corrupt(what),
    }
}

/// FoundationDB's type code of nil.
const NIL_CODE: u8 = 0x00;

/// Whether the next tuple element of `input` is nil, which marks a digest in place of a name.
pub(crate) fn next_is_nil(input: &[u8]) -> bool {
    input.first() == Some(&NIL_CODE)
}

/// An id that is unique in the store without coordination: the number of the server start that
/// made it, and a number from that server's counter. Names data, namespaces and split values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The server start that made the id. 0 for ids that exist from the beginning.
    pub instance: u64,
    /// Number within that server start.
    pub sequence: u64,
}

pub(super) fn take_id(input: &mut &[u8], what: &'static str) -> Result<Id, DecodeError> {
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
/// If the bytes are not an id.
pub fn decode_id(mut value: &[u8]) -> Result<Id, DecodeError> {
    take_id(&mut value, "id")
}

/// The stored form of a counter: 8 bytes, little-endian, as FoundationDB's atomic add requires.
pub fn encode_counter(count: i64) -> [u8; 8] {
    count.to_le_bytes()
}

/// Reads a counter; absent counts as 0.
///
/// # Errors
/// If the value does not have 8 bytes.
pub fn decode_counter(value: Option<&Bytes>) -> Result<i64, DecodeError> {
    match value {
        None => Ok(0),
        Some(bytes) => match <[u8; 8]>::try_from(bytes.as_ref()) {
            Ok(array) => Ok(i64::from_le_bytes(array)),
            Err(_) => corrupt("counter"),
        },
    }
}

/// Bits of a length counter that hold the length. The bits above count the key's changes.
const LENGTH_BITS: u32 = 40;
const LENGTH_MASK: i64 = (1 << LENGTH_BITS) - 1;

/// The stored form of a key's length (the low 40 bits) and of a number that every change of the key
/// changes (the high 24), so that WATCH notices. A new key begins with any number.
pub fn encode_length(length: i64, changes: u64) -> [u8; 8] {
    let changes = (changes as i64) << LENGTH_BITS;
    encode_counter((length & LENGTH_MASK) | changes)
}

/// What to add to a stored length when a key changes and its number of elements grows by `delta`.
/// The sum never borrows from the changes, because a length never becomes negative.
pub fn length_delta(delta: i64) -> i64 {
    delta.wrapping_add(1 << LENGTH_BITS)
}

/// Reads a length; absent counts as 0.
///
/// # Errors
/// If the value does not have 8 bytes.
pub fn decode_length(value: Option<&Bytes>) -> Result<i64, DecodeError> {
    Ok(decode_counter(value)? & LENGTH_MASK)
}

/// A half-open key range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key inside.
    pub begin: Vec<u8>,
    /// First key after it.
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

pub(super) fn with_byte(prefix: &[u8], byte: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 1);
    key.extend_from_slice(prefix);
    key.push(byte);
    key
}
