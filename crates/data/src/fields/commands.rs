//! Commands that hashes and sets share.

use bytes::Bytes;

use crate::command::arguments::{ScanOptions, argument, cursor, rest, scan_reply};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::keyspace::handle::Value;
use crate::prefetch::Prefetch;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::Entry;
use quoin_resp::reply::Reply;

use super::{FieldsMut, FieldsType};

/// HLEN and SCARD: `command key` → number of fields or members.
pub(crate) async fn length<T: FieldsType>(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 1)?, T::VALUE_TYPE).await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}

/// HDEL and SREM: `command key name [name …]` → number of removed fields or members.
pub(crate) async fn remove<T: FieldsType>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    event: (EventClasses, &'static str),
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(mut key) = context.find(name, T::VALUE_TYPE).await? else {
        return Ok(Reply::Integer(0));
    };
    let mut fields = FieldsMut::<T>::open(context, &mut key);
    let removed = fields.remove(rest(arguments, 2)).await?;
    if removed > 0 {
        context.notify(event.0, event.1, name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// HSCAN and SSCAN: `command key cursor [options]` → next cursor, the items of each entry.
pub(crate) async fn scan<T: FieldsType, I: IntoIterator<Item = Reply>>(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    parse: fn(&[Bytes]) -> Result<ScanOptions, CommandError>,
    items: impl Fn(Entry, &ScanOptions) -> I,
) -> Result<Reply, CommandError> {
    let cursor = cursor(argument(arguments, 2)?)?;
    let Some(key) = context.find(argument(arguments, 1)?, T::VALUE_TYPE).await? else {
        return Ok(scan_reply(0, Vec::new()));
    };
    if !context.has_elements(&key).await? {
        return Ok(scan_reply(0, Vec::new()));
    }
    let options = parse(rest(arguments, 3))?;
    let value = Value::<T>::open(context, &key);
    let (next, entries) = value.scan(cursor, options.count).await?;
    let accepted = entries.into_iter().filter(|one| options.accepts(&one.name));
    let items = accepted.flat_map(|one| items(one, &options));
    Ok(scan_reply(next, items.collect()))
}

/// The plan of commands whose arguments after the key are fields or members.
pub(crate) fn plan_all<T: FieldsType>(arguments: &[Bytes]) -> Option<Plan> {
    let names = rest(arguments, 2);
    Some(Plan::Read(vec![Prefetch::members(T::VALUE_TYPE, names)]))
}

/// The plan of commands that look up the field after the key.
pub(crate) fn plan_first<T: FieldsType>(arguments: &[Bytes]) -> Option<Plan> {
    plan_all::<T>(arguments.get(..3)?)
}
