//! The list of queues: keys of types that hold work, with a bounded number of names per page.

use maud::{Markup, html};

use quoin_base::limits::{DASHBOARD_NAMES_MAX, DASHBOARD_ROWS_MAX};
use quoin_queues::{Bounds, Kind, Queue, Wanted, find, pattern_of, read_queues};

use crate::figures::{count, counted, readable};
use crate::frame::databases;
use crate::request::url;
use crate::view::{NoPage, Page, View};

/// The limits of what a page examines.
const BOUNDS: Bounds = Bounds {
    names_at_once: 100,
    names_max: DASHBOARD_NAMES_MAX,
    queues_max: DASHBOARD_ROWS_MAX,
};
/// The tabs of the types.
const TABS: [(Kind, &str); 5] = [
    (Kind::TaskQueue, "Task queues"),
    (Kind::PriorityQueue, "Priority queues"),
    (Kind::List, "Lists"),
    (Kind::Stream, "Streams"),
    (Kind::SortedSet, "Sorted sets"),
];

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let query = view.asked.query.clone();
    let pattern = query.bytes("match");
    let wanted = Wanted {
        kind: Kind::of_type(query.text("type")),
        pattern: pattern_of(pattern),
    };
    let kind = wanted.kind.map(Kind::type_name);
    let cursor = match query.text("cursor") {
        "" => "0",
        cursor => cursor,
    };
    let names = find(view.client(), &wanted, cursor, BOUNDS)?;
    let queues = read_queues(view.client(), names.keys)?;
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
            @for (one, name) in TABS {
                a href=(link(one.type_name(), "")) aria-current=[(wanted.kind == Some(one)).then_some("page")] { (name) }
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
                    "None of the " (count(names.examined as i64)) " names on this page is a matching queue."
                } @else { "No matching queues." }
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

fn table(queues: &[Queue], database: &str) -> Markup {
    html! {
        div.table {
            table data-sort="1" {
                thead { tr {
                    th scope="col" { "Name" } th scope="col" { "Type" }
                    th.number scope="col" { "Ready" } th.number scope="col" { "In progress" }
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
            td.nowrap { (queue.kind.name()) }
            (cell(figures.ready, "")) (cell(figures.in_work, "")) (cell(figures.delayed, ""))
            (cell(figures.dead, "bad-text"))
            td {
                @if figures.is_paused { span.tag.warn { "paused" } " " }
                @if let Some(groups) = figures.groups {
                    span.soft { (counted(groups.count, "group")) ", lag " (count(groups.lag)) }
                }
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
    match Kind::of_type(kind) {
        Some(kind) => kind.name(),
        None => kind,
    }
}

/// The databases that have keys, if the user may know them.
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
