//! Names (keys of clients, members of sorted sets) inside store keys.

use std::hash::Hasher;

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;

use super::{DecodeError, corrupt, next_is_nil, take};
use quoin_base::limits::INLINE_NAME_BYTES_MAX;

/// Bits of [`hash48`]: a cursor below 2^53 survives clients that read numbers as doubles.
pub const HASH_BITS: u32 = 48;

/// A hash of a name that never changes: SipHash-1-3 with key 0, its upper 48 bits. It orders keys
/// for SCAN and members for ZSCAN, so that a cursor is a number and servers need no state.
pub fn hash48(name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name);
    hasher.finish() >> (64 - HASH_BITS)
}

/// SHA-256, which replaces a name that is too long for a key.
pub type NameDigest = [u8; 32];

/// The digest of a long name.
pub fn digest(name: &[u8]) -> NameDigest {
    Sha256::digest(name).into()
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Form {
    Inline(Bytes),
    Digest(NameDigest),
}

/// A name in keys: `(hash, name)`. If it is longer than [`INLINE_NAME_BYTES_MAX`], it is
/// `(hash, nil, digest)`, and the row's value has the full bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyName {
    hash: u64,
    form: Form,
}

impl KeyName {
    /// The form of `name` in keys.
    pub fn new(name: &Bytes) -> Self {
        let form = if name.len() <= INLINE_NAME_BYTES_MAX {
            Form::Inline(name.clone())
        } else {
            Form::Digest(digest(name))
        };
        Self {
            hash: hash48(name),
            form,
        }
    }

    /// The name's hash, which comes first in the key.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The full name, unless only its digest is in the key.
    pub fn inline(&self) -> Option<&Bytes> {
        match &self.form {
            Form::Inline(name) => Some(name),
            Form::Digest(_) => None,
        }
    }

    /// Appends the elements after the hash.
    pub(crate) fn pack_into(&self, key: &mut Vec<u8>) {
        match &self.form {
            Form::Inline(name) => {
                pack_into(&(name.as_ref(),), key);
            }
            Form::Digest(digest) => {
                pack_into(&(None::<i64>, digest.as_slice()), key);
            }
        }
    }

    /// Takes a name off the front of the rest of a key.
    pub(crate) fn take(hash: u64, rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let form = if next_is_nil(rest) {
            let _: Option<i64> = take(rest, "name")?;
            let digest: TupleBytes<'_> = take(rest, "name digest")?;
            match NameDigest::try_from(digest.as_ref()) {
                Ok(digest) => Form::Digest(digest),
                Err(_) => return corrupt("name digest"),
            }
        } else {
            let name: TupleBytes<'_> = take(rest, "name")?;
            Form::Inline(Bytes::from(name.into_owned()))
        };
        Ok(Self { hash, form })
    }
}
