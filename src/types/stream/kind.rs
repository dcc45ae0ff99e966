//! The descriptor of streams.

use crate::layout::Section;
use crate::types::kind::{SectionKind, ValueKind, plain_element};

/// The descriptor of streams.
pub static KIND: ValueKind = ValueKind {
    name: "stream",
    encoding: "rows",
    // It remembers its last id, and its consumer groups.
    exists_when_empty: true,
    body: None,
    is_waited_for: false,
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
    serialization: None,
};
