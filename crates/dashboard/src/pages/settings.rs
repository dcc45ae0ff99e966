//! Settings, as CONFIG GET shows them.

use maud::html;

use quoin_config::is_secret;

use crate::frame::refusal;
use crate::view::{NoPage, Page, View, items, text, words};

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let reply = view.run(words!["CONFIG", "GET", "*"])?;
    let searched = view.asked.query.text("match").to_lowercase();
    let body = match reply.error_text() {
        Some(line) => refusal("Settings", &line),
        None => {
            let pairs = items(&reply).chunks_exact(2).filter_map(|pair| match pair {
                [name, value] => Some((text(name), text(value))),
                _ => None,
            });
            let mut settings: Vec<_> = pairs.filter(|(name, _)| name.contains(&searched)).collect();
            settings.sort_unstable();
            html! {
                div.between { h1 { "Settings" } span.soft { "Change them by CONFIG SET or in the settings file" } }
                form.filters method="get" action="/settings" role="search" {
                    input type="search" name="match" value=(searched) placeholder="Name" aria-label="Name";
                    button type="submit" { "Search" }
                }
                div.table { table data-sort="1" {
                    thead { tr { th scope="col" { "Setting" } th scope="col" { "Value" } } }
                    tbody { @for (name, value) in &settings { tr {
                        td.mono.nowrap { (name) }
                        td.mono.name {
                            @if is_secret(name.as_bytes()) && !value.is_empty() { span.soft { "set, hidden" } }
                            @else { (value) }
                        }
                    } } }
                } }
            }
        }
    };
    Ok(Page {
        title: "Settings".to_owned(),
        place: "settings",
        refresh_s: 0,
        body,
    })
}
