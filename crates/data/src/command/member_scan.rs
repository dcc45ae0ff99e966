//! What HSCAN, SSCAN and ZSCAN share: their options and their reply.

use bytes::Bytes;

use crate::command::arguments::{SCAN_COUNT_DEFAULT, integer, is_word, to_usize};
use crate::error::CommandError;
use crate::keyspace::scanning::name_pattern;
use quoin_base::glob::Glob;
use quoin_resp::reply::Reply;

/// `[MATCH pattern] [COUNT count]`.
pub(crate) struct ScanOptions {
    /// `None` matches everything.
    pattern: Option<Glob>,
    /// About how many members or fields one call looks at.
    pub(crate) count: usize,
}

impl ScanOptions {
    /// Reads the words after the cursor.
    ///
    /// # Errors
    /// `Syntax`; `NotAnInteger` for a count that is none.
    pub(crate) fn parse(mut options: &[Bytes]) -> Result<Self, CommandError> {
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
                parsed.pattern = name_pattern(value);
            } else {
                return Err(CommandError::Syntax);
            }
            options = behind;
        }
        Ok(parsed)
    }

    /// Whether a member or field is asked for.
    pub(crate) fn accepts(&self, name: &[u8]) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(name))
    }
}

/// The cursor to go on from, and what was found.
pub(crate) fn scan_reply(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}
