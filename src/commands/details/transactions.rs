//! MULTI and what belongs to it.

use super::{Details, NONE};

#[rustfmt::skip]
pub(super) const DETAILS: &[Details] = &[
    Details {
        name: "discard",
        categories: &["transaction"],
        ..NONE
    },
    Details {
        name: "exec",
        categories: &["transaction"],
        ..NONE
    },
    Details {
        name: "multi",
        categories: &["transaction"],
        ..NONE
    },
    Details {
        name: "unwatch",
        categories: &["transaction"],
        ..NONE
    },
    Details {
        name: "watch",
        categories: &["transaction"],
        keys: &[&["RO"]],
        ..NONE
    },
];
