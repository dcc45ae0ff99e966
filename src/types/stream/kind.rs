//! The descriptor of streams.

use crate::dump::StreamReader;
use crate::layout::Section;
use crate::types::kind::{SectionKind, Serialization, ValueKind, plain_element};

use super::dumping::restorable;

/// The descriptor of streams.
pub static KIND: ValueKind = ValueKind {
    name: "stream",
    // Redis has no other either, so the word promises nothing.
    encoding: "stream",
    // It remembers its last id, and its consumer groups.
    exists_when_empty: true,
    body: None,
    is_waited_for: true,
    sections: &[
        SectionKind::elements(Section::StreamEntries, plain_element),
        SectionKind::other(Section::StreamHead),
        SectionKind::other(Section::StreamGroups),
        SectionKind::other(Section::StreamPending),
        SectionKind::other(Section::StreamConsumerPending),
        SectionKind::other(Section::StreamConsumers),
        SectionKind::other(Section::StreamPendingCounts),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    on_put: None,
    slice: None,
    serialization: Some(Serialization {
        reads: StreamReader::reads,
        dump: |context, key| Box::pin(context.stream_dump(key)),
        read: restorable,
    }),
};
