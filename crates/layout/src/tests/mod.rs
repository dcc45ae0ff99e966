//! Golden bytes: stored data must stay readable, so a change here needs a new [`LAYOUT_VERSION`]
//! and a way to read the old one. docs/understand/layout.md lists each row too.

mod keys;
mod queues;
mod scripts;
mod streams;
mod values;

use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use quoin_base::limits::INLINE_NAME_BYTES_MAX;

const DOCUMENT: &str = include_str!("../../../../docs/understand/layout.md");

const NAMESPACE: Id = Id {
    instance: 0,
    sequence: 3,
};

const DATA: Id = Id {
    instance: 1,
    sequence: 300,
};

fn layout() -> Layout {
    Layout::new("quoin")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks bytes, and that the document shows them under the same title.
fn golden(title: &str, bytes: &[u8], expected: &str) {
    assert_eq!(hex(bytes), expected, "{title}");
    let row = format!("| {title} | `{expected}` |");
    assert!(
        DOCUMENT.contains(&row),
        "docs/understand/layout.md lacks the row\n{row}"
    );
}
