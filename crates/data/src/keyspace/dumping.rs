//! Whole values as payloads, as DUMP reads and RESTORE writes them. What they look like is each type's
//! own ([`Serialization`](crate::keyspace::kind::Serialization)). Values of Quoin's own types come and go in
//! chunks too, since one transaction may not hold them, and no other commands say all of them.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::kind::TypeKind;
use quoin_base::limits::DUMP_BYTES_MAX;
use quoin_rdb::Payload;

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{Restorable, ValueKind};
use crate::unit::context::{ReadContext, WriteContext};

impl ReadContext<'_> {
    /// A key's value as a payload.
    ///
    /// # Errors
    /// `Text` where that is more than [`DUMP_BYTES_MAX`], or where the type has no such form.
    pub async fn dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let kind = key.meta.value_type.kind();
        match &kind.serialization {
            Some(serialization) => (serialization.dump)(self, key).await,
            None => Err(CommandError::Text(
                format!(
                    "ERR DUMP has no serialization for values of type {}",
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
        let mut serializations = ValueKind::all().filter_map(|kind| kind.serialization.as_ref());
        match serializations.find(|one| (one.reads)(&payload)) {
            Some(serialization) => (serialization.read)(self, payload),
            None => Err(payload.refusal().into()),
        }
    }
}

/// Some elements of a value, as a payload of the form of the whole value.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The payload; `None` where there are no elements any more.
    pub payload: Option<Bytes>,
    /// From where to go on; `None` after the last element.
    pub next: Option<Bytes>,
}

/// Refuses to make a payload of more than so many bytes.
pub(crate) fn check_size(bytes: usize) -> Result<(), CommandError> {
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
    /// `Text` where keys leave no room for so many long members.
    pub async fn restore(
        &self,
        name: &Bytes,
        value: Restorable,
        expire_at_ms: Option<i64>,
    ) -> Result<(), CommandError> {
        value(self, name, expire_at_ms).await
    }
}
