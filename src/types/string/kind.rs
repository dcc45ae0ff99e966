//! The descriptor of strings.

use crate::layout::Section;
use crate::types::kind::{BodyKind, SectionKind, ValueKind};

/// The descriptor of strings.
pub static KIND: ValueKind = ValueKind {
    name: "string",
    encoding: "pieces",
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
    serialization: None,
};
