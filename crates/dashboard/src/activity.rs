//! The activity of queues, from QUEUE.TOP.

use maud::{Markup, html};

use quoin_base::limits::COUNTED_QUEUES_MAX;
use quoin_resp::wire::reply_reader::Value;

use crate::figures::{about, count, readable};
use crate::frame::figure;
use crate::request::url;
use crate::view::{NoPage, Pairs, View, items, text, words};

/// Queues of the overview.
const SHOWN: usize = 10;

/// What the server counted of a queue.
struct Active {
    database: i64,
    name: Vec<u8>,
    kind: String,
    elements_in: i64,
    elements_out: i64,
    retries: i64,
    deaths: i64,
    in_per_second: f64,
    out_per_second: f64,
    waiting: i64,
}

impl Active {
    fn of(reply: &Value) -> Self {
        let fields = Pairs::of(reply);
        let rate = |name| fields.text(name).parse().unwrap_or(0.0);
        Self {
            database: fields.number("db"),
            name: fields
                .get("key")
                .and_then(Value::bytes)
                .unwrap_or_default()
                .to_vec(),
            kind: fields.get("type").map(text).unwrap_or_default(),
            elements_in: fields.number("in"),
            elements_out: fields.number("out"),
            retries: fields.number("retries"),
            deaths: fields.number("deaths"),
            in_per_second: rate("in-per-second"),
            out_per_second: rate("out-per-second"),
            waiting: fields.number("waiting"),
        }
    }
}

/// The most active queues; none if the user may not run QUEUE.TOP.
fn read(view: &mut View<'_>, most: usize) -> Result<Vec<Active>, NoPage> {
    let reply = view.run(words!["QUEUE.TOP", "COUNT", most.to_string()])?;
    Ok(items(&reply).iter().map(Active::of).collect())
}

/// The most active queues, for the overview.
pub(crate) fn most_active(view: &mut View<'_>) -> Result<Markup, NoPage> {
    let queues = read(view, SHOWN)?;
    Ok(html! {
        @if !queues.is_empty() {
            h2 { "Most active queues" }
            div.table {
                table {
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "Type" }
                        th.number scope="col" { "In a second" } th.number scope="col" { "Out a second" }
                        th.number scope="col" { "In" } th.number scope="col" { "Out" }
                        th.number scope="col" { "Retries" } th.number scope="col" { "Deaths" }
                        th.number scope="col" { "Waiting" }
                    } }
                    tbody { @for queue in &queues { (row(queue)) } }
                }
            }
        }
    })
}

fn row(queue: &Active) -> Markup {
    let database = queue.database.to_string();
    let numbers = [
        queue.elements_in,
        queue.elements_out,
        queue.retries,
        queue.deaths,
        queue.waiting,
    ];
    html! {
        tr {
            td.name {
                a href=(url("/queue", &[("db", database.as_bytes()), ("key", &queue.name)])) { (readable(&queue.name)) }
                @if queue.database != 0 { " " span.soft { "database " (database) } }
            }
            td.nowrap { (queue.kind) }
            td.number { (about(queue.in_per_second)) } td.number { (about(queue.out_per_second)) }
            @for number in numbers { td.number.zero[number == 0] { (count(number)) } }
        }
    }
}

/// What goes into a queue and out of it, for its page. Nothing if the server does not count it.
pub(crate) fn of_queue(view: &mut View<'_>, key: &[u8]) -> Result<Markup, NoPage> {
    let database = i64::from(view.database());
    let queues = read(view, COUNTED_QUEUES_MAX)?;
    let mut queues = queues.into_iter();
    let found = queues.find(|queue| queue.database == database && queue.name == key);
    Ok(html! {
        @if let Some(queue) = found {
            dl.figures {
                (figure("In a second", &about(queue.in_per_second), &format!("{} counted", count(queue.elements_in))))
                (figure("Out a second", &about(queue.out_per_second), &format!("{} counted", count(queue.elements_out))))
                @if queue.kind == "taskqueue" {
                    (figure("Retries", &count(queue.retries), ""))
                    (figure("Deaths", &count(queue.deaths), ""))
                }
                (figure("Waiting clients", &count(queue.waiting), "of this server"))
            }
        }
    })
}
