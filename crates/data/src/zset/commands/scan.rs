//! ZSCAN.

use bytes::Bytes;

use crate::command::arguments::{argument, cursor, rest};
use crate::command::member_scan::{ScanOptions, scan_reply};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use quoin_base::number::format_double;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

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
    let whole = context.compact_members(&key).await?;
    let is_compact = whole.is_some();
    let (next, members) = match whole {
        Some(members) => (0, members),
        None => context.zset_scan(&key, cursor, options.count).await?,
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

/// A score as Redis's ZSCAN writes those of larger sets: C's `%.17g`, other than all other
/// commands.
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
