//! When a string is to expire, as SET and GETEX are told.

use bytes::Bytes;

use crate::command::arguments::{integer, is_word};
use crate::error::CommandError;

const MS_PER_SECOND: i64 = 1_000;

/// What a command says about a string's expiry.
#[derive(Clone, Copy, Default)]
pub(super) enum Expiry<'a> {
    /// Nothing.
    #[default]
    Unsaid,
    /// It stays what it is (KEEPTTL).
    Kept,
    /// There is none from now on (PERSIST).
    Removed,
    /// At a time, in one of four forms.
    At(TimeForm, &'a Bytes),
}

/// How a time is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeForm {
    is_relative: bool,
    unit_ms: i64,
}

/// EX: seconds from now.
pub(super) const SECONDS: TimeForm = TimeForm::new(true, MS_PER_SECOND);
/// PX: milliseconds from now.
pub(super) const MILLISECONDS: TimeForm = TimeForm::new(true, 1);
const UNIX_SECONDS: TimeForm = TimeForm::new(false, MS_PER_SECOND);
const UNIX_MILLISECONDS: TimeForm = TimeForm::new(false, 1);

impl TimeForm {
    const fn new(is_relative: bool, unit_ms: i64) -> Self {
        Self {
            is_relative,
            unit_ms,
        }
    }

    /// The form that an option names.
    fn named(option: &[u8]) -> Option<Self> {
        [
            ("ex", SECONDS),
            ("px", MILLISECONDS),
            ("exat", UNIX_SECONDS),
            ("pxat", UNIX_MILLISECONDS),
        ]
        .into_iter()
        .find_map(|(name, form)| is_word(option, name).then_some(form))
    }

    /// Whether times are written as Unix times.
    pub(super) fn is_absolute(self) -> bool {
        !self.is_relative
    }

    /// The Unix time in milliseconds.
    ///
    /// # Errors
    /// Redis's, where the text is no number, is not positive or is too large (`command` in lower
    /// case).
    pub(super) fn read(self, text: &[u8], now_ms: i64, command: &str) -> Result<i64, CommandError> {
        let time = integer(text)?;
        let base_ms = if self.is_relative { now_ms } else { 0 };
        (time > 0)
            .then(|| time.checked_mul(self.unit_ms)?.checked_add(base_ms))
            .flatten()
            .ok_or_else(|| {
                CommandError::Text(format!("ERR invalid expire time in '{command}' command").into())
            })
    }
}

impl<'a> Expiry<'a> {
    /// Reads EX, PX, EXAT or PXAT with its time from the front of some words, and answers the words
    /// after it. Redis takes the same form twice, but not two forms; `None` where it is not so.
    pub(super) fn take(&mut self, words: &'a [Bytes]) -> Option<&'a [Bytes]> {
        let [option, time, rest @ ..] = words else {
            return None;
        };
        let form = TimeForm::named(option)?;
        match self {
            Expiry::Unsaid => {}
            Expiry::At(before, _) if *before == form => {}
            _ => return None,
        }
        *self = Expiry::At(form, time);
        Some(rest)
    }
}
