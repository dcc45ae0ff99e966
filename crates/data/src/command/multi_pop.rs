//! The arguments of LMPOP and ZMPOP, which their blocking forms have after a timeout.

use bytes::Bytes;

use crate::command::arguments::{argument, integer_at_least, is_word, rest, to_usize};
use crate::error::CommandError;

/// `numkeys key [key …] END [COUNT count]`.
pub(crate) struct MultiPop<'a> {
    /// The keys, in the order in which they are looked at.
    pub(crate) keys: &'a [Bytes],
    /// From the end with the last or highest elements.
    pub(crate) from_end: bool,
    /// Most elements to pop.
    pub(crate) limit: usize,
}

impl<'a> MultiPop<'a> {
    /// Reads the arguments from `at` on. `from_end` reads the word for an end.
    ///
    /// # Errors
    /// Redis's, for numbers that are not positive and for what does not follow the grammar.
    pub(crate) fn parse(
        arguments: &'a [Bytes],
        at: usize,
        from_end: impl FnOnce(&[u8]) -> Result<bool, CommandError>,
    ) -> Result<Self, CommandError> {
        let number_of_keys = to_usize(integer_at_least(
            argument(arguments, at)?,
            1,
            "ERR numkeys should be greater than 0",
        )?);
        let end_at = number_of_keys
            .checked_add(at + 1)
            .ok_or(CommandError::Syntax)?;
        let from_end = from_end(argument(arguments, end_at)?)?;
        let keys = arguments.get(at + 1..end_at).unwrap_or(&[]);
        let mut limit = None;
        let mut options = rest(arguments, end_at.saturating_add(1));
        while let Some((option, values)) = options.split_first() {
            match values.split_first() {
                Some((value, behind)) if limit.is_none() && is_word(option, "count") => {
                    let message = "ERR count should be greater than 0";
                    limit = Some(to_usize(integer_at_least(value, 1, message)?));
                    options = behind;
                }
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(Self {
            keys,
            from_end,
            limit: limit.unwrap_or(1),
        })
    }
}
