//! A type for tests, of which Quoin has none yet: its keys exist while they have no elements.

use crate::layout::Section;

use super::kind::{SectionKind, ValueKind, plain_element};

/// The descriptor.
pub(super) static KIND: ValueKind = ValueKind {
    name: "hollow",
    encoding: "rows",
    exists_when_empty: true,
    body: None,
    is_waited_for: false,
    sections: &[
        SectionKind::elements(Section::Elements, plain_element),
        SectionKind::other(Section::Members),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    // Leaves a row for each name that the key has had.
    on_put: Some(|context, key| {
        let mut row = context
            .layout()
            .section_prefix(key.data(), Section::Members);
        row.extend_from_slice(&key.meta_key);
        context.transaction.set(&row, b"");
    }),
    slice: None,
    serialization: None,
};
