//! Generates docs/start/commands.md from the table.

use crate::command::grammar::Syntax;
use crate::command::row::{Group, Row};
use crate::table;

/// Groups in page order, with their headings.
const GROUPS: &[(Group, &str)] = &[
    (Group::String, "Strings"),
    (Group::Bitmap, "Bitmaps"),
    (Group::HyperLogLog, "HyperLogLogs"),
    (Group::Hash, "Hashes"),
    (Group::Set, "Sets"),
    (Group::List, "Lists"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Geo, "Places in sorted sets"),
    (Group::Stream, "Streams"),
    (Group::PriorityQueue, "Priority queues"),
    (Group::TaskQueue, "Task queues"),
    (Group::Queue, "Queues of all types"),
    (Group::Generic, "Keys"),
    (Group::Pubsub, "Publish and subscribe"),
    (Group::Transactions, "Transactions"),
    (Group::Connection, "Connection"),
    (Group::Server, "Server"),
    (Group::Scripting, "Scripting"),
    (Group::Cluster, "Cluster"),
];

const BEGINNING: &str = "\
# Commands

This page is generated from the table of commands; a test compares them.

Replies and error texts are those of Redis 7.2; docs/start/compatibility.md lists where they differ,
each with the reason. In the syntax, `[…]` is optional, `<a | b>` is a choice, and what precedes `...`
may be repeated. *Since* is the version of Redis that introduced the command, or that of Quoin where
Redis does not have it (docs/start/priority-queues.md, docs/start/task-queues.md). The cost is
Quoin's. Unless it says otherwise, N is what is stored and M what the command touches.
";

/// The text of the page.
fn page() -> String {
    let mut text = BEGINNING.to_owned();
    for (group, heading) in GROUPS {
        // A container's row adds nothing to the rows of its subcommands.
        let mut listed: Vec<&Row> = table::all()
            .iter()
            .filter(|row| row.group == *group)
            .filter(|row| row.subcommands.is_empty() || row.name == "command")
            .collect();
        if listed.is_empty() {
            continue;
        }
        listed.sort_by_key(|row| row.name);
        text.push_str(&format!(
            "\n## {heading}\n\n| command | since | cost | what it does |\n|---|---|---|---|\n"
        ));
        for row in listed {
            text.push_str(&line(row));
        }
    }
    text
}

fn line(row: &Row) -> String {
    let escaped = |text: &str| text.replace('|', "\\|");
    let name = row.name.replace('|', " ").to_uppercase();
    let syntax = format!("{name} {}", Syntax(row.arguments));
    format!(
        "| `{}` | {} | {} | {} |\n",
        escaped(syntax.trim_end()),
        row.since,
        escaped(row.complexity),
        escaped(row.summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_table() {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/start/commands.md");
        let text = page();
        if std::env::var_os("QUOIN_TEST_WRITE_DOCUMENTS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/start/commands.md differs from the table: QUOIN_TEST_WRITE_DOCUMENTS=1 cargo test \
             --lib document"
        );
    }

    #[test]
    fn every_command_stands_on_the_page_with_a_summary_and_a_cost() {
        let text = page();
        for row in table::all() {
            assert!(!row.summary.is_empty(), "{}", row.name);
            assert!(!row.complexity.is_empty(), "{}", row.name);
            assert!(GROUPS.iter().any(|(group, _)| *group == row.group));
            if row.subcommands.is_empty() {
                assert!(text.contains(&line(row)), "{}", row.name);
            }
        }
    }
}
