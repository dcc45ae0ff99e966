//! The activity of queues, from QUEUE.TOP.

use maud::{Markup, html};

use quoin_base::limits::COUNTED_QUEUES_MAX;
use quoin_queues::{Activity, Kind, activities};

use crate::figures::{about, count, readable};
use crate::frame::figure;
use crate::request::url;
use crate::view::{NoPage, View};

/// Queues of the overview.
const SHOWN: usize = 10;

/// The most active queues. None if the user may not run QUEUE.TOP.
fn read(view: &mut View<'_>, most: usize) -> Result<Vec<Activity>, NoPage> {
    Ok(activities(view.client(), most)?.unwrap_or_default())
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
                        th.number scope="col" { "In/s" } th.number scope="col" { "Out/s" }
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

fn row(queue: &Activity) -> Markup {
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
            td.nowrap { (queue.kind.type_name()) }
            td.number { (about(queue.in_per_second)) } td.number { (about(queue.out_per_second)) }
            @for number in numbers { td.number.zero[number == 0] { (count(number)) } }
        }
    }
}

/// A queue's incoming and outgoing elements, for its page. Nothing if the server does not count
/// them.
pub(crate) fn of_queue(view: &mut View<'_>, key: &[u8]) -> Result<Markup, NoPage> {
    let database = view.database();
    let queues = read(view, COUNTED_QUEUES_MAX)?;
    let mut queues = queues.into_iter();
    let found = queues.find(|queue| queue.database == database && queue.name == key);
    Ok(html! {
        @if let Some(queue) = found {
            dl.figures {
                (figure("In per second", &about(queue.in_per_second), &format!("{} counted", count(queue.elements_in))))
                (figure("Out per second", &about(queue.out_per_second), &format!("{} counted", count(queue.elements_out))))
                @if queue.kind == Kind::TaskQueue {
                    (figure("Retries", &count(queue.retries), ""))
                    (figure("Deaths", &count(queue.deaths), ""))
                }
                (figure("Waiting clients", &count(queue.waiting), "on this server"))
            }
        }
    })
}
