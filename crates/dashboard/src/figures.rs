//! Numbers, sizes, times and bytes as people read them.

use std::borrow::Cow;

pub(crate) use quoin_base::size::{about, duration, grouped as count};

/// A number of things.
pub(crate) fn counted(number: i64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number))
}

/// A number of bytes.
pub(crate) fn bytes(number: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut number = number;
    let mut unit = "B";
    for larger in units {
        unit = larger;
        if number < 1024.0 {
            break;
        }
        if larger != "PiB" {
            number /= 1024.0;
        }
    }
    match unit {
        "B" => format!("{number:.0} B"),
        unit if number < 10.0 => format!("{number:.2} {unit}"),
        unit if number < 100.0 => format!("{number:.1} {unit}"),
        unit => format!("{number:.0} {unit}"),
    }
}

/// A past or future time, relative to now.
pub(crate) fn relative(at_ms: i64, now_ms: i64) -> String {
    match now_ms.saturating_sub(at_ms) {
        0..1_000 => "now".to_owned(),
        past if past > 0 => format!("{} ago", duration(past)),
        future => format!("in {}", duration(-future)),
    }
}

/// A moment in UTC.
pub(crate) fn moment(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => at_ms.to_string(),
    }
}

/// Bytes as text: unchanged if readable, otherwise escaped.
pub(crate) fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text)
            if !text
                .chars()
                .any(|letter| letter.is_control() && letter != '\n' && letter != '\t') =>
        {
            Cow::Borrowed(text)
        }
        _ => Cow::Owned(bytes.escape_ascii().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (number, text) in [
            (0.0, "0 B"),
            (1023.0, "1023 B"),
            (1024.0, "1.00 KiB"),
            (1024.0 * 1024.0 * 15.5, "15.5 MiB"),
            (1024.0_f64.powi(5) * 3000.0, "3000 PiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn times_are_told_from_now() {
        assert_eq!(relative(1_000, 1_500), "now");
        assert_eq!(relative(1_000, 61_000), "1 min ago");
        assert_eq!(relative(7_300_000, 1_000), "in 2 h 1 min");
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(moment(1_795_776_123_000), "2026-11-27 10:42:03 UTC");
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(readable("grün\n".as_bytes()), "grün\n");
        assert_eq!(readable(b"a\x00\xff"), "a\\x00\\xff");
    }
}
