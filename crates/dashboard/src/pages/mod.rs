//! The pages, and the actions of their buttons.

mod clients;
mod frameworks;
mod overview;
mod queue;
mod queues;
mod servers;
mod settings;
mod slow;

use hyper::Method;
use maud::Markup;

use crate::view::{Answer, NoPage, Page, View};

/// The page of a path, or the action of a form.
pub(crate) fn answer(view: &mut View<'_>) -> Result<Answer, NoPage> {
    let is_post = view.asked.method == Method::POST;
    match (view.asked.path.as_str(), is_post) {
        ("/", false) => overview::page(view).map(Answer::Page),
        ("/queues", false) => queues::page(view).map(Answer::Page),
        ("/queue", false) => queue::page(view).map(Answer::Page),
        ("/queue", true) => queue::act(view),
        ("/frameworks", false) => frameworks::page(view).map(Answer::Page),
        ("/clients", false) => clients::page(view).map(Answer::Page),
        ("/clients", true) => clients::act(view),
        ("/slow", false) => slow::page(view).map(Answer::Page),
        ("/slow", true) => slow::act(view),
        ("/servers", false) => servers::page(view).map(Answer::Page),
        ("/settings", false) => settings::page(view).map(Answer::Page),
        _ => Err(NoPage::Missing("There is no such page.".to_owned())),
    }
}

/// A page that is not in the navigation.
pub(crate) fn without_place(title: &str, body: Markup) -> Page {
    Page {
        title: title.to_owned(),
        place: "",
        refresh_s: 0,
        body,
    }
}
