//! Values as people read them: JSON with lines and colours, all else as text.

use maud::{Markup, html};
use serde::de::IgnoredAny;

use quoin_base::limits::DASHBOARD_SHOWN_BYTES_MAX;

use crate::figures;

/// Spaces for each level.
const INDENT: usize = 2;
/// Maximum number of indented levels. Deeper ones are not indented further.
const DEPTH_MAX: usize = 32;

/// A piece of JSON.
struct Piece<'j> {
    /// Its CSS class. Empty if it has the default style.
    class: &'static str,
    text: &'j str,
    /// The line break and spaces before it.
    indent: Option<usize>,
}

/// A value on separate lines. A large one is cut off.
pub(crate) fn block(value: &[u8]) -> Markup {
    let shown = value.get(..DASHBOARD_SHOWN_BYTES_MAX).unwrap_or(value);
    let text = std::str::from_utf8(value).ok();
    let json = text.filter(|text| value.len() == shown.len() && is_document(text));
    html! {
        pre.value {
            @match json {
                Some(text) => (pretty(text)),
                None => (figures::readable(shown)),
            }
            @if shown.len() < value.len() {
                span.cut { "\n… " (figures::bytes(value.len() as f64)) " in total" }
            }
        }
    }
}

/// A value on one line.
pub(crate) fn line(value: &[u8]) -> String {
    const SHOWN: usize = 160;
    let cut = value.get(..SHOWN).unwrap_or(value);
    // A letter may have been cut in two.
    let cut = match std::str::from_utf8(cut) {
        Err(error) if error.error_len().is_none() => cut.get(..error.valid_up_to()).unwrap_or(cut),
        _ => cut,
    };
    let text = figures::readable(cut);
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if cut.len() < value.len() {
        line.push('…');
    }
    line
}

/// Whether it is an object or array of JSON. Other values look the same anyway.
fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn pretty(text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @if let Some(indent) = piece.indent { "\n" (" ".repeat(indent)) }
            @if piece.class.is_empty() { (piece.text) } @else { span class=(piece.class) { (piece.text) } }
        }
    }
}

/// The pieces of valid JSON as written, without the whitespace in between.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text.trim();
    let indented = |depth: usize| Some(depth.min(DEPTH_MAX) * INDENT);
    // Whether the last piece opened a value, or separated two values.
    let mut opened = false;
    let mut separated = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest
                .find(['{', '}', '[', ']', ',', ':', ' ', '\n', '\r', '\t'])
                .unwrap_or(rest.len())
                .max(1),
        };
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        rest = after.trim_start();
        let closes = matches!(first, '}' | ']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        let breaks = separated || (opened != closes && (opened || closes));
        let class = match first {
            '"' if rest.starts_with(':') => "json-key",
            '"' => "json-string",
            '{' | '}' | '[' | ']' | ',' => "",
            ':' => "",
            't' | 'f' | 'n' => "json-word",
            _ => "json-number",
        };
        let text = if first == ':' { ": " } else { piece };
        let indent = if breaks { indented(depth) } else { None };
        pieces.push(Piece {
            class,
            text,
            indent,
        });
        opened = matches!(first, '{' | '[');
        separated = first == ',';
        if opened {
            depth += 1;
        }
    }
    pieces
}

/// Bytes of the string with which a text begins, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        let html = block(value.as_bytes()).into_string();
        let mut text = String::new();
        let mut is_tag = false;
        for letter in html.chars() {
            match letter {
                '<' => is_tag = true,
                '>' => is_tag = false,
                letter if !is_tag => text.push(letter),
                _ => {}
            }
        }
        text.replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    }

    #[test]
    fn json_gets_lines_and_keeps_its_numbers() {
        assert_eq!(
            text(r#"{"a":[1,{"b":"x, \"y\": {z}"}],"n":12345678901234567890.10,"e":{},"l":[]}"#),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x, \\\"y\\\": {z}\"\n    }\n  ],\n  \
             \"n\": 12345678901234567890.10,\n  \"e\": {},\n  \"l\": []\n}"
        );
    }

    #[test]
    fn lines_agree_with_a_library() {
        for document in [
            r#"[1,2,[3,[]],{"a":null,"b":[true,false]}]"#,
            r#"[]"#,
            r#"{"a":"\\\"ä","x":{"y":{"z":-1.5}}}"#,
            " [ \n 1 , 2 ] ",
        ] {
            let value: serde_json::Value = serde_json::from_str(document).unwrap();
            assert_eq!(
                text(document),
                serde_json::to_string_pretty(&value).unwrap()
            );
        }
    }

    #[test]
    fn what_is_no_document_stays() {
        for value in ["{", "12", "\"a\"", "a <b>", "{} {}"] {
            assert_eq!(text(value), value);
        }
    }

    #[test]
    fn html_in_a_value_is_text() {
        let html = block(br#"{"a":"<script>alert(1)</script>"}"#).into_string();
        assert!(!html.contains("<script"), "{html}");
        assert!(!block(b"<script>").into_string().contains("<script"));
    }

    #[test]
    fn a_large_value_is_cut() {
        let value = vec![b'a'; DASHBOARD_SHOWN_BYTES_MAX * 2];
        let html = block(&value).into_string();
        assert!(html.len() < DASHBOARD_SHOWN_BYTES_MAX + 200);
        assert!(html.contains("32.0 KiB in total"), "{html}");
        let cut = line(&"ä".repeat(200).into_bytes());
        assert_eq!(cut, format!("{}…", "ä".repeat(80)));
    }
}
