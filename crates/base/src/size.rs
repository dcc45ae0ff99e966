//! Numbers for people: of bytes, of things, and of time.

/// A number of things, in words: `1 key`, `2 keys`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// A number with commas: `1,234`.
pub fn grouped(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    if number < 0 {
        text.push('−');
    }
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that need not be exact: `1.5`, `12.3 k`.
pub fn about(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.1} G", number / 1e9),
        number if number >= 1e6 => format!("{:.1} M", number / 1e6),
        number if number >= 1e4 => format!("{:.1} k", number / 1e3),
        number if number >= 100.0 || number == number.trunc() => grouped(number as i64),
        number => format!("{number:.1}"),
    }
}

/// A length of time in milliseconds.
pub fn duration(ms: i64) -> String {
    match ms {
        ms if ms < 0 => format!("−{}", duration(ms.saturating_neg())),
        ms if ms < 1_000 => format!("{ms} ms"),
        ms if ms < 60_000 => format!("{} s", ms / 1_000),
        ms if ms < 3_600_000 => format!("{} min", ms / 60_000),
        ms if ms < 48 * 3_600_000 => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
        ms => format!("{} days", ms / 86_400_000),
    }
}

/// A number of bytes in the largest unit that divides it evenly.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut number = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for next in units {
        if number < 1024.0 {
            break;
        }
        number /= 1024.0;
        unit = next;
    }
    format!("{number:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_many() {
        let counted = |count| counted(count, "entry", "entries");
        assert_eq!(
            [0, 1, 2].map(counted),
            ["0 entries", "1 entry", "2 entries"]
        );
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (-1_234_567, "−1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(about(0.04), "0.0");
        assert_eq!(about(12.34), "12.3");
        assert_eq!(about(1_234.0), "1,234");
        assert_eq!(about(12_345.0), "12.3 k");
    }

    #[test]
    fn sizes_can_be_read() {
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(5 * 1024 * 1024 * 1024), "5.0 GiB");
    }
}
