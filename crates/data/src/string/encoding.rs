//! The representation that Redis would have of a string.

use quoin_store::StoreError;

use crate::fields::canonical_number;
use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// Bytes of the longest string within its object (Redis: `OBJ_ENCODING_EMBSTR_SIZE_LIMIT`).
const EMBEDDED_BYTES_MAX: u64 = 44;
/// Digits of the longest integer, with its sign.
const INTEGER_BYTES_MAX: u64 = 20;

impl ReadContext<'_> {
    pub(crate) async fn string_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.string_length(key).await? {
            ..=INTEGER_BYTES_MAX if canonical_number(&self.string_get(key).await?).is_some() => {
                Ok("int")
            }
            ..=EMBEDDED_BYTES_MAX => Ok("embstr"),
            _ => Ok("raw"),
        }
    }
}
