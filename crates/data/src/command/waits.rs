//! How commands that block wait: for what, for how long, and how they are woken.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::command::arguments::{argument, integer_or};
use crate::error::CommandError;
use crate::keyspace::kind::Answer;
use crate::unit::context::ReadContext;
use crate::unit::signals::Wants;
use quoin_base::number::parse_double;
use quoin_layout::ValueType;

/// Tells from a command's arguments, and the time in milliseconds since the Unix epoch, what it waits
/// for when it has found nothing, that is when its code has answered null. `None` where these
/// arguments do not have it wait. The errors are those with which its code refuses the arguments.
pub type WaitFunction = fn(&[Bytes], i64) -> Result<Option<WaitSpec>, CommandError>;

/// The arguments of a command that begins to wait, where they mean something else later; `None` where
/// they do not.
pub type PinFunction =
    for<'c> fn(&'c ReadContext<'c>, &'c [Bytes]) -> Answer<'c, Option<Vec<Bytes>>, CommandError>;

/// What a command waits for.
#[derive(Debug, Clone)]
pub struct WaitSpec {
    /// The keys, any of which may have something for it.
    pub keys: Vec<Bytes>,
    /// The type that they must be of.
    pub value_type: ValueType,
    /// How long it waits. `None` means forever.
    pub timeout: Option<Duration>,
    /// What it can use of what becomes ready in its keys, if not everything.
    pub wants: Option<Arc<dyn Wants>>,
    /// How it is woken.
    pub wake: Wake,
    /// It takes from the first of its keys that has something, whatever that is, and answers null
    /// exactly if all of them are empty.
    pub takes_first: bool,
    /// Whether it is woken also when one of its keys goes or comes to hold another type, and so gets
    /// an error.
    pub needs_key: bool,
}

/// Which clients are woken when there is something in a key that they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The oldest, which takes it; the next if anything is left. Where one without
    /// [`WaitSpec::wants`] finds nothing, those after it would not either.
    One,
    /// All: what one has found is there for the others too.
    All,
}

impl WaitSpec {
    /// Waits until there is something in one of these keys that it can take.
    pub fn to_take(value_type: ValueType, keys: &[Bytes], timeout: Option<Duration>) -> Self {
        Self {
            keys: keys.to_vec(),
            value_type,
            timeout,
            wants: None,
            wake: Wake::One,
            takes_first: false,
            needs_key: false,
        }
    }

    /// Waits until there is something in one of these keys, and takes it from the first of them that
    /// has something.
    pub fn to_take_first(value_type: ValueType, keys: &[Bytes], timeout: Option<Duration>) -> Self {
        Self {
            takes_first: true,
            ..Self::to_take(value_type, keys, timeout)
        }
    }
}

/// The arguments `key [key …] timeout` of a command.
///
/// # Errors
/// See [`timeout`].
pub fn keys_and_timeout(
    arguments: &[Bytes],
    now_ms: i64,
) -> Result<(&[Bytes], Option<Duration>), CommandError> {
    let last = arguments.len().saturating_sub(1);
    let timeout = timeout(argument(arguments, last)?, now_ms)?;
    Ok((arguments.get(1..last).unwrap_or_default(), timeout))
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

/// A timeout in milliseconds, an integer; `None` waits without an end.
///
/// # Errors
/// Redis's, for what is no integer, negative, or too far in the future to be a time.
pub fn timeout_ms(argument: &[u8], now_ms: i64) -> Result<Option<Duration>, CommandError> {
    let timeout_ms = integer_or(argument, "ERR timeout is not an integer or out of range")?;
    match u64::try_from(timeout_ms) {
        Err(_) => Err(CommandError::text("ERR timeout is negative")),
        Ok(0) => Ok(None),
        // Redis adds it to the time.
        Ok(_) if timeout_ms > i64::MAX - now_ms => {
            Err(CommandError::text("ERR timeout is out of range"))
        }
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
