//! The descriptor of hashes.

use crate::fields::restorable_hash;
use crate::keyspace::kind::{BodyKind, SectionKind, Serialization, ValueKind, element_or_empty};
use quoin_layout::{FieldRow, Section};
use quoin_rdb::HashFields;

/// The descriptor of hashes.
pub static KIND: ValueKind = ValueKind {
    name: "hash",
    encoding: |context, key| Box::pin(context.hash_encoding(key)),
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
    serialization: Some(Serialization {
        reads: |payload| HashFields::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(context.hash_dump(key)),
        read: restorable_hash,
    }),
};
