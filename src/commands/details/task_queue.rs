//! What COMMAND tells of the task queues' commands beyond their rows.

use super::{Details, NONE};

#[rustfmt::skip]
pub(super) const DETAILS: &[Details] = &[
    Details { name: "task.ack", keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "task.add", keys: &[&["RW", "insert"]], ..NONE },
    Details { name: "task.cancel", keys: &[&["RW", "delete"]], ..NONE },
    Details { name: "task.dead", keys: &[&["RO", "access"]], ..NONE },
    Details { name: "task.extend", keys: &[&["RW", "update"]], ..NONE },
    Details { name: "task.get", keys: &[&["RO", "access"]], ..NONE },
    Details { name: "task.info", keys: &[&["RO"]], ..NONE },
    Details { name: "task.len", keys: &[&["RO"]], ..NONE },
    Details { name: "task.nack", keys: &[&["RW", "update"]], ..NONE },
    Details { name: "task.peek", keys: &[&["RO", "access"]], ..NONE },
    Details { name: "task.revive", keys: &[&["RW", "update"]], ..NONE },
    Details { name: "task.take", keys: &[&["RW", "access", "delete"]], ..NONE },
];
