//! What the pages of all types have in common.

use maud::{Markup, html};

use quoin_base::limits::DASHBOARD_ROWS_MAX;

use crate::json;
use crate::request::url;
use crate::view::{NoPage, View, words};

/// Bytes of the elements of a page, about.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// What a type adds to the page.
pub(super) struct Inside {
    /// Next to the name.
    pub(super) tags: Markup,
    /// Buttons for the whole queue.
    pub(super) actions: Markup,
    pub(super) body: Markup,
}

/// The path of a queue's page.
pub(super) fn path(view: &View<'_>, key: &[u8], more: &[(&str, &[u8])]) -> String {
    let database = view.database().to_string();
    let mut fields = vec![("db", database.as_bytes()), ("key", key)];
    fields.extend_from_slice(more);
    url("/queue", &fields)
}

/// Elements of a page: fewer if they are large.
pub(super) fn rows(view: &mut View<'_>, key: &[u8], length: i64) -> Result<i64, NoPage> {
    at_once(view, key, length, DASHBOARD_ROWS_MAX as i64)
}

/// The number of elements that take about the bytes of a page, up to `elements_max`.
pub(super) fn at_once(
    view: &mut View<'_>,
    key: &[u8],
    length: i64,
    elements_max: i64,
) -> Result<i64, NoPage> {
    let usage = view.run(words!["MEMORY", "USAGE", key, "SAMPLES", "5"])?;
    // A user who may not run this gets as many elements as if they were small.
    let bytes = usage.integer().unwrap_or(0);
    let each = (bytes / length.max(1)).max(1);
    Ok((PAGE_BYTES / each).clamp(1, elements_max))
}

/// An element that opens.
pub(super) struct Element<'e> {
    /// The same after a refresh.
    pub(super) id: String,
    pub(super) index: Markup,
    pub(super) value: &'e [u8],
    pub(super) details: Markup,
    pub(super) actions: Markup,
}

impl Element<'_> {
    pub(super) fn show(&self) -> Markup {
        html! {
            details.element #(self.id) {
                summary { span.index { (self.index) } span.cut-line { (json::line(self.value)) } (self.details) }
                div.inside { (json::block(self.value)) div.row { (self.actions) } }
            }
        }
    }
}

/// The name of an element on a page, from its bytes.
pub(super) fn element_id(place: i64, value: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("e{place}-{:x}", hasher.finish())
}
