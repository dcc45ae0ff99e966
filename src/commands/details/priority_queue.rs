//! What COMMAND tells of the priority-queue commands beyond their rows, in Redis's terms. None of
//! Redis's ACL categories is about such values; those that follow from the flags apply.

use super::{Details, NONE};

#[rustfmt::skip]
pub(super) const DETAILS: &[Details] = &[
    Details { name: "pq.bpopmax", keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "pq.bpopmin", keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "pq.count", keys: &[&["RO", "access"]], ..NONE },
    Details { name: "pq.len", keys: &[&["RO"]], ..NONE },
    Details { name: "pq.move", keys: &[&["RW", "access", "delete"], &["RW", "insert"]], ..NONE },
    Details { name: "pq.peekmax", keys: &[&["RO", "access"]], ..NONE },
    Details { name: "pq.peekmin", keys: &[&["RO", "access"]], ..NONE },
    Details { name: "pq.popmax", keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "pq.popmin", keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "pq.push", keys: &[&["RW", "insert"]], ..NONE },
    Details { name: "pq.range", keys: &[&["RO", "access"]], ..NONE },
];
