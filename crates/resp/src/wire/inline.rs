//! Inline requests: a line of words separated by blanks, some of them quoted, as people type it.
//!
//! The grammar is that of Redis's `sdssplitargs` (`sds.c`). `"..."` supports `\n \r \t \b \a \xHH`
//! and takes any other escaped byte literally. `'...'` supports only `\'`. A closing quote ends the
//! word and must be followed by a blank. A quote may begin inside a word. Redis skips six kinds of
//! blanks before a word, but only four of them end an unquoted one.

use bytes::Bytes;

use quoin_base::number::{hex_value, is_space};

/// The words of a line. `None` if its quotes are not balanced.
pub fn split_arguments(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = rest.get(blanks..).unwrap_or_default();
        if matches!(rest.first(), None | Some(0)) {
            return Some(words);
        }
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?;
        words.push(Bytes::from(word));
    }
}

/// Moves one word from the front of `rest` to `word`. Returns what follows it.
fn take_word<'line>(mut rest: &'line [u8], word: &mut Vec<u8>) -> Option<&'line [u8]> {
    loop {
        match rest {
            [] | [0, ..] => return Some(&[]),
            [b' ' | b'\n' | b'\r' | b'\t', after @ ..] => return Some(after),
            [b'"', after @ ..] => return take_double_quoted(after, word),
            [b'\'', after @ ..] => return take_single_quoted(after, word),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn take_double_quoted<'line>(mut rest: &'line [u8], word: &mut Vec<u8>) -> Option<&'line [u8]> {
    loop {
        rest = match rest {
            [] | [0, ..] => return None,
            [b'"', after @ ..] => return end_of_quotes(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex_value(*high) * 16 + hex_value(*low));
                after
            }
            [b'\\', escaped, after @ ..] if *escaped != 0 => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

fn take_single_quoted<'line>(mut rest: &'line [u8], word: &mut Vec<u8>) -> Option<&'line [u8]> {
    loop {
        rest = match rest {
            [] | [0, ..] => return None,
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [b'\'', after @ ..] => return end_of_quotes(after),
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

/// A closing quote must be followed by a blank or by nothing.
fn end_of_quotes(after: &[u8]) -> Option<&[u8]> {
    match after.first() {
        None | Some(0) => Some(&[]),
        Some(byte) if is_space(*byte) => Some(after),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        split_arguments(line).map(|words| words.iter().map(|word| word.to_vec()).collect())
    }

    fn words(list: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
        Some(list.iter().map(|word| word.to_vec()).collect())
    }

    #[test]
    fn blanks_of_every_kind_separate_words() {
        assert_eq!(
            split(b" \x0b\x0c\tset  a\tb\r c "),
            words(&[b"set", b"a", b"b", b"c"])
        );
    }

    #[test]
    fn a_vertical_tab_or_form_feed_inside_a_word_belongs_to_it() {
        assert_eq!(split(b"a\x0bb c\x0c"), words(&[b"a\x0bb", b"c\x0c"]));
    }

    #[test]
    fn a_blank_line_has_no_words() {
        assert_eq!(split(b""), words(&[]));
        assert_eq!(split(b" \t "), words(&[]));
    }

    #[test]
    fn double_quotes_know_escapes() {
        assert_eq!(
            split(br#""\n\r\t\b\a\x41\xfF\x00\q\"\\""#),
            words(&[b"\n\r\t\x08\x07A\xff\0q\"\\"])
        );
    }

    #[test]
    fn an_incomplete_hex_escape_is_an_escaped_x() {
        assert_eq!(split(br#""\x4g""#), words(&[b"x4g"]));
    }

    #[test]
    fn single_quotes_know_only_the_escaped_single_quote() {
        assert_eq!(split(br"'a\'b\n'"), words(&[br"a'b\n"]));
    }

    #[test]
    fn a_backslash_outside_of_quotes_is_a_byte() {
        assert_eq!(split(br"a\n"), words(&[br"a\n"]));
    }

    #[test]
    fn quotes_may_begin_inside_a_word_and_end_it() {
        assert_eq!(split(br#"fo"o b"  'x'"#), words(&[b"foo b", b"x"]));
    }

    #[test]
    fn an_empty_pair_of_quotes_is_an_empty_word() {
        assert_eq!(split(br#""" ''"#), words(&[b"", b""]));
    }

    #[test]
    fn a_closing_quote_without_a_blank_behind_it_is_refused() {
        assert_eq!(split(br#""a"b"#), None);
        assert_eq!(split(br"'a''b'"), None);
    }

    #[test]
    fn quotes_that_stay_open_are_refused() {
        assert_eq!(split(br#"get "a"#), None);
        assert_eq!(split(br"get 'a"), None);
        assert_eq!(split(br#"get "a\"#), None);
    }
}
