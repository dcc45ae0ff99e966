//! What HRANDFIELD, SRANDMEMBER and ZRANDMEMBER share: reading how many are drawn.

use bytes::Bytes;

use crate::command::arguments::{is_word, symmetric_integer, to_usize};
use crate::error::CommandError;
use quoin_base::limits::RANDOM_MEMBERS_MAX;

/// More than can be drawn.
pub(crate) const OUT_OF_RANGE: CommandError = CommandError::text("ERR value is out of range");

/// How many are drawn, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Up to so many different ones.
    Distinct(usize),
    /// So many, each drawn from all.
    Repeated(usize),
    /// More of these than [`RANDOM_MEMBERS_MAX`]. Redis would begin to answer and run out of memory.
    TooMany,
}

impl Draw {
    /// What a count asks for: a negative one repetitions.
    fn of_count(count: i64) -> Self {
        let number = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count {
            0.. => Draw::Distinct(to_usize(count)),
            _ if number <= RANDOM_MEMBERS_MAX => Draw::Repeated(number),
            _ => Draw::TooMany,
        }
    }

    /// Reads a count that nothing may follow.
    ///
    /// # Errors
    /// [`symmetric_integer`]'s.
    pub(crate) fn parse(count: &Bytes) -> Result<Self, CommandError> {
        Ok(Self::of_count(symmetric_integer(count)?))
    }

    /// Reads `count [with…]`, and whether the option is there.
    ///
    /// # Errors
    /// `Syntax` for other options; [`symmetric_integer`]'s.
    pub(crate) fn parse_with(
        count: &Bytes,
        options: &[Bytes],
        with: &str,
    ) -> Result<(Self, bool), CommandError> {
        let count = symmetric_integer(count)?;
        let is_with = match options {
            [] => false,
            [option] if is_word(option, with) => true,
            _ => return Err(CommandError::Syntax),
        };
        if is_with && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
            return Err(OUT_OF_RANGE);
        }
        Ok((Self::of_count(count), is_with))
    }
}
