//! Glob patterns of KEYS, SCAN, CONFIG GET and their like, with the exact meaning that Redis
//! gives them (`stringmatchlen`): `*`, `?`, `[a-z]`, `[^a-z]`, `\` before a literal byte.
//!
//! Two oddities of Redis are kept because clients can see them: no pattern but the empty one
//! matches the empty text (KEYS and SCAN treat the pattern `*` apart, before they match), and
//! the ends of a range compare as signed bytes, as `char` does on x86.

use crate::limits::GLOB_STARS_MAX;

/// Whether upper and lower case of ASCII letters count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// `a` and `A` differ: keys.
    Sensitive,
    /// `a` and `A` are equal: names of settings and commands.
    Insensitive,
}

/// Whether `text` matches the glob `pattern` as a whole.
///
/// The work is bounded by the product of both lengths: only the last `*` is ever tried again,
/// because if what follows it matches nowhere, a longer match of an earlier `*` cannot help.
/// Beyond [`GLOB_STARS_MAX`] separate `*` the answer is no, as in Redis.
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    let mut pattern_at = 0;
    let mut text_at = 0;
    let mut stars = 0;
    // Where to go on when the present attempt fails: behind the last `*`, one byte later.
    let mut retry: Option<(usize, usize)> = None;

    while let Some(&byte) = text.get(text_at) {
        if pattern.get(pattern_at) == Some(&b'*') {
            pattern_at = skip_stars(pattern, pattern_at);
            if pattern_at == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > GLOB_STARS_MAX {
                return false;
            }
            retry = Some((pattern_at, text_at));
            continue;
        }
        match match_one(pattern, pattern_at, byte, case) {
            Some(next) => {
                pattern_at = next;
                text_at += 1;
            }
            None => {
                let Some((behind_star, from)) = retry else {
                    return false;
                };
                pattern_at = behind_star;
                text_at = from + 1;
                retry = Some((behind_star, text_at));
            }
        }
    }
    // Every element takes exactly one byte, so a later start of the last `*` would leave even
    // more of the pattern over. Stars take none, but only behind some text (see above).
    if !text.is_empty() {
        pattern_at = skip_stars(pattern, pattern_at);
    }
    pattern_at == pattern.len()
}

/// The bytes with which every text that matches `pattern` (case-sensitively) begins: where a
/// scan of ordered keys may start and stop.
pub fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', literal, after @ ..] | [literal, after @ ..] => {
                prefix.push(*literal);
                after
            }
        };
    }
}

/// Position of the first byte from `at` on that is not a `*`.
fn skip_stars(pattern: &[u8], at: usize) -> usize {
    let stars = pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|&&byte| byte == b'*')
        .count();
    at + stars
}

/// Matches `byte` with the element of the pattern at `at`; the position behind the element, or
/// `None` when they do not match or the pattern is at its end.
fn match_one(pattern: &[u8], at: usize, byte: u8, case: Case) -> Option<usize> {
    match *pattern.get(at..)? {
        [] => None,
        [b'?', ..] => Some(at + 1),
        [b'[', ..] => {
            let (is_match, next) = match_class(pattern, at + 1, byte, case);
            is_match.then_some(next)
        }
        [b'\\', literal, ..] => equal(literal, byte, case).then_some(at + 2),
        [literal, ..] => equal(literal, byte, case).then_some(at + 1),
    }
}

/// Matches `byte` with the class whose `[` stands before `at`; also the position behind it. A
/// class that is not closed reaches to the end of the pattern.
fn match_class(pattern: &[u8], at: usize, byte: u8, case: Case) -> (bool, usize) {
    let mut at = at;
    let is_negated = pattern.get(at) == Some(&b'^');
    if is_negated {
        at += 1;
    }
    let mut is_match = false;
    loop {
        match *pattern.get(at..).unwrap_or_default() {
            [] => break,
            // An escaped byte of a class compares as it is even where case does not count.
            [b'\\', literal, ..] => {
                is_match |= literal == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [low, b'-', high, ..] => {
                is_match |= in_range(low, high, byte, case);
                at += 3;
            }
            [literal, ..] => {
                is_match |= equal(literal, byte, case);
                at += 1;
            }
        }
    }
    (is_match != is_negated, at)
}

fn equal(literal: u8, byte: u8, case: Case) -> bool {
    match case {
        Case::Sensitive => literal == byte,
        Case::Insensitive => literal.eq_ignore_ascii_case(&byte),
    }
}

/// Whether `byte` is between the ends, which may stand in either order. They change places
/// before they lose their case, as in Redis.
fn in_range(low: u8, high: u8, byte: u8, case: Case) -> bool {
    let signed = |byte: u8| byte.cast_signed();
    let (low, high) = if signed(low) > signed(high) {
        (high, low)
    } else {
        (low, high)
    };
    let fold = |byte: u8| match case {
        Case::Sensitive => signed(byte),
        Case::Insensitive => signed(byte.to_ascii_lowercase()),
    };
    (fold(low)..=fold(high)).contains(&fold(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &[u8], text: &[u8], expected: bool) {
        assert_eq!(
            matches(pattern, text, Case::Sensitive),
            expected,
            "{:?} and {:?}",
            pattern.escape_ascii().to_string(),
            text.escape_ascii().to_string()
        );
    }

    #[test]
    fn stars_and_question_marks() {
        check(b"*", b"a", true);
        check(b"h?llo", b"hello", true);
        check(b"h?llo", b"hllo", false);
        check(b"h*llo", b"hllo", true);
        check(b"h*llo", b"heeeello", true);
        check(b"a**b***", b"axxb", true);
        check(b"a*b*c", b"abcbc", true);
        check(b"a*b*c", b"abcbd", false);
        check(b"user:*:x", b"user:1:y:x", true);
        check(b"*a?", b"aab", true);
        check(b"ab", b"a", false);
        check(b"a", b"ab", false);
    }

    #[test]
    fn the_empty_text_matches_the_empty_pattern_only() {
        check(b"", b"", true);
        check(b"*", b"", false);
        check(b"", b"a", false);
    }

    #[test]
    fn classes_ranges_and_negation() {
        check(b"h[ae]llo", b"hallo", true);
        check(b"h[^e]llo", b"hello", false);
        check(b"h[a-b]llo", b"hbllo", true);
        check(b"h[b-a]llo", b"hallo", true);
        check(b"[]]", b"]", false);
        check(b"[a-]]", b"b", false);
        check(b"[a-]", b"^", true);
        check(b"[^]", b"a", true);
        check(b"[\\]]", b"]", true);
        check(b"[\\\\]", b"\\", true);
    }

    #[test]
    fn a_class_that_is_not_closed_reaches_to_the_end() {
        check(b"[abc", b"c", true);
        check(b"[", b"[", false);
        check(b"[^", b"x", true);
        check(b"[\\", b"\\", true);
        check(b"[a-", b"-", true);
    }

    #[test]
    fn range_ends_are_signed_bytes() {
        check(b"[a-\xff]", b"a", true);
        check(b"[a-\xff]", b"z", false);
        check(b"[a-\xff]", b"\x05", true);
        check(b"[\x80-\xff]", b"\x90", true);
    }

    #[test]
    fn escapes_make_literals() {
        check(b"\\*", b"*", true);
        check(b"\\*", b"a", false);
        check(b"a\\?", b"a?", true);
        check(b"\\", b"\\", true);
        check(b"a\\", b"a\\", true);
    }

    #[test]
    fn case_is_ignored_on_request_except_for_escaped_class_bytes() {
        let matches = |pattern: &[u8], text: &[u8]| matches(pattern, text, Case::Insensitive);
        assert!(matches(b"MAX*", b"maxclients"));
        assert!(matches(b"[A-C]x", b"bX"));
        assert!(matches(b"[Q]", b"q"));
        assert!(!matches(b"[\\Q]", b"q"));
        assert!(matches(b"\\Q", b"q"));
    }

    #[test]
    fn too_many_stars_match_nothing() {
        let text = b"a".repeat(2000);
        check(&b"*a".repeat(1000), &text, true);
        check(&b"*a".repeat(1001), &text, false);
    }

    #[test]
    fn hostile_patterns_take_bounded_time() {
        let text = b"a".repeat(20_000);
        let mut pattern = b"a*".repeat(900);
        pattern.push(b'b');
        check(&pattern, &text, false);
    }

    #[test]
    fn literal_prefix_stops_at_the_first_special_byte() {
        assert_eq!(literal_prefix(b"user:*"), b"user:");
        assert_eq!(literal_prefix(b"a\\*b?c"), b"a*b");
        assert_eq!(literal_prefix(b"[ab]"), b"");
        assert_eq!(literal_prefix(b"end\\"), b"end\\");
    }
}
