//! The rows of the list commands.

use super::push_pop::{plan_push, pop, push, push_existing};
use super::{LEFT, List, RIGHT, access, moves};
use crate::commands::popping::{multi_pop, plan_multi_pop, plan_pop};
use crate::commands::row::{Flags, Group, KeyPositions, KeyUse, Row};
use crate::{read_handler, write_handler};

const PUSH: Flags = Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST);
const POP: Flags = Flags::WRITE.and(Flags::FAST);
const CHANGE: Flags = Flags::WRITE.and(Flags::DENYOOM);

pub(super) const fn list(name: &'static str, arity: i32) -> Row {
    Row {
        name,
        arity,
        flags: Flags::NONE,
        keys: KeyPositions::FIRST,
        key_use: KeyUse::ReadWrite,
        since: "1.0.0",
        group: Group::List,
        summary: "",
        complexity: "",
        handler: read_handler!(access::llen),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

/// The list commands.
pub const ROWS: &[Row] = &[
    Row {
        flags: PUSH,
        summary: "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
        complexity: "O(log N) for each element, N being all that is stored",
        handler: write_handler!(push::<LEFT>),
        plan: Some(plan_push::<LEFT>),
        ..list("lpush", -3)
    },
    Row {
        flags: PUSH,
        summary: "Appends one or more elements to a list. Creates the key if it doesn't exist.",
        complexity: "O(log N) for each element, N being all that is stored",
        handler: write_handler!(push::<RIGHT>),
        plan: Some(plan_push::<RIGHT>),
        ..list("rpush", -3)
    },
    Row {
        flags: PUSH,
        since: "2.2.0",
        summary: "Prepends one or more elements to a list only when the list exists.",
        complexity: "O(log N) for each element, N being all that is stored",
        handler: write_handler!(push_existing::<LEFT>),
        plan: Some(plan_push::<LEFT>),
        ..list("lpushx", -3)
    },
    Row {
        flags: PUSH,
        since: "2.2.0",
        summary: "Appends an element to a list only when the list exists.",
        complexity: "O(log N) for each element, N being all that is stored",
        handler: write_handler!(push_existing::<RIGHT>),
        plan: Some(plan_push::<RIGHT>),
        ..list("rpushx", -3)
    },
    Row {
        flags: POP,
        summary: "Returns the first elements in a list after removing it. Deletes the list if the last element was popped.",
        complexity: "O(log N) for each element, N being all that is stored",
        handler: write_handler!(pop::<LEFT>),
        plan: Some(plan_pop::<List, LEFT>),
        ..list("lpop", -2)
    },
    Row {
        flags: POP,
        summary: "Returns and removes the last elements of a list. Deletes the list if the last element was popped.",
        complexity: "O(log N) for each element, N being all that is stored",
        handler: write_handler!(pop::<RIGHT>),
        plan: Some(plan_pop::<List, RIGHT>),
        ..list("rpop", -2)
    },
    Row {
        flags: Flags::WRITE.and(Flags::MOVABLEKEYS),
        keys: KeyPositions::Counted { count: 1 },
        since: "7.0.0",
        summary: "Returns multiple elements from a list after removing them. Deletes the list if the last element was popped.",
        complexity: "O(K + M) with K keys looked at and M elements returned",
        handler: write_handler!(multi_pop::<List>),
        plan: Some(plan_multi_pop::<List>),
        ..list("lmpop", -4)
    },
    Row {
        flags: Flags::READONLY.and(Flags::FAST),
        key_use: KeyUse::Read,
        summary: "Returns the length of a list.",
        complexity: "O(1)",
        handler: read_handler!(access::llen),
        ..list("llen", 2)
    },
    Row {
        flags: Flags::READONLY,
        key_use: KeyUse::Read,
        summary: "Returns an element from a list by its index.",
        complexity: "O(M) with M elements between the index and the nearer end",
        handler: read_handler!(access::lindex),
        ..list("lindex", 3)
    },
    Row {
        flags: Flags::READONLY,
        key_use: KeyUse::Read,
        summary: "Returns a range of elements from a list.",
        complexity: "O(S + M) with S the distance to the nearer end and M elements returned",
        handler: read_handler!(access::lrange),
        ..list("lrange", 4)
    },
    Row {
        flags: CHANGE,
        summary: "Sets the value of an element in a list by its index.",
        complexity: "O(M) with M elements between the index and the nearer end",
        handler: write_handler!(access::lset),
        ..list("lset", 4)
    },
    Row {
        flags: CHANGE,
        since: "2.2.0",
        summary: "Inserts an element before or after another element in a list.",
        complexity: "O(M) with M elements up to the pivot",
        handler: write_handler!(access::linsert),
        ..list("linsert", 5)
    },
    Row {
        flags: Flags::WRITE,
        summary: "Removes elements from a list. Deletes the list if the last element was removed.",
        complexity: "O(M) with M elements of the list looked at",
        handler: write_handler!(access::lrem),
        ..list("lrem", 4)
    },
    Row {
        flags: Flags::WRITE,
        summary: "Removes elements from both ends a list. Deletes the list if all elements were trimmed.",
        complexity: "O(S + M) with S the distance to the nearer end and M elements removed",
        handler: write_handler!(access::ltrim),
        ..list("ltrim", 4)
    },
    Row {
        flags: Flags::READONLY,
        key_use: KeyUse::Read,
        since: "6.0.6",
        summary: "Returns the index of matching elements in a list.",
        complexity: "O(M) with M elements of the list looked at",
        handler: read_handler!(access::lpos),
        ..list("lpos", -3)
    },
    Row {
        flags: CHANGE,
        keys: KeyPositions::FIRST_TWO,
        since: "6.2.0",
        summary: "Returns an element after popping it from one list and pushing it to another. Deletes the list if the last element was moved.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(moves::lmove),
        plan: Some(moves::plan_lmove),
        ..list("lmove", 5)
    },
    Row {
        flags: CHANGE,
        keys: KeyPositions::FIRST_TWO,
        since: "1.2.0",
        summary: "Returns the last element of a list after removing and pushing it to another list. Deletes the list if the last element was popped.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(moves::rpoplpush),
        plan: Some(moves::plan_rpoplpush),
        ..list("rpoplpush", 3)
    },
];
