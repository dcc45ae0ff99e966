//! The descriptor of hashes, OBJECT ENCODING, DUMP and RESTORE.

use bytes::Bytes;

use crate::error::CommandError;
use crate::fields::restorable;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::kind::{
    BodyKind, Restorable, SectionKind, Serialization, ValueKind, element_or_empty,
};
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, FieldRow, Section};
use quoin_rdb::{HashFields, HashWriter, Payload, SMALL_HASH_FIELDS_MAX, small_hash};
use quoin_store::StoreError;

use super::{Hash, HashType};

/// The descriptor of hashes.
pub static KIND: ValueKind = ValueKind {
    name: "hash",
    encoding: |context, key| Box::pin(async move { Hash::open(context, key).encoding().await }),
    exists_when_empty: false,
    body: Some(BodyKind {
        length: |body| FieldRow::Hash.count_body(body),
    }),
    is_waited_for: false,
    sections: &[
        SectionKind::elements(Section::Fields, element_or_empty),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    on_put: None,
    slice: None,
    named_section: Some(Section::Fields),
    figures: Some(|context, key| Box::pin(context.ready_figures(key, Vec::new()))),
    deadlines: None,
    serialization: Some(Serialization {
        reads: |payload| HashFields::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(async move { Hash::open(context, key).dump().await }),
        read,
    }),
    import: Some(Import {
        counting: b"HLEN",
        reading: Reading::Iteration(b"HSCAN"),
        reading_whole: Some(b"HGETALL"),
        element_words: 2,
        elements_in: |words| words.len() / 2,
        elements_are_bytes: false,
        adding: b"HSET",
        adds_reversed: false,
        is_own: false,
        payload,
    }),
};

impl Hash<'_, '_> {
    async fn encoding(&self) -> Result<&'static str, StoreError> {
        match self.compact().await? {
            Some(_) => Ok("listpack"),
            None => Ok("hashtable"),
        }
    }

    async fn dump(&self) -> Result<Bytes, CommandError> {
        let length = self.counted_length().await?;
        if length <= SMALL_HASH_FIELDS_MAX as u64 {
            let fields = self.all().await?;
            let parts = fields.iter().map(|field| (&field.name, &field.value));
            if let Some(payload) = small_hash(parts) {
                return Ok(payload);
            }
        }
        let mut writer = HashWriter::new(length);
        let write = |field: &Entry| {
            writer.push(&field.name, &field.value);
            writer.size_bytes()
        };
        self.dump_each(length, write).await?;
        Ok(writer.finish())
    }
}

fn read(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let fields = HashFields::new(payload)?;
    let entries = fields.map(|field| field.map(|(name, value)| Entry { name, value }));
    restorable::<HashType>(context, entries)
}

/// Fields and values as a payload.
fn payload(words: Vec<Vec<u8>>) -> Option<Bytes> {
    let words: Vec<Bytes> = words.into_iter().map(Bytes::from).collect();
    let (pairs, odd) = words.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let fields = pairs.iter().map(|[field, value]| (field, value));
    small_hash(fields.clone()).or_else(|| {
        let mut writer = HashWriter::new(pairs.len() as u64);
        for (field, value) in fields {
            writer.push(field, value);
        }
        Some(writer.finish())
    })
}
