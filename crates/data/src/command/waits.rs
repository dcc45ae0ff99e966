//! How blocking commands wait: for what, for how long, and how they are woken.

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

/// Given a command's arguments and the time in milliseconds since the Unix epoch, returns what the command waits for
/// when its handler has replied null. `None` if it does not wait with these arguments. The errors are the same with
/// which the handler refuses the arguments.
pub type WaitFunction = fn(&[Bytes], i64) -> Result<Option<WaitSpec>, CommandError>;

/// Returns the arguments to use while a command waits, if the original ones would change their meaning later; otherwise
/// `None`.
pub type PinFunction =
    for<'c> fn(&'c ReadContext<'c>, &'c [Bytes]) -> Answer<'c, Option<Vec<Bytes>>, CommandError>;

/// What a command waits for.
#[derive(Debug, Clone)]
pub struct WaitSpec {
    /// The keys. Any of them may end the wait.
    pub keys: Vec<Bytes>,
    /// The required type of the keys.
    pub value_type: ValueType,
    /// How long it waits. `None` means forever.
    pub timeout: Option<Duration>,
    /// Restricts which new elements are useful to it. `None` means all.
    pub wants: Option<Arc<dyn Wants>>,
    /// How it is woken.
    pub wake: Wake,
    /// It takes from the first of its keys that has anything, whatever that is, and replies null exactly if all of them
    /// are empty.
    pub takes_first: bool,
    /// Whether it is also woken, and gets an error, when one of its keys is removed or gets another type.
    pub needs_key: bool,
}

/// Which clients are woken when a key that they wait for has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The oldest client, which takes it; the next one if anything is left. If a client without [`WaitSpec::wants`]
    /// finds nothing, neither would those after it.
    One,
    /// All clients: what one has found stays available to the others.
    All,
}

impl WaitSpec {
    /// Waits until one of these keys has something that the command can take.
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

    /// Waits until one of these keys has something, and takes from the first key that does.
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

/// A timeout in seconds, with a fraction (Redis: `getTimeoutFromObjectOrReply`); `None` waits forever. It is rounded up
/// to milliseconds, so that a small timeout never becomes 0, which means forever.
///
/// # Errors
/// Redis's, if it is not a number, is negative, or is too far in the future.
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
    // Values below the smallest integer saturate.
    let timeout_ms = timeout_ms as i64;
    match u64::try_from(timeout_ms) {
        Err(_) => Err(CommandError::text("ERR timeout is negative")),
        Ok(0) => Ok(None),
        // Redis adds the timeout to the current time.
        Ok(_) if timeout_ms > i64::MAX - now_ms => Err(OUT_OF_RANGE),
        Ok(timeout_ms) => Ok(Some(Duration::from_millis(timeout_ms))),
    }
}

/// A timeout in milliseconds, an integer; `None` waits forever.
///
/// # Errors
/// Redis's, if it is not an integer, is negative, or is too far in the future.
pub fn timeout_ms(argument: &[u8], now_ms: i64) -> Result<Option<Duration>, CommandError> {
    let timeout_ms = integer_or(argument, "ERR timeout is not an integer or out of range")?;
    match u64::try_from(timeout_ms) {
        Err(_) => Err(CommandError::text("ERR timeout is negative")),
        Ok(0) => Ok(None),
        // Redis adds the timeout to the current time.
        Ok(_) if timeout_ms > i64::MAX - now_ms => {
            Err(CommandError::text("ERR timeout is out of range"))
        }
        Ok(timeout_ms) => Ok(Some(Duration::from_millis(timeout_ms))),
    }
}

/// Infinity, with the right sign, for a decimal number too large for `f64`. Redis reads timeouts as `long double`,
/// which can hold it.
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
