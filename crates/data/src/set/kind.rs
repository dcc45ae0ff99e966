//! The descriptor of sets.

use crate::fields::restorable_set;
use crate::keyspace::kind::{BodyKind, SectionKind, Serialization, ValueKind, element_or_empty};
use quoin_layout::{FieldRow, Section};
use quoin_rdb::SetMembers;

/// The descriptor of sets.
pub static KIND: ValueKind = ValueKind {
    name: "set",
    encoding: |context, key| Box::pin(context.set_encoding(key)),
    exists_when_empty: false,
    body: Some(BodyKind {
        length: |body| FieldRow::Set.count_body(body),
    }),
    is_waited_for: false,
    sections: &[
        SectionKind::elements(Section::SetMembers, element_or_empty),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    on_put: None,
    slice: Some(|context, key, slice| Box::pin(context.set_slice(key, slice))),
    serialization: Some(Serialization {
        reads: |payload| SetMembers::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(context.set_dump(key)),
        read: restorable_set,
    }),
};
