//! The elements of a queue, a page at a time.

use std::ops::Range;

use quoin_client::{Client, ClientError};
use quoin_resp::wire::reply_reader::Value;

use crate::kind::State;
use crate::reply::{Words, expect, items, text};

/// Scores in this range are read as times in seconds, which frameworks use for delays (2001 to
/// 2286).
const SECONDS: Range<f64> = 1e9..1e10;
/// Scores in this range are read as times in milliseconds.
const MILLISECONDS: Range<f64> = 1e12..1e13;

/// A page, and where the next one begins, if there is one.
#[derive(Debug)]
pub struct Page<T> {
    /// The elements on it.
    pub rows: Vec<T>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Tasks of a state without their payloads, each as the pairs of TASK.LIST. An empty cursor is the beginning.
///
/// # Errors
/// The connection's, and the server's.
pub fn tasks(
    client: &mut Client,
    key: &[u8],
    state: State,
    cursor: &str,
    count: i64,
) -> Result<Page<Value>, ClientError> {
    let list = words!["TASK.LIST", key, state.name(), "COUNT", count.to_string()];
    let (next, tasks) = page_by_cursor(client, list, cursor)?;
    Ok(Page { rows: tasks, next })
}

/// Values of a priority queue with their priorities, lowest first. An empty cursor is the beginning.
///
/// # Errors
/// The connection's, and the server's.
pub fn by_cursor(
    client: &mut Client,
    key: &[u8],
    cursor: &str,
    count: i64,
) -> Result<Page<(Vec<u8>, String)>, ClientError> {
    let list = words!["PQ.LIST", key, "COUNT", count.to_string()];
    let (next, values) = page_by_cursor(client, list, cursor)?;
    Ok(Page {
        rows: scored(&values),
        next,
    })
}

/// Members of a sorted set of this length with their scores, lowest first, from a rank on. An empty rank is 0.
///
/// # Errors
/// The connection's, and the server's.
pub fn by_rank(
    client: &mut Client,
    key: &[u8],
    from: &str,
    count: i64,
    length: i64,
) -> Result<Page<(Vec<u8>, String)>, ClientError> {
    let from: i64 = from.parse().unwrap_or(0).max(0);
    let after = from.saturating_add(count);
    let (first, last) = (from.to_string(), (after - 1).to_string());
    let reply = expect(client, &words!["ZRANGE", key, first, last, "WITHSCORES"])?;
    Ok(Page {
        rows: scored(items(&reply)),
        next: (after < length).then(|| after.to_string()),
    })
}

fn page_by_cursor(
    client: &mut Client,
    mut list: Words,
    cursor: &str,
) -> Result<(Option<String>, Vec<Value>), ClientError> {
    if !cursor.is_empty() {
        list.extend(words!["CURSOR", cursor]);
    }
    let reply = expect(client, &list)?;
    Ok(match items(&reply) {
        [next, rows] => (
            Some(text(next)).filter(|next| next != "0"),
            items(rows).to_vec(),
        ),
        _ => (None, Vec::new()),
    })
}

/// Values and scores that alternate, or that are pairs.
fn scored(replies: &[Value]) -> Vec<(Vec<u8>, String)> {
    let pair =
        |value: &Value, score: &Value| (value.bytes().unwrap_or_default().to_vec(), text(score));
    let nested = replies.iter().filter_map(|reply| match items(reply) {
        [value, score] => Some(pair(value, score)),
        _ => None,
    });
    let nested: Vec<_> = nested.collect();
    if !nested.is_empty() {
        return nested;
    }
    replies
        .chunks_exact(2)
        .filter_map(|two| match two {
            [value, score] => Some(pair(value, score)),
            _ => None,
        })
        .collect()
}

/// The Unix time in milliseconds that a score is probably meant as.
pub fn time_of_score(score: &str) -> Option<i64> {
    let score: f64 = score.parse().ok()?;
    match score {
        score if SECONDS.contains(&score) => Some((score * 1_000.0) as i64),
        score if MILLISECONDS.contains(&score) => Some(score as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_of_this_century_is_a_time() {
        for (score, expected) in [
            ("1700000000", Some(1_700_000_000_000)),
            ("1700000000.5", Some(1_700_000_000_500)),
            ("1700000000123", Some(1_700_000_000_123)),
            ("5", None),
            ("inf", None),
            ("", None),
        ] {
            assert_eq!(time_of_score(score), expected, "{score}");
        }
    }

    #[test]
    fn values_with_scores_may_alternate_or_be_pairs() {
        let blob = |text: &str| Value::Blob(b'$', Some(text.into()));
        let flat = [blob("a"), blob("1"), blob("b"), blob("2")];
        let expected = [
            (b"a".to_vec(), "1".to_owned()),
            (b"b".to_vec(), "2".to_owned()),
        ];
        assert_eq!(scored(&flat), expected);
        let nested = flat
            .chunks(2)
            .map(|two| Value::Aggregate(b'*', Some(two.to_vec())));
        assert_eq!(scored(&nested.collect::<Vec<_>>()), expected);
    }
}
