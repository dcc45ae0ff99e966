//! What the commands that block have in common: what they wait for, and how long.

use std::time::Duration;

use bytes::Bytes;

use super::arguments::argument;
use super::row::Row;
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::number::parse_double;
use crate::types::task_queue::Amounts;

/// How a command waits when it finds nothing (that is, when its code answers null).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// The type of the keys that it waits for.
    pub value_type: ValueType,
    /// Which of its keys it waits for.
    pub keys: WaitKeys,
    /// Where its timeout stands.
    pub timeout: TimeoutPosition,
}

/// Which of its keys a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKeys {
    /// All.
    All,
    /// The first; the other is a destination.
    First,
}

/// Where a timeout stands among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutPosition {
    /// Right behind the command's name.
    First,
    /// At the end.
    Last,
    /// Behind the word BLOCK, in milliseconds; without it the command does not wait.
    Block,
}

impl Waits {
    /// The keys that a command with these arguments waits for.
    pub fn keys(&self, row: &Row, arguments: &[Bytes]) -> Vec<Bytes> {
        let keys = row.key_indexes(arguments).into_iter();
        let keys = keys.filter_map(|at| arguments.get(at)).cloned();
        match self.keys {
            WaitKeys::All => keys.collect(),
            WaitKeys::First => keys.take(1).collect(),
        }
    }

    /// What a command with these arguments can use of what it waits for, where not everything.
    pub fn wants(&self, arguments: &[Bytes]) -> Option<Amounts> {
        match self.value_type {
            ValueType::TaskQueue => super::tasks::having_of(arguments),
            _ => None,
        }
    }

    /// How long a command with these arguments waits, see [`timeout`].
    ///
    /// # Errors
    /// See [`timeout`].
    pub fn timeout(
        &self,
        arguments: &[Bytes],
        now_ms: i64,
    ) -> Result<Option<Duration>, CommandError> {
        let at = match self.timeout {
            TimeoutPosition::First => 1,
            TimeoutPosition::Last => arguments.len().saturating_sub(1),
            TimeoutPosition::Block => return super::tasks::block(arguments),
        };
        timeout(argument(arguments, at)?, now_ms)
    }
}

/// The keys of a command that ends with a timeout, once that has been checked.
///
/// # Errors
/// See [`timeout`].
pub fn keys_before_timeout(arguments: &[Bytes], now_ms: i64) -> Result<&[Bytes], CommandError> {
    let last = arguments.len().saturating_sub(1);
    timeout(argument(arguments, last)?, now_ms)?;
    Ok(arguments.get(1..last).unwrap_or_default())
}

/// A timeout in seconds, with a fraction (Redis: `getTimeoutFromObjectOrReply`); `None` waits for
/// ever. Rounded up to milliseconds, so that a small one never becomes 0, which would mean that.
///
/// # Errors
/// Redis's, for what is no number, negative, or too far in the future to be a time.
pub fn timeout(argument: &[u8], now_ms: i64) -> Result<Option<Duration>, CommandError> {
    const OUT_OF_RANGE: CommandError = CommandError::text("ERR timeout is out of range");
    let seconds = parse_double(argument)
        .or_else(|| beyond_double(argument))
        .ok_or(CommandError::text(
            "ERR timeout is not a float or out of range",
        ))?;
    let timeout_ms = (seconds * 1000.0).ceil();
    if timeout_ms >= i64::MAX as f64 {
        return Err(OUT_OF_RANGE);
    }
    // Below the least integer this stays there.
    let timeout_ms = timeout_ms as i64;
    match u64::try_from(timeout_ms) {
        Err(_) => Err(CommandError::text("ERR timeout is negative")),
        Ok(0) => Ok(None),
        // Redis adds it to the time.
        Ok(_) if timeout_ms > i64::MAX - now_ms => Err(OUT_OF_RANGE),
        Ok(timeout_ms) => Ok(Some(Duration::from_millis(timeout_ms))),
    }
}

/// The infinity of its sign for a decimal number that no `f64` can hold: Redis reads timeouts as
/// `long double`, which can.
fn beyond_double(argument: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(argument).ok()?;
    let is_decimal = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = text.parse::<f64>().ok()?;
    (is_decimal && number.is_infinite()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(text: &str) -> Result<Option<u128>, String> {
        match timeout(text.as_bytes(), 1_700_000_000_000) {
            Ok(timeout) => Ok(timeout.map(|timeout| timeout.as_millis())),
            Err(error) => Err(error.to_line()),
        }
    }

    #[test]
    fn a_small_timeout_never_becomes_for_ever() {
        assert_eq!(milliseconds("0.001"), Ok(Some(1)));
        assert_eq!(milliseconds("0.0000001"), Ok(Some(1)));
        assert_eq!(milliseconds("1.5"), Ok(Some(1500)));
        assert_eq!(milliseconds("0x10"), Ok(Some(16_000)));
    }

    #[test]
    fn zero_waits_for_ever() {
        assert_eq!(milliseconds("0"), Ok(None));
        assert_eq!(milliseconds("-0.0001"), Ok(None));
    }

    #[test]
    fn what_is_no_timeout_is_refused_with_the_texts_of_redis() {
        for (text, line) in [
            ("-1", "ERR timeout is negative"),
            ("-inf", "ERR timeout is negative"),
            ("inf", "ERR timeout is out of range"),
            ("1e40", "ERR timeout is out of range"),
            ("1e400", "ERR timeout is out of range"),
            ("-1e400", "ERR timeout is negative"),
            ("9223372036854775", "ERR timeout is out of range"),
            ("", "ERR timeout is not a float or out of range"),
            ("abc", "ERR timeout is not a float or out of range"),
            ("1x", "ERR timeout is not a float or out of range"),
            ("nan", "ERR timeout is not a float or out of range"),
        ] {
            assert_eq!(milliseconds(text), Err(line.to_owned()), "{text}");
        }
    }
}
