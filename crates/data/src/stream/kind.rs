//! The descriptor of streams.

use quoin_layout::Section;
use quoin_rdb::StreamReader;

use super::dumping::restorable;
use super::{Stream, doctor};
use crate::keyspace::kind::{SectionKind, Serialization, ValueKind, plain_element};

/// The descriptor of streams.
pub static KIND: ValueKind = ValueKind {
    name: "stream",
    encoding: |_, _| Box::pin(async { Ok("stream") }),
    // It keeps its last id and its consumer groups.
    exists_when_empty: true,
    body: None,
    is_waited_for: true,
    sections: &[
        SectionKind::elements(Section::StreamEntries, plain_element).checked(doctor::ENTRIES),
        SectionKind::other(Section::StreamHead),
        SectionKind::other(Section::StreamGroups),
        SectionKind::other(Section::StreamPending).checked(doctor::PENDING),
        SectionKind::other(Section::StreamConsumerPending).checked(doctor::CONSUMER_PENDING),
        SectionKind::other(Section::StreamConsumers).checked(doctor::CONSUMERS),
        SectionKind::other(Section::StreamPendingCounts).checked(doctor::COUNTS),
        SectionKind::other(Section::StreamIdle).checked(doctor::IDLE),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    // Its timers are under its old name.
    on_put: Some(|context, key| context.set_timer(key, context.now_ms)),
    slice: None,
    serialization: Some(Serialization {
        reads: |payload| StreamReader::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(async move { Stream::open(context, key).dump().await }),
        read: restorable,
    }),
};
