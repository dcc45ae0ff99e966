//! Rules as Redis reads them: as C strings, which end at a zero byte.

/// What comes before the first zero byte.
pub(super) fn c_text(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether a rule is this word, in any case.
pub(super) fn is_rule(rule: &[u8], word: &str) -> bool {
    c_text(rule).eq_ignore_ascii_case(word.as_bytes())
}

/// Whether there are spaces or zero bytes, which names of users and patterns must not have (Redis:
/// `ACLStringHasSpaces`).
pub fn has_spaces(text: &[u8]) -> bool {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0);
    text.iter().any(is_space)
}
