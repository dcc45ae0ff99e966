//! ACL CAT.

use bytes::Bytes;

use super::{refusal, unknown_or_wrong_number};
use crate::connection_commands::errors::lossy_text;
use quoin_data::command::categories;
use quoin_data::command::categories::CATEGORIES;
use quoin_data::error::CommandError;
use quoin_data::table;
use quoin_resp::reply::Reply;

/// Bytes of an unknown category that its error repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// `ACL CAT [category]`.
pub(super) fn categories(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let name = |category: &'static str| category.strip_prefix('@').unwrap_or_default();
    let names = |all: &mut dyn Iterator<Item = &'static str>| {
        Ok(Reply::Array(all.map(Reply::bulk).collect()))
    };
    match arguments {
        [_, _] => names(&mut CATEGORIES.iter().copied().map(name)),
        [_, _, given] => {
            let mut known = CATEGORIES.iter().copied();
            let wanted = known.find(|known| name(known).as_bytes().eq_ignore_ascii_case(given));
            let Some(wanted) = wanted else {
                let shown = given.get(..SHOWN_BYTES_MAX).unwrap_or(given);
                let shown = lossy_text(shown);
                return Err(refusal(format!("ERR Unknown category '{shown}'")));
            };
            let rows = table::all().iter();
            let mut members =
                rows.filter(|row| categories::categories(row).any(|one| one == wanted));
            names(&mut members.by_ref().map(|row| row.name))
        }
        _ => Err(unknown_or_wrong_number(arguments)),
    }
}
