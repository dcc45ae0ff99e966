//! HSCAN.

use bytes::Bytes;

use crate::command::arguments::{argument, cursor, rest};
use crate::command::member_scan::{ScanOptions, scan_reply};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `HSCAN key cursor [MATCH pattern] [COUNT count]` → next cursor, fields with values.
pub(super) async fn hscan(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let cursor = cursor(argument(arguments, 2)?)?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Hash).await? else {
        return Ok(scan_reply(0, Vec::new()));
    };
    if !context.has_elements(&key).await? {
        return Ok(scan_reply(0, Vec::new()));
    }
    let options = ScanOptions::parse(rest(arguments, 3))?;
    let (next, fields) = context.fields_scan(&key, cursor, options.count).await?;
    let accepted = fields.into_iter().filter(|one| options.accepts(&one.name));
    let items = accepted.flat_map(|one| [Reply::Bulk(one.name), Reply::Bulk(one.value)]);
    Ok(scan_reply(next, items.collect()))
}
