//! KEYS, SCAN, RANDOMKEY, DBSIZE.

use bytes::Bytes;

use crate::commands::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::ReadContext;
use crate::types::scanning::{ScanQuery, TypeFilter, name_pattern};

/// Keys that SCAN looks at where COUNT does not say.
const SCAN_COUNT_DEFAULT: usize = 10;

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

/// A cursor of SCAN and its like, which Redis reads with `strtoul`: a sign is taken, a minus
/// wraps around, and what follows a zero byte is not seen.
///
/// # Errors
/// `ERR invalid cursor`.
fn cursor(argument: &[u8]) -> Result<u64, CommandError> {
    const INVALID: CommandError = CommandError::text("ERR invalid cursor");
    let text = argument.split(|byte| *byte == 0).next().unwrap_or(argument);
    let (is_negative, digits) = match text {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let number = digits
        .iter()
        .try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .ok_or(INVALID)?;
    Ok(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}
