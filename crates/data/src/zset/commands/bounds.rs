//! Bounds of ranges as arguments: ranks, `(1.5` or `-inf`, `[member` or `+`.

use bytes::Bytes;

use crate::command::arguments::integer;
use crate::error::CommandError;
use crate::zset::{LexBound, ScoreBound, Selection};
use quoin_base::number::{is_space, parse_double};

/// Ranks from `start` to `stop`.
pub(super) fn rank_selection(start: &[u8], stop: &[u8]) -> Result<Selection, CommandError> {
    Ok(Selection::Ranks {
        start: integer(start)?,
        stop: integer(stop)?,
    })
}

/// Scores from `min` to `max`.
pub(super) fn score_selection(min: &[u8], max: &[u8]) -> Result<Selection, CommandError> {
    match (score_bound(min), score_bound(max)) {
        (Some(min), Some(max)) => Ok(Selection::Scores { min, max }),
        _ => Err(CommandError::text("ERR min or max is not a float")),
    }
}

/// Members from `min` to `max`.
pub(super) fn lex_selection(min: &Bytes, max: &Bytes) -> Result<Selection, CommandError> {
    match (lex_bound(min), lex_bound(max)) {
        (Some(min), Some(max)) => Ok(Selection::Lex { min, max }),
        _ => Err(CommandError::text(
            "ERR min or max not valid string range item",
        )),
    }
}

fn score_bound(argument: &[u8]) -> Option<ScoreBound> {
    let (is_exclusive, number) = match argument.strip_prefix(b"(") {
        Some(number) => (true, number),
        None => (false, argument),
    };
    Some(ScoreBound {
        score: c_double(number)?,
        is_exclusive,
    })
}

/// A number as plain `strtod` reads it. Redis reads bounds of scores this way, and scores more
/// strictly. The text ends at a NUL byte, an empty text is 0, leading blanks are skipped, and a
/// number that is too large or too small for a double becomes infinite or 0.
pub(crate) fn c_double(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    if text.is_empty() {
        return Some(0.0);
    }
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    let text = text.get(blanks..)?;
    if let Some(number) = parse_double(text) {
        return Some(number);
    }
    let digits = match text {
        [b'-' | b'+', rest @ ..] => rest,
        rest => rest,
    };
    if !matches!(digits.first(), Some(b'0'..=b'9' | b'.')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn lex_bound(argument: &Bytes) -> Option<LexBound> {
    // As in C, a NUL byte ends `-` and `+`.
    let is_alone = matches!(argument.get(1), None | Some(0));
    match argument.first()? {
        b'-' if is_alone => Some(LexBound::Least),
        b'+' if is_alone => Some(LexBound::Greatest),
        b'(' => Some(LexBound::Excluded(argument.slice(1..))),
        b'[' => Some(LexBound::Included(argument.slice(1..))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_scores_are_read_as_by_strtod() {
        for (text, score, is_exclusive) in [
            ("1.5", 1.5, false),
            ("(1.5", 1.5, true),
            ("-inf", f64::NEG_INFINITY, false),
            ("(+inf", f64::INFINITY, true),
            ("", 0.0, false),
            ("(", 0.0, true),
            ("  2", 2.0, false),
            ("1e999", f64::INFINITY, false),
            ("-1e999", f64::NEG_INFINITY, false),
            ("1e-999", 0.0, false),
            ("0x10", 16.0, false),
            ("3\0rest", 3.0, false),
        ] {
            let expected = ScoreBound {
                score,
                is_exclusive,
            };
            assert_eq!(score_bound(text.as_bytes()), Some(expected), "{text:?}");
        }
        for text in ["nan", "x", "1x", "1 ", " ", "((1", "1e", "."] {
            assert_eq!(score_bound(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn bounds_of_members_need_their_bracket() {
        let bound = |text: &'static str| lex_bound(&Bytes::from_static(text.as_bytes()));
        assert_eq!(bound("-"), Some(LexBound::Least));
        assert_eq!(bound("+"), Some(LexBound::Greatest));
        assert_eq!(bound("["), Some(LexBound::Included(Bytes::new())));
        assert_eq!(bound("(a"), Some(LexBound::Excluded("a".into())));
        for text in ["", "a", "-a", "+1"] {
            assert_eq!(bound(text), None, "{text:?}");
        }
    }
}
