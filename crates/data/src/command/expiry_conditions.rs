//! The options NX, XX, GT and LT of EXPIRE and its kin, for keys and for fields of hashes.

use bytes::Bytes;

use crate::command::arguments::is_word;
use crate::error::CommandError;

/// The conditions under which EXPIRE, or HEXPIRE for a field, has an effect.
#[derive(Default)]
pub(crate) struct Conditions {
    only_without: bool,
    only_with: bool,
    only_later: bool,
    only_earlier: bool,
}

impl Conditions {
    /// Reads NX, XX, GT and LT.
    pub(crate) fn parse(options: &[Bytes]) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for option in options {
            if is_word(option, "nx") {
                conditions.only_without = true;
            } else if is_word(option, "xx") {
                conditions.only_with = true;
            } else if is_word(option, "gt") {
                conditions.only_later = true;
            } else if is_word(option, "lt") {
                conditions.only_earlier = true;
            } else {
                // Redis's text is a C string and ends at a zero byte.
                let shown = option.split(|byte| *byte == 0).next().unwrap_or_default();
                let option = String::from_utf8_lossy(shown);
                return Err(CommandError::Text(
                    format!("ERR Unsupported option {option}").into(),
                ));
            }
        }
        let Self {
            only_without,
            only_with,
            only_later,
            only_earlier,
        } = conditions;
        if only_without && (only_with || only_later || only_earlier) {
            return Err(CommandError::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if only_later && only_earlier {
            return Err(CommandError::text(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// A key without expiry counts as one that expires at the end of time.
    pub(crate) fn allow(&self, present_ms: Option<i64>, new_ms: i64) -> bool {
        !(self.only_without && present_ms.is_some()
            || self.only_with && present_ms.is_none()
            || self.only_later && present_ms.is_none_or(|present_ms| new_ms <= present_ms)
            || self.only_earlier && present_ms.is_some_and(|present_ms| new_ms >= present_ms))
    }
}
