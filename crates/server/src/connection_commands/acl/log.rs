//! ACL LOG.

use bytes::Bytes;

use super::unknown_or_wrong_number;
use crate::state::ServerState;
use quoin_acl::log::Entry;
use quoin_data::command::arguments::{integer, is_word, to_usize};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// Entries that are shown by default.
const DEFAULT_COUNT: i64 = 10;

/// `ACL LOG [count | RESET]`.
pub(super) fn log(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let count = match arguments {
        [_, _] => DEFAULT_COUNT,
        [_, _, word] if is_word(word, "reset") => {
            state.access.log.reset();
            return Ok(Reply::OK);
        }
        [_, _, count] => integer(count)?.max(0),
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    let now_ms = state.clock.now_ms();
    let entries = state.access.log.newest(to_usize(count)).into_iter();
    let replies = entries.map(|entry| describe(entry, now_ms));
    Ok(Reply::Array(replies.collect()))
}

fn describe(entry: Entry, now_ms: i64) -> Reply {
    let Entry {
        event,
        count,
        id,
        created_ms,
        updated_ms,
    } = entry;
    let age_s = (now_ms - updated_ms) as f64 / 1000.0;
    let fields = [
        ("count", Reply::Integer(count)),
        ("reason", Reply::bulk(event.reason.name())),
        ("context", Reply::bulk(event.context.name())),
        ("object", Reply::Bulk(event.object)),
        ("username", Reply::Bulk(event.username)),
        ("age-seconds", Reply::Double(age_s)),
        ("client-info", Reply::bulk(event.client)),
        ("entry-id", Reply::Integer(id)),
        ("timestamp-created", Reply::Integer(created_ms)),
        ("timestamp-last-updated", Reply::Integer(updated_ms)),
    ];
    let named = |(name, value)| (Reply::bulk(name), value);
    Reply::Map(fields.into_iter().map(named).collect())
}
