//! The page of a queue: its content, and buttons to control it.

mod actions;
mod inside;
mod list;
mod other;
mod schedules;
mod sorted;
mod stream;
mod task;

use maud::html;

pub(crate) use actions::act;

use crate::activity;
use crate::figures::readable;
use crate::frame::Action;
use crate::pages::queues::type_name;
use crate::request::url;
use crate::view::{NoPage, Page, View, text, words};

use inside::path;

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let key = view.key();
    let kind = text(&view.expect(words!["TYPE", key])?);
    let inside = match kind.as_str() {
        "taskqueue" => task::body(view, &key)?,
        "list" => list::body(view, &key)?,
        "pqueue" | "zset" => sorted::body(view, &key, &kind)?,
        "stream" => stream::body(view, &key)?,
        "none" => {
            return Err(NoPage::Missing(format!(
                "There is no key {}.",
                readable(&key)
            )));
        }
        _ => other::body(view, &key, &kind)?,
    };
    let flow = activity::of_queue(view, &key)?;
    let may_delete = view.may(&[b"UNLINK", &key]);
    let here = path(view, &key, &[]);
    let question = format!("Delete {} and everything in it?", readable(&key));
    let body = html! {
        div.between {
            h1 { a href=(url("/queues", &[("db", view.database().to_string().as_bytes())])) { "Queues" }
                 " / " (readable(&key)) " " span.tag { (type_name(&kind)) } (inside.tags) }
            div.actions {
                (inside.actions)
                @if may_delete {
                    (Action { id: "delete", label: "Delete", question: Some(&question), path: &here,
                        fields: &[("action", "delete")], is_dangerous: true }.show(view.session))
                }
            }
        }
        (flow)
        (inside.body)
    };
    Ok(Page {
        title: readable(&key).into_owned(),
        place: "queues",
        refresh_s: 5,
        body,
    })
}
