//! Whole values in Redis's serialization, as DUMP reads and RESTORE writes them. What it looks
//! like is each type's own ([`Serialization`](super::kind::Serialization)).

use bytes::Bytes;

use crate::dump::Payload;
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::limits::DUMP_BYTES_MAX;

use super::context::{ReadContext, WriteContext};
use super::key::OpenKey;
use super::kind::Restorable;

impl ReadContext<'_> {
    /// A key's value in Redis's serialization.
    ///
    /// # Errors
    /// `Text` where that is more than [`DUMP_BYTES_MAX`], or where Redis does not know the type;
    /// when the store fails.
    pub async fn dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let kind = key.meta.value_type.kind();
        match &kind.serialization {
            Some(serialization) => (serialization.dump)(self, key).await,
            None => Err(CommandError::Text(
                format!(
                    "ERR DUMP has no serialization for values of type {}, which Redis does not know",
                    kind.name
                )
                .into(),
            )),
        }
    }

    /// Reads a payload's value to its end.
    ///
    /// # Errors
    /// `Payload` where it is not sound, or of a type that Quoin does not keep; `TooLarge` where
    /// one transaction of the store cannot hold it for certain.
    pub fn restorable(&self, payload: Payload) -> Result<Restorable, CommandError> {
        let kinds = ValueType::ALL.iter().map(|value_type| value_type.kind());
        let mut serializations = kinds.filter_map(|kind| kind.serialization.as_ref());
        match serializations.find(|one| (one.reads)(payload.rdb_type())) {
            Some(serialization) => (serialization.read)(self, payload),
            None => Err(payload.refusal().into()),
        }
    }
}

/// Refuses to make a payload of more than so many bytes.
pub(super) fn check_size(bytes: usize) -> Result<(), CommandError> {
    if bytes > DUMP_BYTES_MAX {
        return Err(CommandError::Text(
            format!("ERR value is too large for DUMP (more than {DUMP_BYTES_MAX} bytes)").into(),
        ));
    }
    Ok(())
}

impl WriteContext<'_> {
    /// Puts a value in place of whatever is at `name`.
    ///
    /// Where it turns out larger than a transaction may be, this stops in the middle: the
    /// executor refuses the command for its size, and nothing of it is kept.
    ///
    /// # Errors
    /// `Text` where keys leave no room for so many long members; when the store fails.
    pub async fn restore(
        &self,
        name: &Bytes,
        value: Restorable,
        expire_at_ms: Option<i64>,
    ) -> Result<(), CommandError> {
        value(self, name, expire_at_ms).await
    }
}
