//! Ids.

use super::tuple::take;
use quoin_base::decode_error::DecodeError;

/// An id that is unique in the store without coordination: the number of the server start that
/// made it, and a number from that server's counter. Names data, namespaces and split values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// Which server start made the id; 0 for those that exist from the beginning.
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
/// Where the bytes are no id.
pub fn decode_id(mut value: &[u8]) -> Result<Id, DecodeError> {
    take_id(&mut value, "id")
}
