//! The rows of the key commands.

use super::{databases, dumping, existence, expiry, listing, memory, moving, object, sort};
use crate::commands::row::{Flags, Group, KeyPositions, KeyUse, Row};
use crate::{read_handler, write_handler};

const ALL_KEYS: KeyPositions = KeyPositions::Range {
    first: 1,
    last: -1,
    step: 1,
};
const KEY_BEHIND_SUBCOMMAND: KeyPositions = KeyPositions::Range {
    first: 2,
    last: 2,
    step: 1,
};
const SORTING: &str = "O(M log M) with M elements in the value";
const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const ONE_KEY: &str = "O(log N), N being all that is stored";
const EACH_KEY: &str = "O(log N) for each key, N being all that is stored";
const WHOLE_VALUE: &str = "O(M) with M elements in the value";
const WHOLE_DATABASE: &str = "O(N) with N keys in the database";

/// A row that reads one key; others say what is different.
pub(super) const fn generic(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row {
        name,
        arity,
        flags: READ_FAST,
        keys: KeyPositions::FIRST,
        key_use: KeyUse::Read,
        since,
        group: Group::Generic,
        summary: "",
        complexity: ONE_KEY,
        handler: read_handler!(existence::exists),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

/// A row that changes one key.
const fn changing(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row {
        flags: WRITE_FAST,
        key_use: KeyUse::ReadWrite,
        handler: write_handler!(existence::del),
        ..generic(name, arity, since)
    }
}

/// A row about a whole database.
const fn database(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row {
        keys: KeyPositions::None,
        complexity: WHOLE_DATABASE,
        ..generic(name, arity, since)
    }
}

/// The key commands.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE,
        keys: ALL_KEYS,
        key_use: KeyUse::Remove,
        summary: "Deletes one or more keys.",
        complexity: EACH_KEY,
        ..changing("del", -2, "1.0.0")
    },
    Row {
        keys: ALL_KEYS,
        key_use: KeyUse::Remove,
        summary: "Asynchronously deletes one or more keys.",
        complexity: EACH_KEY,
        ..changing("unlink", -2, "4.0.0")
    },
    Row {
        keys: ALL_KEYS,
        summary: "Determines whether one or more keys exist.",
        complexity: EACH_KEY,
        ..generic("exists", -2, "1.0.0")
    },
    Row {
        keys: ALL_KEYS,
        summary: "Returns the number of existing keys out of those specified after updating the time they were last accessed.",
        complexity: EACH_KEY,
        ..generic("touch", -2, "3.2.1")
    },
    Row {
        summary: "Determines the type of value stored at a key.",
        handler: read_handler!(existence::type_of),
        ..generic("type", 2, "1.0.0")
    },
    Row {
        flags: Flags::READONLY,
        summary: "Returns all key names that match a pattern.",
        handler: read_handler!(listing::keys),
        ..database("keys", 2, "1.0.0")
    },
    Row {
        flags: Flags::READONLY,
        summary: "Iterates over the key names in the database.",
        complexity: "O(log N + COUNT) for every call, N being all that is stored",
        handler: read_handler!(listing::scan),
        ..database("scan", -2, "2.8.0")
    },
    Row {
        flags: Flags::READONLY,
        summary: "Returns a random key name from the database.",
        complexity: ONE_KEY,
        handler: read_handler!(listing::randomkey),
        ..database("randomkey", 1, "1.0.0")
    },
    Row {
        flags: Flags::WRITE,
        keys: KeyPositions::FIRST_TWO,
        summary: "Renames a key and overwrites the destination.",
        handler: write_handler!(moving::rename),
        ..changing("rename", 3, "1.0.0")
    },
    Row {
        keys: KeyPositions::FIRST_TWO,
        summary: "Renames a key only when the target key name doesn't exist.",
        handler: write_handler!(moving::renamenx),
        ..changing("renamenx", 3, "1.0.0")
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM),
        keys: KeyPositions::FIRST_TWO,
        summary: "Copies the value of a key to a new key.",
        complexity: WHOLE_VALUE,
        handler: write_handler!(moving::copy),
        ..changing("copy", -3, "6.2.0")
    },
    Row {
        flags: Flags::READONLY,
        summary: "Returns a serialized representation of the value stored at a key.",
        complexity: WHOLE_VALUE,
        handler: read_handler!(dumping::dump),
        ..generic("dump", 2, "2.6.0")
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM),
        key_use: KeyUse::Overwrite,
        summary: "Creates a key from the serialized representation of a value.",
        complexity: "O(M log M) with M elements in the value",
        handler: write_handler!(dumping::restore),
        ..changing("restore", -4, "2.6.0")
    },
    Row {
        summary: "Moves a key to another database.",
        handler: write_handler!(moving::move_key),
        ..changing("move", 3, "1.0.0")
    },
    Row {
        group: Group::Server,
        summary: "Returns the number of keys in the database.",
        handler: read_handler!(listing::dbsize),
        ..database("dbsize", 1, "1.0.0")
    },
    Row {
        flags: Flags::WRITE,
        group: Group::Server,
        summary: "Remove all keys from the current database.",
        complexity: "O(1); the keys' room is given back in the background",
        handler: write_handler!(databases::flushdb),
        ..database("flushdb", -1, "1.0.0")
    },
    Row {
        flags: Flags::WRITE,
        group: Group::Server,
        summary: "Removes all keys from all databases.",
        complexity: "O(D) with D databases; the keys' room is given back in the background",
        handler: write_handler!(databases::flushall),
        ..database("flushall", -1, "1.0.0")
    },
    Row {
        flags: WRITE_FAST,
        group: Group::Server,
        summary: "Swaps two Redis databases.",
        complexity: "O(1)",
        handler: write_handler!(databases::swapdb),
        ..database("swapdb", 3, "4.0.0")
    },
    Row {
        summary: "Sets the expiration time of a key in seconds.",
        handler: write_handler!(expiry::expire),
        ..changing("expire", -3, "1.0.0")
    },
    Row {
        summary: "Sets the expiration time of a key in milliseconds.",
        handler: write_handler!(expiry::pexpire),
        ..changing("pexpire", -3, "2.6.0")
    },
    Row {
        summary: "Sets the expiration time of a key to a Unix timestamp.",
        handler: write_handler!(expiry::expireat),
        ..changing("expireat", -3, "1.2.0")
    },
    Row {
        summary: "Sets the expiration time of a key to a Unix milliseconds timestamp.",
        handler: write_handler!(expiry::pexpireat),
        ..changing("pexpireat", -3, "2.6.0")
    },
    Row {
        summary: "Returns the expiration time in seconds of a key.",
        handler: read_handler!(expiry::ttl),
        ..generic("ttl", 2, "1.0.0")
    },
    Row {
        summary: "Returns the expiration time in milliseconds of a key.",
        handler: read_handler!(expiry::pttl),
        ..generic("pttl", 2, "2.6.0")
    },
    Row {
        summary: "Returns the expiration time of a key as a Unix timestamp.",
        handler: read_handler!(expiry::expiretime),
        ..generic("expiretime", 2, "7.0.0")
    },
    Row {
        summary: "Returns the expiration time of a key as a Unix milliseconds timestamp.",
        handler: read_handler!(expiry::pexpiretime),
        ..generic("pexpiretime", 2, "7.0.0")
    },
    Row {
        summary: "Removes the expiration time of a key.",
        handler: write_handler!(expiry::persist),
        ..changing("persist", 2, "2.2.0")
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::MOVABLEKEYS),
        keys: KeyPositions::Sort,
        summary: "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
        complexity: SORTING,
        handler: write_handler!(sort::sort),
        ..changing("sort", -2, "1.0.0")
    },
    Row {
        flags: Flags::READONLY.and(Flags::MOVABLEKEYS),
        summary: "Returns the sorted elements of a list, a set, or a sorted set.",
        complexity: SORTING,
        handler: read_handler!(sort::sort_ro),
        ..generic("sort_ro", -2, "7.0.0")
    },
    Row {
        flags: Flags::NONE,
        keys: KeyPositions::None,
        summary: "A container for object introspection commands.",
        complexity: "Depends on subcommand.",
        handler: read_handler!(object::object),
        subcommands: OBJECT_ROWS,
        ..generic("object", -2, "2.2.3")
    },
    Row {
        flags: Flags::NONE,
        keys: KeyPositions::None,
        group: Group::Server,
        summary: "A container for memory diagnostics commands.",
        complexity: "Depends on subcommand.",
        handler: read_handler!(memory::memory),
        subcommands: MEMORY_ROWS,
        ..generic("memory", -2, "4.0.0")
    },
];

const fn object_row(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row {
        flags: Flags::READONLY,
        keys: KEY_BEHIND_SUBCOMMAND,
        handler: read_handler!(object::object),
        ..generic(name, arity, since)
    }
}

const OBJECT_ROWS: &[Row] = &[
    Row {
        summary: "Returns the internal encoding of a Redis object.",
        ..object_row("encoding", 3, "2.2.3")
    },
    Row {
        summary: "Returns the logarithmic access frequency counter of a Redis object.",
        ..object_row("freq", 3, "4.0.0")
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        keys: KeyPositions::None,
        summary: "Returns helpful text about the different subcommands.",
        complexity: "O(1)",
        ..object_row("help", 2, "6.2.0")
    },
    Row {
        summary: "Returns the time since the last access to a Redis object.",
        ..object_row("idletime", 3, "2.2.3")
    },
    Row {
        summary: "Returns the reference count of a value of a key.",
        ..object_row("refcount", 3, "2.2.3")
    },
];

const fn memory_row(name: &'static str, arity: i32) -> Row {
    Row {
        flags: Flags::NONE,
        keys: KeyPositions::None,
        group: Group::Server,
        complexity: "O(1)",
        handler: read_handler!(memory::memory),
        ..generic(name, arity, "4.0.0")
    }
}

const MEMORY_ROWS: &[Row] = &[
    Row {
        summary: "Outputs a memory problems report.",
        ..memory_row("doctor", 2)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        summary: "Returns helpful text about the different subcommands.",
        ..memory_row("help", 2)
    },
    Row {
        summary: "Returns the allocator statistics.",
        ..memory_row("malloc-stats", 2)
    },
    Row {
        summary: "Asks the allocator to release memory.",
        ..memory_row("purge", 2)
    },
    Row {
        summary: "Returns details about memory usage.",
        ..memory_row("stats", 2)
    },
    Row {
        flags: Flags::READONLY,
        keys: KEY_BEHIND_SUBCOMMAND,
        summary: "Estimates the memory usage of a key.",
        complexity: "O(M) with M elements looked at",
        ..memory_row("usage", -3)
    },
];
