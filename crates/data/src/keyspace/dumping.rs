//! Whole values as payloads of DUMP and RESTORE. Each type defines its format
//! ([`Serialization`](crate::keyspace::kind::Serialization)). Values of Quoin's own types can also be dumped and
//! restored in chunks, because one transaction may not hold them and no other commands return everything in them.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::kind::{Restorable, TypeKind, ValueKind};
use quoin_base::limits::DUMP_BYTES_MAX;
use quoin_rdb::Payload;

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};

impl ReadContext<'_> {
    /// A key's value as a payload.
    ///
    /// # Errors
    /// `Text` if it is larger than [`DUMP_BYTES_MAX`], or if the type has no payload format.
    pub async fn dump(&self, key: &OpenKey) -> Result<Option<Bytes>, CommandError> {
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

    /// Parses the value of a payload completely.
    ///
    /// # Errors
    /// `Payload` if it is malformed or of a type that Quoin does not store; `TooLarge` if it certainly does
    /// not fit into one transaction of the store.
    pub fn restorable(&self, payload: Payload) -> Result<Restorable, CommandError> {
        let mut serializations = ValueKind::all().filter_map(|kind| kind.serialization.as_ref());
        match serializations.find(|one| (one.reads)(&payload)) {
            Some(serialization) => (serialization.read)(self, payload),
            None => Err(payload.refusal().into()),
        }
    }
}

/// Some elements of a value, as a payload in the same format as the whole value.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The payload; `None` if there are no more elements.
    pub payload: Option<Bytes>,
    /// The position to continue from; `None` after the last element.
    pub next: Option<Bytes>,
}

/// Refuses to build a payload of more bytes than allowed.
pub(crate) fn check_size(bytes: usize) -> Result<(), CommandError> {
    if bytes > DUMP_BYTES_MAX {
        return Err(CommandError::Text(
            format!("ERR value is too large for DUMP (more than {DUMP_BYTES_MAX} bytes)").into(),
        ));
    }
    Ok(())
}

impl WriteContext<'_> {
    /// Stores a value at `name`, and replaces any key there.
    ///
    /// If the value exceeds the size limit of a transaction, this stops early. The executor then refuses the command
    /// for its size and discards all its changes.
    ///
    /// # Errors
    /// `Text` if there is no label left between two long members.
    pub async fn restore(
        &self,
        name: &Bytes,
        value: Restorable,
        expire_at_ms: Option<i64>,
    ) -> Result<(), CommandError> {
        value(self, name, expire_at_ms).await
    }
}
