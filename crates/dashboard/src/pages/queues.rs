//! The list of queues: keys whose types hold work, a bounded number of names a page.

use maud::{Markup, html};

use quoin_base::limits::{DASHBOARD_NAMES_MAX, DASHBOARD_ROWS_MAX};
use quoin_resp::wire::reply_reader::Value;

use crate::figures::{count, counted, readable};
use crate::frame::databases;
use crate::request::url;
use crate::view::{NoPage, Page, Pairs, View, Words, items, number, text, words};

/// Names that one SCAN examines.
const NAMES_PER_SCAN: usize = 100;
/// The types that are shown: Redis's name, and ours.
pub(crate) const TYPES: [(&str, &str); 5] = [
    ("taskqueue", "Task queues"),
    ("pqueue", "Priority queues"),
    ("list", "Lists"),
    ("stream", "Streams"),
    ("zset", "Sorted sets"),
];

/// A queue of a page.
pub(crate) struct Queue {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: String,
    pub(crate) figures: Figures,
}

/// What is in a queue. −1: unknown.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) ready: i64,
    pub(crate) in_work: Option<i64>,
    pub(crate) delayed: Option<i64>,
    pub(crate) dead: Option<i64>,
    pub(crate) notes: Vec<String>,
    pub(crate) is_paused: bool,
    /// The server's error, where the user may not look.
    pub(crate) refusal: Option<String>,
}

/// Names of a page.
pub(crate) struct Names {
    pub(crate) keys: Vec<(Vec<u8>, String)>,
    /// SCAN's cursor for the next page.
    pub(crate) next: Option<String>,
    pub(crate) examined: usize,
}

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let query = view.asked.query.clone();
    let (kind, pattern) = (query.text("type"), query.bytes("match"));
    let kind = TYPES
        .iter()
        .map(|(kind, _)| *kind)
        .find(|known| *known == kind);
    let names = find(view, kind, pattern, query.text("cursor"))?;
    let queues = look(view, names.keys)?;
    let known = known_databases(view)?;
    let database = view.database();
    let database_text = database.to_string();
    let link = |kind: &str, cursor: &str| {
        let mut fields = vec![("db", database_text.as_bytes())];
        let optional = [
            ("type", kind.as_bytes()),
            ("match", pattern),
            ("cursor", cursor.as_bytes()),
        ];
        fields.extend(optional.into_iter().filter(|(_, value)| !value.is_empty()));
        url("/queues", &fields)
    };
    let body = html! {
        div.between {
            h1 { "Queues" }
        }
        (databases("/queues", database, &known))
        nav.tabs aria-label="Types" {
            a href=(link("", "")) aria-current=[kind.is_none().then_some("page")] { "All" }
            @for (one, name) in TYPES {
                a href=(link(one, "")) aria-current=[(kind == Some(one)).then_some("page")] { (name) }
            }
        }
        form.filters method="get" action="/queues" role="search" {
            input type="hidden" name="db" value=(database);
            @if let Some(kind) = kind { input type="hidden" name="type" value=(kind); }
            input type="search" name="match" value=(readable(pattern)) placeholder="Name or pattern, such as jobs:*"
                aria-label="Name or pattern";
            button type="submit" { "Search" }
        }
        @if queues.is_empty() {
            p.empty {
                @if names.next.is_some() {
                    "None of the " (count(names.examined as i64)) " names on this page is a queue that fits."
                } @else { "There are no such queues here." }
            }
        } @else { (table(&queues, &database_text)) }
        div.pager {
            @if !query.text("cursor").is_empty() { a.button href=(link(kind.unwrap_or_default(), "")) { "First page" } }
            @if let Some(next) = &names.next { a.button href=(link(kind.unwrap_or_default(), next)) { "Next page" } }
            span {
                (count(queues.len() as i64)) " shown, "
                @if names.next.is_none() { "no more names" } @else { (count(names.examined as i64)) " names examined" }
            }
        }
    };
    Ok(Page {
        title: "Queues".to_owned(),
        place: "queues",
        refresh_s: 5,
        body,
    })
}

/// Finds keys of these types, from a cursor of SCAN on.
pub(crate) fn find(
    view: &mut View<'_>,
    kind: Option<&str>,
    pattern: &[u8],
    cursor: &str,
) -> Result<Names, NoPage> {
    let mut names = Names {
        keys: Vec::new(),
        next: Some(if cursor.is_empty() {
            "0".to_owned()
        } else {
            cursor.to_owned()
        }),
        examined: 0,
    };
    while let Some(cursor) = names.next.take() {
        let mut command = words!["SCAN", cursor, "COUNT", NAMES_PER_SCAN.to_string()];
        if !pattern.is_empty() {
            command.extend(words!["MATCH", pattern_of(pattern)]);
        }
        if let Some(kind) = kind {
            command.extend(words!["TYPE", kind]);
        }
        let reply = view.expect(command)?;
        let (next, found) = cursor_and_names(reply);
        names.next = next;
        names.examined += NAMES_PER_SCAN;
        let types = match kind {
            Some(kind) => vec![kind.to_owned(); found.len()],
            None => {
                let commands: Vec<Words> = found.iter().map(|name| words!["TYPE", name]).collect();
                view.run_all(&commands)?.iter().map(text).collect()
            }
        };
        let fitting = found
            .into_iter()
            .zip(types)
            .filter(|(_, kind)| TYPES.iter().any(|(known, _)| known == kind));
        names.keys.extend(fitting);
        if names.keys.len() >= DASHBOARD_ROWS_MAX || names.examined >= DASHBOARD_NAMES_MAX {
            break;
        }
    }
    Ok(names)
}

/// What a person types is looked for anywhere in names, unless it is a pattern.
pub(crate) fn pattern_of(typed: &[u8]) -> Vec<u8> {
    match typed.iter().any(|byte| b"*?[".contains(byte)) {
        true => typed.to_vec(),
        false => [b"*", typed, b"*"].concat(),
    }
}

/// The cursor of a reply of SCAN, if there is more, and its names.
pub(crate) fn cursor_and_names(reply: Value) -> (Option<String>, Vec<Vec<u8>>) {
    match items(&reply) {
        [cursor, names] => {
            let cursor = Some(text(cursor)).filter(|cursor| cursor != "0");
            (cursor, names.clone().into_strings().unwrap_or_default())
        }
        _ => (None, Vec::new()),
    }
}

/// Asks for the figures of queues, together.
pub(crate) fn look(
    view: &mut View<'_>,
    keys: Vec<(Vec<u8>, String)>,
) -> Result<Vec<Queue>, NoPage> {
    let commands: Vec<Words> = keys
        .iter()
        .map(|(name, kind)| match kind.as_str() {
            "taskqueue" => words!["TASK.INFO", name],
            "pqueue" => words!["PQ.LEN", name],
            "list" => words!["LLEN", name],
            "stream" => words!["XLEN", name],
            "set" => words!["SCARD", name],
            _ => words!["ZCARD", name],
        })
        .collect();
    let replies = view.run_all(&commands)?;
    let streams: Vec<Words> = keys
        .iter()
        .filter(|(_, kind)| kind == "stream")
        .map(|(name, _)| words!["XINFO", "GROUPS", name])
        .collect();
    let mut groups = view.run_all(&streams)?.into_iter();
    let queues = keys.into_iter().zip(replies).map(|((name, kind), reply)| {
        let mut figures = Figures::default();
        match (kind.as_str(), reply.error_text()) {
            // A task queue without tasks has no counters.
            ("taskqueue", Some(line)) if line.contains("no such key") => {
                figures.in_work = Some(0);
            }
            (_, Some(line)) => figures.refusal = Some(line.into_owned()),
            ("taskqueue", None) => {
                let info = Pairs::of(&reply);
                figures.ready = info.number("ready");
                figures.in_work = Some(info.number("leased"));
                figures.delayed = Some(info.number("delayed"));
                figures.dead = Some(info.number("dead"));
                figures.is_paused = info.number("paused") == 1;
            }
            _ => figures.ready = number(&reply),
        }
        if kind == "stream"
            && let Some(groups) = groups.next()
        {
            note_groups(&mut figures, &groups);
        }
        Queue {
            name,
            kind,
            figures,
        }
    });
    Ok(queues.collect())
}

fn note_groups(figures: &mut Figures, groups: &Value) {
    let groups: Vec<Pairs<'_>> = items(groups).iter().map(Pairs::of).collect();
    if groups.is_empty() {
        return;
    }
    figures.in_work = Some(groups.iter().map(|group| group.number("pending")).sum());
    let lag: i64 = groups.iter().map(|group| group.number("lag")).sum();
    figures.notes.push(format!(
        "{}, lag {}",
        counted(groups.len() as i64, "group"),
        count(lag)
    ));
}

fn table(queues: &[Queue], database: &str) -> Markup {
    html! {
        div.table {
            table data-sort="1" {
                thead { tr {
                    th scope="col" { "Name" } th scope="col" { "Type" }
                    th.number scope="col" { "Ready" } th.number scope="col" { "In work" }
                    th.number scope="col" { "Delayed" } th.number scope="col" { "Dead" } th scope="col" { "" }
                } }
                tbody {
                    @for queue in queues { (row(queue, database)) }
                }
            }
        }
    }
}

fn row(queue: &Queue, database: &str) -> Markup {
    let figures = &queue.figures;
    html! {
        tr {
            td.name {
                a href=(url("/queue", &[("db", database.as_bytes()), ("key", &queue.name)])) { (readable(&queue.name)) }
            }
            td.nowrap { (type_name(&queue.kind)) }
            (cell(Some(figures.ready), "")) (cell(figures.in_work, "")) (cell(figures.delayed, ""))
            (cell(figures.dead, "bad-text"))
            td {
                @if figures.is_paused { span.tag.warn { "paused" } " " }
                @for note in &figures.notes { span.soft { (note) } }
                @if let Some(refusal) = &figures.refusal { span.soft { (refusal) } }
            }
        }
    }
}

/// The cell of a number.
pub(crate) fn cell(number: Option<i64>, class: &str) -> Markup {
    html! {
        @match number {
            None => td.number data-value="-1" {},
            Some(0) => td.number.zero data-value="0" { "0" },
            Some(number) => td class={ "number " (class) } data-value=(number) { (count(number)) },
        }
    }
}

/// A type as people say it.
pub(crate) fn type_name(kind: &str) -> &str {
    match kind {
        "taskqueue" => "task queue",
        "pqueue" => "priority queue",
        "zset" => "sorted set",
        other => other,
    }
}

/// The databases that have keys, as far as the user may know.
fn known_databases(view: &mut View<'_>) -> Result<Vec<u32>, NoPage> {
    let Ok(info) = view.info(&["keyspace"])? else {
        return Ok(Vec::new());
    };
    let mut databases: Vec<u32> = info
        .beginning("db")
        .iter()
        .filter_map(|(number, _)| number.parse().ok())
        .chain([view.database()])
        .collect();
    databases.sort_unstable();
    databases.dedup();
    Ok(databases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_looked_for_anywhere() {
        assert_eq!(pattern_of(b"mail"), b"*mail*");
        assert_eq!(pattern_of(b"mail:?"), b"mail:?");
    }
}
