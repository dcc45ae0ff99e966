//! KEYS, SCAN, RANDOMKEY, DBSIZE.

use bytes::Bytes;
use quoin_resp::reply::Reply;

use crate::command::arguments::{
    SCAN_COUNT_DEFAULT, argument, cursor, integer, is_word, rest, to_usize,
};
use crate::error::CommandError;
use crate::keyspace::scanning::{ScanQuery, TypeFilter, name_pattern};
use crate::unit::context::ReadContext;

/// `KEYS pattern` → names.
pub(super) async fn keys(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let pattern = name_pattern(argument(arguments, 1)?);
    let names = context.matching_keys(pattern.as_ref()).await?;
    Ok(names_reply(names))
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]` → cursor, names.
pub(super) async fn scan(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let query = parse_scan(arguments)?;
    let (cursor, names) = context.scan_keys(&query).await?;
    Ok(Reply::Array(vec![
        Reply::bulk(cursor.to_string()),
        names_reply(names),
    ]))
}

/// `RANDOMKEY` → a name.
pub(super) async fn randomkey(
    context: &ReadContext<'_>,
    _arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    Ok(context.random_key().await?.map_or(Reply::Null, Reply::Bulk))
}

/// `DBSIZE` → number of keys.
pub(super) async fn dbsize(
    context: &ReadContext<'_>,
    _arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (keys, _) = context.count_keys().await?;
    Ok(Reply::Integer(keys))
}

fn names_reply(names: Vec<Bytes>) -> Reply {
    Reply::Array(names.into_iter().map(Reply::Bulk).collect())
}

fn parse_scan(arguments: &[Bytes]) -> Result<ScanQuery, CommandError> {
    let mut query = ScanQuery {
        cursor: cursor(argument(arguments, 1)?)?,
        count: SCAN_COUNT_DEFAULT,
        pattern: None,
        types: TypeFilter::Any,
    };
    let mut options = rest(arguments, 2);
    while let Some((option, values)) = options.split_first() {
        let Some((value, behind)) = values.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(option, "count") {
            let count = integer(value)?;
            if count < 1 {
                return Err(CommandError::Syntax);
            }
            query.count = to_usize(count);
        } else if is_word(option, "match") {
            query.pattern = name_pattern(value);
        } else if is_word(option, "type") {
            query.types = TypeFilter::named(value);
        } else {
            return Err(CommandError::Syntax);
        }
        options = behind;
    }
    Ok(query)
}
