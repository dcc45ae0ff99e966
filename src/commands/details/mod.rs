//! What COMMAND tells of a command beyond its row: ACL categories, tips, key specifications,
//! history. From Redis's own descriptions of its commands.

use super::row::{Flags, KeyPositions, Row};
use super::table::Entry;

mod generic;
mod list;
mod priority_queue;
mod server;
mod sorted_set;
mod task_queue;
mod transactions;

/// What COMMAND tells of a command beyond its row.
#[derive(Debug)]
pub struct Details {
    /// The command's full name.
    pub name: &'static str,
    /// ACL categories that its flags do not tell, without `@`.
    pub categories: &'static [&'static str],
    /// Redis's hints for clients.
    pub tips: &'static [&'static str],
    /// What it does to the keys of each key specification.
    pub keys: &'static [&'static [&'static str]],
    /// Versions of Redis that changed it, and how.
    pub history: &'static [(&'static str, &'static str)],
    /// The version of Redis that deprecated it, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Whether it is for Redis's own use.
    pub is_system: bool,
}

/// Nothing beyond the row.
const NONE: Details = Details {
    name: "",
    categories: &[],
    tips: &[],
    keys: &[],
    history: &[],
    deprecated: None,
    is_system: false,
};

static FAMILIES: &[&[Details]] = &[
    generic::DETAILS,
    list::DETAILS,
    priority_queue::DETAILS,
    server::DETAILS,
    sorted_set::DETAILS,
    task_queue::DETAILS,
    transactions::DETAILS,
];

/// The details of a command, by its full name.
pub fn find(full_name: &str) -> &'static Details {
    static NOTHING: Details = NONE;
    let mut all = FAMILIES.iter().copied().flatten();
    all.find(|details| details.name == full_name)
        .unwrap_or(&NOTHING)
}

/// Redis's ACL categories, in its order.
pub const CATEGORIES: &[&str] = &[
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
];

/// The ACL categories of a command: those that its flags imply, as Redis derives them, and those
/// of its details. In the order of [`CATEGORIES`].
pub fn categories(entry: &Entry) -> Vec<&'static str> {
    let flags = entry.row.flags;
    let explicit = find(&entry.full_name).categories;
    let is_in = |category: &str| match category {
        "@read" => flags.contains(Flags::READONLY) && !explicit.contains(&"scripting"),
        "@write" => flags.contains(Flags::WRITE),
        "@admin" => flags.contains(Flags::ADMIN),
        "@dangerous" => flags.contains(Flags::ADMIN),
        "@pubsub" => flags.contains(Flags::PUBSUB),
        "@fast" => flags.contains(Flags::FAST),
        "@slow" => !flags.contains(Flags::FAST),
        "@blocking" => flags.contains(Flags::BLOCKING),
        _ => false,
    };
    let is_explicit = |category: &str| {
        category
            .strip_prefix('@')
            .is_some_and(|name| explicit.contains(&name))
    };
    CATEGORIES
        .iter()
        .copied()
        .filter(|category| is_in(category) || is_explicit(category))
        .collect()
}

/// How keys are found among a command's arguments: one specification of COMMAND INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpecification {
    /// What is done to the keys.
    pub flags: &'static [&'static str],
    /// What a person should know.
    pub notes: Option<&'static str>,
    /// The argument where the search begins; `None` where that cannot be said.
    pub begin: Option<i64>,
    /// The keys from there on.
    pub find: FindKeys,
}

/// How keys follow from where the search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindKeys {
    /// Up to the last, relative to the beginning or (negative) to the end of the arguments.
    Range {
        /// The last key.
        last: i64,
        /// Distance of keys.
        step: i64,
    },
    /// A number of keys, and the keys behind it.
    Number,
    /// It cannot be said.
    Unknown,
}

/// A row's key specifications.
pub fn key_specifications(row: &Row, full_name: &str) -> Vec<KeySpecification> {
    let flags = find(full_name).keys;
    let at = |number: usize| flags.get(number).copied().unwrap_or_default();
    let one = |number: usize, begin: i64, find: FindKeys| KeySpecification {
        flags: at(number),
        notes: None,
        begin: Some(begin),
        find,
    };
    let unknown = |number: usize, notes: &'static str| KeySpecification {
        flags: at(number),
        notes: Some(notes),
        begin: None,
        find: FindKeys::Unknown,
    };
    let single = FindKeys::Range { last: 0, step: 1 };
    match row.keys {
        KeyPositions::None => Vec::new(),
        KeyPositions::ShardChannels { last } => {
            let last = if last < 0 { last } else { last - 1 };
            let find = FindKeys::Range {
                last: last.into(),
                step: 1,
            };
            vec![KeySpecification {
                flags: &["not_key"],
                notes: None,
                begin: Some(1),
                find,
            }]
        }
        // Several keys that are used differently are specified one by one.
        KeyPositions::Range { first, last, .. } if flags.len() > 1 && last > first => {
            let positions = i64::from(first)..=i64::from(last);
            positions
                .enumerate()
                .map(|(number, begin)| one(number, begin, single))
                .collect()
        }
        // SORT_RO: a key, and others that its options name.
        KeyPositions::Range { first, .. } if flags.len() > 1 => {
            vec![one(0, first.into(), single), unknown(1, SORT_BY_NOTES)]
        }
        KeyPositions::Range { first, last, step } => {
            let relative = if last < 0 { last } else { last - first };
            let find = FindKeys::Range {
                last: relative.into(),
                step: step.into(),
            };
            vec![one(0, first.into(), find)]
        }
        KeyPositions::Counted { count } => {
            let begin = i64::try_from(count).unwrap_or(i64::MAX);
            vec![one(0, begin, FindKeys::Number)]
        }
        KeyPositions::DestinationAndCounted => {
            vec![one(0, 1, single), one(1, 2, FindKeys::Number)]
        }
        KeyPositions::Sort => {
            let mut specifications = vec![one(0, 1, single), unknown(1, SORT_BY_NOTES)];
            if flags.len() > 2 {
                specifications.push(unknown(2, SORT_STORE_NOTES));
            }
            specifications
        }
    }
}

const SORT_BY_NOTES: &str = "For the optional BY/GET keyword. It is marked 'unknown' because the \
                             key names derive from the content of the key we sort";
const SORT_STORE_NOTES: &str = "For the optional STORE keyword. It is marked 'unknown' because \
                                the keyword can appear anywhere in the argument array";

/// The first key, the last (negative: from the end) and their distance, where keys stand at fixed
/// places; zeros elsewhere.
pub fn legacy_range(row: &Row) -> (i64, i64, i64) {
    match row.keys {
        KeyPositions::None | KeyPositions::Counted { .. } => (0, 0, 0),
        KeyPositions::ShardChannels { last } => (1, last.into(), 1),
        KeyPositions::Range { first, last, step } => (first.into(), last.into(), step.into()),
        KeyPositions::DestinationAndCounted | KeyPositions::Sort => (1, 1, 1),
    }
}
