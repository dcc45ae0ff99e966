//! Reading members: ZCARD, ZSCORE, ZMSCORE, ZRANDMEMBER, ZSCAN.

use bytes::Bytes;

use super::members_reply;
use crate::command::arguments::{
    Draw, OUT_OF_RANGE, ScanOptions, argument, cursor, rest, scan_reply,
};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use crate::zset::SortedSet;
use quoin_base::number::format_double;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `ZCARD key` → number of members.
pub(super) async fn zcard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}

/// `ZSCORE key member` → score.
pub(super) async fn zscore(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?
    else {
        return Ok(Reply::Null);
    };
    let score = SortedSet::open(context, &key)
        .score(argument(arguments, 2)?)
        .await?;
    Ok(score.map_or(Reply::Null, Reply::Double))
}

/// `ZMSCORE key member [member …]` → scores.
pub(super) async fn zmscore(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let scores = scores(context, arguments).await?.into_iter();
    let replies = scores.map(|score| score.map_or(Reply::Null, Reply::Double));
    Ok(Reply::Array(replies.collect()))
}

/// The scores of the members of `command key [member …]`.
pub(crate) async fn scores(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Vec<Option<f64>>, CommandError> {
    let members = rest(arguments, 2);
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    match key {
        Some(key) => Ok(SortedSet::open(context, &key).scores(members).await?),
        None => Ok(vec![None; members.len()]),
    }
}

/// `ZRANDMEMBER key [count [WITHSCORES]]` → member, or members if there is a count.
pub(super) async fn zrandmember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(count) = arguments.get(2) else {
        let Some(key) = context.find(name, ValueType::SortedSet).await? else {
            return Ok(Reply::Null);
        };
        let member = SortedSet::open(context, &key).random(1).await?.pop();
        return Ok(member.map_or(Reply::Null, |one| Reply::Bulk(one.member)));
    };
    let (draw, with_scores) = Draw::parse_with(count, rest(arguments, 3), "withscores")?;
    let Some(key) = context.find(name, ValueType::SortedSet).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let members = match draw {
        Draw::Distinct(count) => {
            SortedSet::open(context, &key)
                .random_distinct(count)
                .await?
        }
        Draw::Repeated(count) => SortedSet::open(context, &key).random(count).await?,
        Draw::TooMany if context.has_elements(&key).await? => return Err(OUT_OF_RANGE),
        Draw::TooMany => Vec::new(),
    };
    Ok(members_reply(members, with_scores))
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]` → next cursor, members with scores.
pub(super) async fn zscan(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let cursor = cursor(argument(arguments, 2)?)?;
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?
    else {
        return Ok(scan_reply(0, Vec::new()));
    };
    if !context.has_elements(&key).await? {
        return Ok(scan_reply(0, Vec::new()));
    }
    let options = ScanOptions::parse(rest(arguments, 3))?;
    let set = SortedSet::open(context, &key);
    let whole = set.compact().await?;
    let is_compact = whole.is_some();
    let (next, members) = match whole {
        Some(members) => (0, members),
        None => set.scan(cursor, options.count).await?,
    };
    let mut items = Vec::with_capacity(members.len().saturating_mul(2));
    for one in members {
        if !options.accepts(&one.member) {
            continue;
        }
        let score = if is_compact {
            format_double(one.score)
        } else {
            format_17_digits(one.score)
        };
        items.push(Reply::Bulk(one.member));
        items.push(Reply::bulk(score));
    }
    Ok(scan_reply(next, items))
}

/// A score as Redis's ZSCAN writes those of larger sets: C's `%.17g`. No other command does.
fn format_17_digits(score: f64) -> String {
    const DIGITS: i32 = 17;
    if !score.is_finite() || score == 0.0 {
        return format_double(score);
    }
    let scientific = format!("{score:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return format_double(score);
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{score:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    format!("{}e{sign}{exponent:02}", without_zeros(mantissa))
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_large_sets_have_17_digits() {
        for (score, expected) in [
            (0.1, "0.10000000000000001"),
            (3.0, "3"),
            (-2.5, "-2.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (1.5e300, "1.5000000000000001e+300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(format_17_digits(score), expected);
        }
    }
}
