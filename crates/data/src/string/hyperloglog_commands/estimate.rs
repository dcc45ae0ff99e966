//! PFADD, PFCOUNT, PFMERGE.

use bytes::Bytes;

use super::find;
use crate::command::arguments::{argument, rest};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::hyperloglog::{Encoding, HyperLogLog, Registers};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_resp::reply::Reply;

/// `PFADD key [element …]` → 1 where that makes the key or changes what it estimates.
pub(super) async fn pfadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let (old, mut all) = match find(context, name).await? {
        Some((key, found)) => (Some(key), found),
        None => (None, HyperLogLog::empty()),
    };
    let sparse_bytes_max = context.environment.hll_sparse_bytes_max();
    let mut changes = old.is_none();
    for element in rest(arguments, 2) {
        changes |= all.add(element, sparse_bytes_max)?;
    }
    if changes {
        all.mark_stale();
        put(context, name, old, all).await?;
        context.notify(EventClasses::STRING, "pfadd", name);
    }
    Ok(Reply::Integer(changes.into()))
}

/// `PFCOUNT key [key …]` → how many different elements were added to them together. That of one key
/// is kept in its value, as in Redis.
pub(super) async fn pfcount(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let names = rest(arguments, 1);
    if let [name] = names {
        let Some((mut key, mut one)) = find(context, name).await? else {
            return Ok(Reply::Integer(0));
        };
        if let Some(count) = one.cached_count() {
            return Ok(reply(count));
        }
        let count = one.count()?;
        context.string_replace(&mut key, &one.into_bytes()).await?;
        return Ok(reply(count));
    }
    let mut registers = Registers::default();
    for name in names {
        if let Some((_, one)) = find(context, name).await? {
            registers.merge(&one)?;
        }
    }
    Ok(reply(registers.count()))
}

/// `PFMERGE destination [source …]` → `OK`.
pub(super) async fn pfmerge(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let mut registers = Registers::default();
    let mut is_dense = false;
    for source in rest(arguments, 1) {
        if let Some((_, one)) = find(context, source).await? {
            is_dense |= one.encoding() == Encoding::Dense;
            registers.merge(&one)?;
        }
    }
    let (old, mut merged) = match find(context, name).await? {
        Some((key, found)) => (Some(key), found),
        None => (None, HyperLogLog::empty()),
    };
    if is_dense {
        merged.make_dense()?;
    }
    merged.raise_to(&registers, context.environment.hll_sparse_bytes_max());
    merged.mark_stale();
    put(context, name, old, merged).await?;
    context.notify(EventClasses::STRING, "pfadd", name);
    Ok(Reply::OK)
}

/// Puts it into a key, in place of what the key held.
async fn put(
    context: &WriteContext<'_>,
    name: &Bytes,
    old: Option<OpenKey>,
    all: HyperLogLog,
) -> Result<(), CommandError> {
    let value = all.into_bytes();
    match old {
        Some(mut key) => context.string_replace(&mut key, &value).await?,
        None => {
            context.string_set(name, &value, None).await?;
        }
    }
    Ok(())
}

fn reply(count: u64) -> Reply {
    Reply::Integer(count.cast_signed())
}
