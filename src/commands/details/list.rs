//! What COMMAND tells of the list commands beyond their rows.

use super::{Details, NONE};

#[rustfmt::skip]
pub(super) const DETAILS: &[Details] = &[
    Details { name: "blmove", categories: &["list"], keys: &[&["RW", "access", "delete"], &["RW", "insert"]], ..NONE },
    Details { name: "blmpop", categories: &["list"], keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "blpop", categories: &["list"], keys: &[&["RW", "access", "delete"]], history: &[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")], ..NONE },
    Details { name: "brpop", categories: &["list"], keys: &[&["RW", "access", "delete"]], history: &[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")], ..NONE },
    Details { name: "brpoplpush", categories: &["list"], keys: &[&["RW", "access", "delete"], &["RW", "insert"]], history: &[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")], deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")), ..NONE },
    Details { name: "lindex", categories: &["list"], keys: &[&["RO", "access"]], ..NONE },
    Details { name: "linsert", categories: &["list"], keys: &[&["RW", "insert"]], ..NONE },
    Details { name: "llen", categories: &["list"], keys: &[&["RO"]], ..NONE },
    Details { name: "lmove", categories: &["list"], keys: &[&["RW", "access", "delete"], &["RW", "insert"]], ..NONE },
    Details { name: "lmpop", categories: &["list"], keys: &[&["RW", "access", "delete"]], ..NONE },
    Details { name: "lpop", categories: &["list"], keys: &[&["RW", "access", "delete"]], history: &[("6.2.0", "Added the `count` argument.")], ..NONE },
    Details { name: "lpos", categories: &["list"], keys: &[&["RO", "access"]], ..NONE },
    Details { name: "lpush", categories: &["list"], keys: &[&["RW", "insert"]], history: &[("2.4.0", "Accepts multiple `element` arguments.")], ..NONE },
    Details { name: "lpushx", categories: &["list"], keys: &[&["RW", "insert"]], history: &[("4.0.0", "Accepts multiple `element` arguments.")], ..NONE },
    Details { name: "lrange", categories: &["list"], keys: &[&["RO", "access"]], ..NONE },
    Details { name: "lrem", categories: &["list"], keys: &[&["RW", "delete"]], ..NONE },
    Details { name: "lset", categories: &["list"], keys: &[&["RW", "update"]], ..NONE },
    Details { name: "ltrim", categories: &["list"], keys: &[&["RW", "delete"]], ..NONE },
    Details { name: "rpop", categories: &["list"], keys: &[&["RW", "access", "delete"]], history: &[("6.2.0", "Added the `count` argument.")], ..NONE },
    Details { name: "rpoplpush", categories: &["list"], keys: &[&["RW", "access", "delete"], &["RW", "insert"]], deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")), ..NONE },
    Details { name: "rpush", categories: &["list"], keys: &[&["RW", "insert"]], history: &[("2.4.0", "Accepts multiple `element` arguments.")], ..NONE },
    Details { name: "rpushx", categories: &["list"], keys: &[&["RW", "insert"]], history: &[("4.0.0", "Accepts multiple `element` arguments.")], ..NONE },
];
