//! LLEN, LINDEX, LRANGE, LPOS, LSET, LINSERT, LREM, LTRIM: commands on any element of a list.

use bytes::Bytes;

use crate::command::arguments::{
    argument, integer, integer_at_least, is_word, rest, symmetric_integer, to_usize,
};
use crate::error::CommandError;
use crate::list::{End, List, ListMut, PositionQuery, Side};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::redis_version::RedisVersion;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `LLEN key` → length.
pub(super) async fn llen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}

/// `LINDEX key index` → element.
pub(super) async fn lindex(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?
    else {
        return Ok(Reply::Null);
    };
    // Redis reads the index only if the list exists.
    let index = match integer(argument(arguments, 2)?) {
        Err(_) if !context.has_elements(&key).await? => return Ok(Reply::Null),
        index => index?,
    };
    let value = List::open(context, &key).index(index).await?;
    Ok(value.map_or(Reply::Null, Reply::Bulk))
}

/// `LRANGE key start stop` → elements.
pub(super) async fn lrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let start = integer(argument(arguments, 2)?)?;
    let stop = integer(argument(arguments, 3)?)?;
    let key = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?;
    let values = match key {
        Some(key) => List::open(context, &key).range(start, stop).await?,
        None => Vec::new(),
    };
    Ok(Reply::Array(values.into_iter().map(Reply::Bulk).collect()))
}

/// `LSET key index element` → OK.
pub(super) async fn lset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?
    else {
        return Err(CommandError::NoSuchKey);
    };
    if !context.has_elements(&key).await? {
        return Err(CommandError::NoSuchKey);
    }
    let index = integer(argument(arguments, 2)?)?;
    let list = ListMut::open(context, &key);
    if list.set(index, argument(arguments, 3)?).await? {
        context.notify(EventClasses::LIST, "lset", argument(arguments, 1)?);
        Ok(Reply::OK)
    } else {
        Err(CommandError::IndexOutOfRange)
    }
}

/// `LINSERT key BEFORE|AFTER pivot element` → length, −1 without the pivot, 0 without the list.
pub(super) async fn linsert(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let word = argument(arguments, 2)?;
    let side = if is_word(word, "before") {
        Side::Before
    } else if is_word(word, "after") {
        Side::After
    } else {
        return Err(CommandError::Syntax);
    };
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?
    else {
        return Ok(Reply::Integer(0));
    };
    let pivot = argument(arguments, 3)?;
    let value = argument(arguments, 4)?;
    let list = ListMut::open(context, &key);
    match list.insert(side, pivot, value).await? {
        Some(length) => {
            context.notify(EventClasses::LIST, "linsert", argument(arguments, 1)?);
            Ok(Reply::Integer(length))
        }
        None if context.has_elements(&key).await? => Ok(Reply::Integer(-1)),
        None => Ok(Reply::Integer(0)),
    }
}

/// Redis 8 refuses the count whose negation does not fit.
const COUNT_TOO_LOW: CommandError = CommandError::text(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

/// `LREM key count element` → the number of removed elements.
pub(super) async fn lrem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let count = integer(argument(arguments, 2)?)?;
    if count == i64::MIN && context.environment.reported_version >= RedisVersion::V8_4 {
        return Err(COUNT_TOO_LOW);
    }
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?
    else {
        return Ok(Reply::Integer(0));
    };
    let from = if count < 0 { End::Right } else { End::Left };
    let limit = (count != 0).then(|| to_usize(count.saturating_abs()));
    let list = ListMut::open(context, &key);
    let removed = list.remove(argument(arguments, 3)?, limit, from).await?;
    if removed > 0 {
        context.notify(EventClasses::LIST, "lrem", argument(arguments, 1)?);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// `LTRIM key start stop` → OK.
pub(super) async fn ltrim(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let start = integer(argument(arguments, 2)?)?;
    let stop = integer(argument(arguments, 3)?)?;
    let name = argument(arguments, 1)?;
    if let Some(key) = context.find(name, ValueType::List).await?
        && context.has_elements(&key).await?
    {
        ListMut::open(context, &key).trim(start, stop).await?;
        context.notify(EventClasses::LIST, "ltrim", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::OK)
}

/// `LPOS key element [RANK rank] [COUNT number] [MAXLEN length]` → index, or with COUNT an array of
/// indexes.
pub(super) async fn lpos(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let mut rank = 1;
    let mut count = None;
    let mut maxlen = 0;
    let mut options = rest(arguments, 3);
    while let Some((option, values)) = options.split_first() {
        let Some((value, after)) = values.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(option, "rank") {
            rank = symmetric_integer(value)?;
            if rank == 0 {
                return Err(CommandError::text(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                     second ... or use negative to start from the end of the list",
                ));
            }
        } else if is_word(option, "count") {
            count = Some(integer_at_least(value, 0, "ERR COUNT can't be negative")?);
        } else if is_word(option, "maxlen") {
            maxlen = integer_at_least(value, 0, "ERR MAXLEN can't be negative")?;
        } else {
            return Err(CommandError::Syntax);
        }
        options = after;
    }
    let key = context
        .find(argument(arguments, 1)?, ValueType::List)
        .await?;
    let found = match key {
        None => Vec::new(),
        Some(key) => {
            let limit = to_usize(count.unwrap_or(1));
            let query = PositionQuery {
                element: argument(arguments, 2)?.clone(),
                skip_matches: rank.unsigned_abs() - 1,
                reverse: rank < 0,
                count: (limit != 0).then_some(limit),
                maxlen: (maxlen != 0).then(|| to_usize(maxlen)),
            };
            List::open(context, &key).positions(&query).await?
        }
    };
    Ok(match count {
        Some(_) => Reply::Array(found.into_iter().map(Reply::Integer).collect()),
        None => found.first().copied().map_or(Reply::Null, Reply::Integer),
    })
}
