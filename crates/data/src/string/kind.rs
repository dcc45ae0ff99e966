//! The descriptor of strings: OBJECT ENCODING, DUMP, RESTORE, and what doctor checks.

use bytes::Bytes;

use crate::error::CommandError;
use crate::fields::canonical_number;
use crate::keyspace::dumping::check_size;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::kind::{
    ElementFlow, InlineKind, Restorable, SectionKind, Serialization, ValueKind,
};
use crate::unit::context::ReadContext;
use quoin_layout::Section;
use quoin_rdb::{Payload, read_string, reads_string, string_payload};
use quoin_store::StoreError;

use super::{StringValue, set};

/// Bytes of the longest `embstr` (Redis: `OBJ_ENCODING_EMBSTR_SIZE_LIMIT`).
const EMBEDDED_BYTES_MAX: u64 = 44;
/// Digits of the longest integer, with its sign.
const INTEGER_BYTES_MAX: u64 = 20;

/// The descriptor of strings.
pub static KIND: ValueKind = ValueKind {
    name: "string",
    encoding: |context, key| Box::pin(async { StringValue::open(context, key).encoding().await }),
    exists_when_empty: true,
    inline: Some(InlineKind {
        length: |inline| Ok(i64::try_from(inline.len()).unwrap_or(i64::MAX)),
    }),
    is_waited_for: false,
    flow: ElementFlow::Nothing,
    sections: &[SectionKind::pieces(Section::Pieces)],
    counters: &[],
    queue: None,
    on_put: None,
    slice: None,
    named_section: None,
    figures: None,
    deadlines: &[],
    serialization: Some(Serialization {
        reads: |payload| reads_string(payload.rdb_type()),
        dump: |context, key| {
            Box::pin(async { StringValue::open(context, key).dump().await.map(Some) })
        },
        read: restorable,
    }),
    import: Some(Import {
        counting: b"STRLEN",
        reading: Reading::Ranks(b"GETRANGE", &[]),
        reading_whole: Some(b"GET"),
        element_words: 1,
        elements_in: |words| words.iter().map(Vec::len).sum(),
        elements_are_bytes: true,
        adding: b"APPEND",
        adds_reversed: false,
        is_own: false,
        may_be_empty: false,
        payload: |words| Some(string_payload(&words.concat())),
    }),
};

impl StringValue<'_, '_> {
    /// The encoding that Redis would use.
    async fn encoding(&self) -> Result<&'static str, StoreError> {
        match self.length().await? {
            ..=INTEGER_BYTES_MAX if canonical_number(&self.get().await?).is_some() => Ok("int"),
            ..=EMBEDDED_BYTES_MAX => Ok("embstr"),
            _ => Ok("raw"),
        }
    }

    async fn dump(&self) -> Result<Bytes, CommandError> {
        let length = self.length().await?;
        check_size(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(string_payload(&self.get().await?))
    }
}

fn restorable(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let value = read_string(payload)?;
    context.size_budget().take_string(&value)?;
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(async move {
            set(context, name, &value, expire_at_ms).await?;
            Ok(())
        })
    }))
}
