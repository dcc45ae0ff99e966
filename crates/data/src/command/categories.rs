//! ACL categories.

use crate::command::flags::Flags;
use crate::command::row::Row;

/// Redis's ACL categories, in its order, and those of the types that only Quoin has.
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
    "@pqueue",
    "@taskqueue",
];

/// The ACL categories of a command: those that its flags imply, as Redis derives them, and those
/// that its row names. In the order of [`CATEGORIES`].
pub fn categories(row: &Row) -> impl Iterator<Item = &'static str> {
    let is_named = |category: &str| row.categories.contains(&category);
    let is_implied = move |category: &str| match category {
        "@read" => row.flags.contains(Flags::READONLY) && !is_named("@scripting"),
        "@write" => row.flags.contains(Flags::WRITE),
        "@admin" | "@dangerous" => row.flags.contains(Flags::ADMIN),
        "@pubsub" => row.flags.contains(Flags::PUBSUB),
        "@fast" => row.flags.contains(Flags::FAST),
        "@slow" => !row.flags.contains(Flags::FAST),
        "@blocking" => row.flags.contains(Flags::BLOCKING),
        _ => false,
    };
    let all = CATEGORIES.iter().copied();
    all.filter(move |category| is_implied(category) || is_named(category))
}
