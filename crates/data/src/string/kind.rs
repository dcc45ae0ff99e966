//! The descriptor of strings.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{BodyKind, Restorable, SectionKind, Serialization, ValueKind};
use crate::unit::context::ReadContext;
use quoin_layout::Section;
use quoin_rdb::{Payload, read_string, reads_string, string_payload};

/// The descriptor of strings.
pub static KIND: ValueKind = ValueKind {
    name: "string",
    encoding: |context, key| Box::pin(context.string_encoding(key)),
    exists_when_empty: true,
    body: Some(BodyKind {
        length: |body| Ok(i64::try_from(body.len()).unwrap_or(i64::MAX)),
    }),
    is_waited_for: false,
    sections: &[SectionKind::pieces(Section::Pieces)],
    counters: &[],
    queue: None,
    on_put: None,
    slice: None,
    serialization: Some(Serialization {
        reads: |payload| reads_string(payload.rdb_type()),
        dump: |context, key| Box::pin(context.string_dump(key)),
        read: restorable,
    }),
};

impl ReadContext<'_> {
    async fn string_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let length = self.string_length(key).await?;
        check_size(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(string_payload(&self.string_get(key).await?))
    }
}

fn restorable(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let value = read_string(payload)?;
    context.size_budget().take_string(&value)?;
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(async move {
            context.string_set(name, &value, expire_at_ms).await?;
            Ok(())
        })
    }))
}
