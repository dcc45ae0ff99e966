//! What HSCAN, SSCAN and ZSCAN share: their options and their reply.

use bytes::Bytes;

use super::arguments::{SCAN_COUNT_DEFAULT, integer, is_word, to_usize};
use crate::error::CommandError;
use crate::glob::{Case, matches};
use crate::reply::Reply;

/// `[MATCH pattern] [COUNT count]`.
pub(super) struct ScanOptions<'a> {
    /// `None` matches everything.
    pattern: Option<&'a Bytes>,
    /// About how many members or fields one call looks at.
    pub(super) count: usize,
}

impl<'a> ScanOptions<'a> {
    /// Reads the words after the cursor.
    ///
    /// # Errors
    /// `Syntax`; `NotAnInteger` for a count that is none.
    pub(super) fn parse(mut options: &'a [Bytes]) -> Result<Self, CommandError> {
        let mut parsed = Self {
            pattern: None,
            count: SCAN_COUNT_DEFAULT,
        };
        while let Some((option, values)) = options.split_first() {
            let Some((value, behind)) = values.split_first() else {
                return Err(CommandError::Syntax);
            };
            if is_word(option, "count") {
                let number = integer(value)?;
                if number < 1 {
                    return Err(CommandError::Syntax);
                }
                parsed.count = to_usize(number);
            } else if is_word(option, "match") {
                parsed.pattern = (value.as_ref() != b"*").then_some(value);
            } else {
                return Err(CommandError::Syntax);
            }
            options = behind;
        }
        Ok(parsed)
    }

    /// Whether a member or field is asked for.
    pub(super) fn accepts(&self, name: &[u8]) -> bool {
        let mut pattern = self.pattern.iter();
        pattern.all(|pattern| matches(pattern, name, Case::Sensitive))
    }
}

/// The cursor to go on from, and what was found.
pub(super) fn scan_reply(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}
