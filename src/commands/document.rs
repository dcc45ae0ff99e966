//! docs/start/commands.md, written from the table.

use super::row::Group;
use super::table::{Entry, entries};

/// Groups in the order of the page, with their headings.
const GROUPS: &[(Group, &str)] = &[
    (Group::List, "Lists"),
    (Group::SortedSet, "Sorted sets"),
    (Group::PriorityQueue, "Priority queues"),
    (Group::TaskQueue, "Task queues"),
    (Group::Generic, "Keys"),
    (Group::Transactions, "Transactions"),
    (Group::Connection, "Connection"),
    (Group::Server, "Server"),
    (Group::Scripting, "Scripting"),
];

const BEGINNING: &str = "\
# Commands

This page is generated from the table of commands; a test compares them.

Replies and error texts are those of Redis 7.2; docs/start/compatibility.md lists the differences
with reasons. The number of arguments includes the command's name and its subcommand's; `≥` means
that more are possible. *Since* is the version of Redis that introduced the command, or Quoin's if
Redis has no such command (docs/start/priority-queues.md, docs/start/task-queues.md). The cost is
Quoin's. Unless it says otherwise, N is what is stored and M is what the command touches.
";

/// The page.
pub fn page() -> String {
    let mut text = BEGINNING.to_owned();
    for (group, heading) in GROUPS {
        // A container's own row says nothing that its subcommands' rows do not say better.
        let mut listed: Vec<&Entry> = entries()
            .iter()
            .filter(|entry| entry.row.group == *group)
            .filter(|entry| entry.row.subcommands.is_empty() || entry.row.name == "command")
            .collect();
        if listed.is_empty() {
            continue;
        }
        listed.sort_by(|a, b| a.full_name.cmp(&b.full_name));
        text.push_str(&format!(
            "\n## {heading}\n\n| command | arguments | since | cost | what it does |\n|---|---|---|---|---|\n"
        ));
        for entry in listed {
            text.push_str(&line(entry));
        }
    }
    text
}

fn line(entry: &Entry) -> String {
    let row = entry.row;
    let arguments = if row.arity < 0 {
        format!("≥ {}", -row.arity)
    } else {
        row.arity.to_string()
    };
    let escaped = |text: &str| text.replace('|', "\\|");
    format!(
        "| `{}` | {arguments} | {} | {} | {} |\n",
        entry.full_name.replace('|', " ").to_uppercase(),
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
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/start/commands.md");
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
    fn every_command_has_a_summary_and_a_cost() {
        for entry in entries() {
            assert!(!entry.row.summary.is_empty(), "{}", entry.full_name);
            assert!(!entry.row.complexity.is_empty(), "{}", entry.full_name);
        }
    }
}
