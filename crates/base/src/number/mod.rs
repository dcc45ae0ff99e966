//! Numbers as text, exactly as Redis 7.2 reads and writes them.

mod grisu;
mod long_double;

pub use long_double::LongDouble;

use grisu::shortest_digits;

/// A text of at least this length is not an integer (Redis: `LONG_STR_SIZE`).
const INTEGER_TEXT_BYTES: usize = 21;

/// Whole numbers up to here, 2^62, are written as integers (Redis: `double2ll`).
const WHOLE_NUMBER_MAX: f64 = 4_611_686_018_427_387_904.0;

/// The smallest double is 2 to this.
const EXPONENT_MIN: i64 = -1074;

/// Formats a number as in Redis's replies (`d2string` in `util.c`, `emit_digits` in
/// `fpconv_dtoa.c`).
///
/// `nan`, `inf`, `-inf`, `-0`; whole numbers up to 2^62 in full; others with the digits of Grisu2,
/// for example `1.5`, `0.0001`, `1e-7`, `1.5e+30`. [`parse_double`] reads the result as the same
/// number, except for `nan`.
pub fn format_double(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if number.abs() <= WHOLE_NUMBER_MAX {
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        let (whole, back) = (number as i64, (number as i64) as f64);
        if back == number {
            return whole.to_string();
        }
    }
    format_digits(number)
}

fn format_digits(number: f64) -> String {
    let (buffer, exponent) = shortest_digits(number);
    let digits = buffer.as_bytes();
    let count = i32::try_from(digits.len()).unwrap_or(0);
    // Of the first digit.
    let magnitude = exponent + count - 1;
    let sign = if number < 0.0 { "-" } else { "" };
    let mut text = String::with_capacity(32);
    text.push_str(sign);
    if exponent >= 0 && magnitude < count + 7 {
        push_digits(&mut text, digits);
        push_zeros(&mut text, exponent);
    } else if exponent < 0 && (exponent > -7 || magnitude.abs() < 4) {
        let (whole, fraction) = match usize::try_from(magnitude + 1) {
            Ok(whole_digits) if whole_digits > 0 => digits.split_at(whole_digits.min(digits.len())),
            _ => (b"0".as_slice(), digits),
        };
        push_digits(&mut text, whole);
        text.push('.');
        push_zeros(&mut text, -(magnitude + 1));
        push_digits(&mut text, fraction);
    } else {
        let (first, fraction) = digits.split_at(1.min(digits.len()));
        push_digits(&mut text, first);
        if !fraction.is_empty() {
            text.push('.');
            push_digits(&mut text, fraction);
        }
        text.push('e');
        text.push(if magnitude < 0 { '-' } else { '+' });
        text.push_str(&magnitude.unsigned_abs().to_string());
    }
    text
}

fn push_digits(text: &mut String, digits: &[u8]) {
    text.extend(digits.iter().map(|digit| char::from(*digit)));
}

/// Nothing if the count is negative.
fn push_zeros(text: &mut String, count: i32) {
    for _ in 0..count {
        text.push('0');
    }
}

/// Reads a 64-bit integer as strictly as `string2ll` of Redis: no `+`, no leading zeros, no
/// blanks, no `-0`.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    if text.len() >= INTEGER_TEXT_BYTES {
        return None;
    }
    if text == b"0" {
        return Some(0);
    }
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }
    digits.iter().try_fold(0_i64, |number, byte| {
        let digit = match byte {
            b'0'..=b'9' => i64::from(byte - b'0'),
            _ => return None,
        };
        // Built as a negative number, because the negative range is larger by one.
        let number = number.checked_mul(10)?;
        if is_negative {
            number.checked_sub(digit)
        } else {
            number.checked_add(digit)
        }
    })
}

/// Parses a floating-point number like Redis's `getDoubleFromObject` (`string2d`: C's `strtod` over
/// the whole text).
///
/// Accepts `inf` and `infinity` in any case, `0x` hexadecimal numbers with or without a binary
/// exponent, and decimal ones. Refuses the empty text, anything before or after the number, `nan`,
/// and numbers other than 0 that are too large for a double or so small that they would become 0.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    read_double(text).map(|read| read.number)
}

/// Like [`parse_double`], but refuses numbers that underflow. As in C, where `strtod` sets
/// `ERANGE`, these are too small for a normal double and not exactly a subnormal one.
pub fn parse_double_without_underflow(text: &[u8]) -> Option<f64> {
    read_double(text)
        .filter(|read| !read.underflows)
        .map(|read| read.number)
}

/// A number that was read, and whether it lost digits because it is so small.
struct Read {
    number: f64,
    underflows: bool,
}

fn read_double(text: &[u8]) -> Option<Read> {
    if text.first().copied().is_none_or(is_space) {
        return None;
    }
    let (is_negative, magnitude) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut read = match magnitude {
        [b'0', b'x' | b'X', rest @ ..] => parse_hexadecimal(rest)?,
        _ if magnitude.eq_ignore_ascii_case(b"inf")
            || magnitude.eq_ignore_ascii_case(b"infinity") =>
        {
            Read {
                number: f64::INFINITY,
                underflows: false,
            }
        }
        _ => {
            let number = parse_decimal(magnitude)?;
            Read {
                number,
                underflows: number.is_subnormal() && !is_exact(magnitude, number),
            }
        }
    };
    if is_negative {
        read.number = -read.number;
    }
    Some(read)
}

/// Whether a decimal text that was read as this subnormal number equals it exactly.
fn is_exact(text: &[u8], number: f64) -> bool {
    /// Most digits of a double after its point.
    const FRACTION_DIGITS_MAX: usize = 1074;
    /// Every subnormal number has more significant digits.
    const DIGITS_MIN: usize = 700;
    let digits = |text: &[u8]| {
        let mantissa = text
            .iter()
            .take_while(|byte| !matches!(byte, b'e' | b'E'))
            .filter(|byte| **byte != b'.');
        let mut digits: Vec<u8> = mantissa
            .skip_while(|byte| **byte == b'0')
            .copied()
            .collect();
        digits.truncate(
            digits
                .iter()
                .rposition(|byte| *byte != b'0')
                .map_or(0, |at| at + 1),
        );
        digits
    };
    text.len() > DIGITS_MIN
        && digits(text) == digits(format!("{number:.FRACTION_DIGITS_MAX$}").as_bytes())
}

/// Digits with an optional point, then an optional exponent.
fn parse_decimal(text: &[u8]) -> Option<f64> {
    // Leaves no signs (but in exponents) and no names of special numbers to the standard parser.
    if !matches!(text.first(), Some(b'0'..=b'9' | b'.')) {
        return None;
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_zero = text
        .iter()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .all(|byte| matches!(byte, b'0' | b'.'));
    (number.is_finite() && (number != 0.0 || is_zero)).then_some(number)
}

/// What follows `0x`: hexadecimal digits with an optional point, then an optional binary exponent.
/// Rounds to nearest, ties to even, as C does.
fn parse_hexadecimal(text: &[u8]) -> Option<Read> {
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(position) => {
            let (mantissa, rest) = text.split_at(position);
            (mantissa, parse_binary_exponent(rest.get(1..)?)?)
        }
        None => (text, 0),
    };
    let mut significand = 0_u64;
    let mut exponent = exponent;
    let mut has_digits = false;
    let mut is_behind_point = false;
    for byte in mantissa {
        if *byte == b'.' && !is_behind_point {
            is_behind_point = true;
        } else if byte.is_ascii_hexdigit() {
            has_digits = true;
            let digit = u64::from(hex_value(*byte));
            if significand >> 60 == 0 {
                significand = (significand << 4) | digit;
                exponent -= if is_behind_point { 4 } else { 0 };
            } else {
                // Too far right to be a digit, but it can still break a tie.
                significand |= u64::from(digit != 0);
                exponent += if is_behind_point { 0 } else { 4 };
            }
        } else {
            return None;
        }
    }
    if !has_digits {
        return None;
    }
    if significand == 0 {
        return Some(Read {
            number: 0.0,
            underflows: false,
        });
    }
    let number = round_to_double(significand, exponent);
    (number.is_finite() && number != 0.0).then(|| Read {
        number,
        underflows: underflows(significand, exponent),
    })
}

/// Whether [`round_to_double`] gives fewer bits than it would without a limit of exponents, and that changes
/// the number.
fn underflows(significand: u64, exponent: i64) -> bool {
    /// The smallest normal double times 2^1074.
    const MIN_POSITIVE_SCALED: f64 = 4_503_599_627_370_496.0;
    let exponent_last = exponent.saturating_add(significand.trailing_zeros().into());
    let is_exact = exponent_last >= EXPONENT_MIN;
    let scaled = round_to_double(significand, exponent.saturating_sub(EXPONENT_MIN));
    !is_exact && scaled < MIN_POSITIVE_SCALED
}

/// Decimal digits with an optional sign. Stops growing when it no longer matters.
fn parse_binary_exponent(text: &[u8]) -> Option<i64> {
    /// More than the bits of any text that fits a request.
    const EXPONENT_MAX: i64 = 1 << 40;
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return None;
    }
    let magnitude = digits.iter().try_fold(0_i64, |number, byte| match byte {
        b'0'..=b'9' => Some((number * 10 + i64::from(byte - b'0')).min(EXPONENT_MAX)),
        _ => None,
    })?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// `significand * 2^exponent` as the nearest double. The significand is not 0, and if it has lost
/// bits, its last bit is set and it has at least 61.
fn round_to_double(significand: u64, exponent: i64) -> f64 {
    const FRACTION_BITS: i64 = 52;
    let shift = significand.leading_zeros();
    let significand = significand << shift;
    let exponent = exponent.saturating_sub(i64::from(shift));
    // Of the last bit that the double keeps.
    let unit = exponent
        .saturating_add(63 - FRACTION_BITS)
        .max(EXPONENT_MIN);
    let dropped = unit.saturating_sub(exponent);
    let kept = match u32::try_from(dropped) {
        Ok(dropped @ 1..=63) => {
            let kept = significand >> dropped;
            let rest = significand & ((1 << dropped) - 1);
            let half = 1_u64 << (dropped - 1);
            kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
        }
        Ok(64) => u64::from(significand > 1 << 63),
        _ => 0,
    };
    if unit > 971 {
        return f64::INFINITY;
    }
    // The bits of a double count upwards with its value, so a carry out of the fraction is right,
    // up to infinity.
    let biased = u64::try_from(unit - EXPONENT_MIN).unwrap_or(0);
    f64::from_bits((biased << FRACTION_BITS).saturating_add(kept))
}

/// C's `isspace`, which also knows the vertical tab.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// The value of a hexadecimal digit.
pub fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_numbers_up_to_two_to_the_62_are_written_in_full() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-17.0, "-17"),
            (1e15, "1000000000000000"),
            (1e18, "1000000000000000000"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
            (9_007_199_254_740_993.0, "9007199254740992"),
        ] {
            assert_eq!(format_double(number), text);
        }
    }

    /// Each text was answered by Redis 7.2.6 to ZSCORE.
    #[test]
    fn other_numbers_are_written_as_redis_does() {
        for (number, text) in [
            (3.5, "3.5"),
            (-0.25, "-0.25"),
            (0.1, "0.1"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (0.001_234_567_890_123, "0.001234567890123"),
            (5e18, "5e+18"),
            (1e19, "1e+19"),
            (12_345_678_901_234_567e3, "12345678901234567000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(format_double(number), text);
        }
    }

    #[test]
    fn integers_are_read_strictly() {
        for (text, number) in [
            ("0", 0),
            ("7", 7),
            ("-1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            "-01",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "100000000000000000000",
            "1\0",
        ] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
    }

    /// Each was accepted by Redis 7.2.6 as a score.
    #[test]
    fn doubles_are_read_as_c_reads_them() {
        for (text, number) in [
            ("0", 0.0),
            ("+1", 1.0),
            ("-1.5", -1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1.e2", 100.0),
            ("1E+2", 100.0),
            ("00012", 12.0),
            ("0e99999999999999999999", 0.0),
            ("inf", f64::INFINITY),
            ("+INF", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("-0X.8p1", -1.0),
            ("0x1.8", 1.5),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff7p1023", f64::MAX),
            ("0x0p99999999999999999999", 0.0),
            ("4.9e-324", 5e-324),
            ("3e-324", 5e-324),
        ] {
            assert_eq!(parse_double(text.as_bytes()), Some(number), "{text:?}");
        }
    }

    /// Each was refused by Redis 7.2.6 as a score.
    #[test]
    fn what_c_does_not_read_to_the_end_is_no_double() {
        for text in [
            "",
            " ",
            " 1",
            "\t1",
            "1 ",
            "+",
            "-",
            ".",
            "+.",
            "e5",
            ".e5",
            "1e",
            "1e+",
            "1e5x",
            "--1",
            "+-1",
            "nan",
            "-nan",
            "nan(1)",
            "infi",
            "in",
            "1_000",
            "1,5",
            "0x",
            "0x.",
            "0xp1",
            "0x1p",
            "0x1p+",
            "0xg",
            "0x1.8.1",
            "1\0",
            "1e309",
            "-1e309",
            "1e-400",
            "-1e-400",
            "2e-324",
            "0x1p1024",
            "0x1p-1076",
            "0x1.fffffffffffff8p1023",
            "1e99999999999999999999",
            "\u{661}",
        ] {
            assert_eq!(parse_double(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn hexadecimal_digits_beyond_64_bits_only_break_ties() {
        let tie = parse_double(b"0x1.00000000000008");
        let above_tie = parse_double(b"0x1.000000000000080000000000000001");
        assert_eq!(tie, Some(1.0));
        assert_eq!(above_tie, Some(1.0 + f64::EPSILON));
        assert_eq!(
            parse_double(b"0x100000000000000000000"),
            Some(2_f64.powi(80))
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_double_that_is_written_reads_back_as_itself(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(!number.is_nan());
            let text = format_double(number);
            prop_assert_eq!(parse_double(text.as_bytes()).map(f64::to_bits), Some(bits), "{}", text);
        }

        #[test]
        fn an_integer_that_is_written_reads_back_as_itself(number: i64) {
            prop_assert_eq!(parse_i64(number.to_string().as_bytes()), Some(number));
        }

        #[test]
        fn integers_have_one_text(text in "[-+0-9]{0,22}") {
            if let Some(number) = parse_i64(text.as_bytes()) {
                prop_assert_eq!(number.to_string(), text);
            }
        }

        #[test]
        fn decimal_texts_read_as_the_standard_parser_reads_them(
            text in "[-+]?[0-9]{1,20}(\\.[0-9]{0,20})?(e[-+]?[0-9]{1,2})?"
        ) {
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(parse_double(text.as_bytes()).map(f64::to_bits), Some(expected.to_bits()));
        }

        #[test]
        fn hexadecimal_texts_have_the_value_of_their_digits(number: u64, exponent in -1000_i32..900) {
            #[allow(clippy::cast_precision_loss)]
            let expected = number as f64 * 2_f64.powi(exponent);
            prop_assume!(number != 0);
            let text = format!("0x{number:x}p{exponent}");
            prop_assert_eq!(parse_double(text.as_bytes()), Some(expected), "{}", text);
        }

        #[test]
        fn no_text_makes_reading_panic(text: Vec<u8>) {
            let _ = (parse_i64(&text), parse_double(&text));
        }
    }

    #[test]
    fn what_underflows_is_what_loses_digits_below_the_normal_numbers() {
        let smallest = format!("{:.1074}", f64::from_bits(1));
        let digits = smallest.trim_start_matches(['0', '.']);
        let with_exponent = format!("{}.{}e-324", &digits[..1], &digits[1..]);
        let inexact = smallest.replace('4', "5");
        for (text, underflows) in [
            ("0x1p-1074", false),
            ("-0x1p-1074", false),
            ("0x1.8p-1074", true),
            ("0x0.0000000000001p-1022", false),
            ("0x0.fffffffffffffp-1022", false),
            // Has 53 bits, so that a greater exponent would not round it up.
            ("0x0.fffffffffffff8p-1022", true),
            ("0x0.fffffffffffffcp-1022", false),
            ("0x1.00000000000000000000p-1050", false),
            ("0x1.00000000000000000000000001p-1050", true),
            ("0x1p-1022", false),
            ("0x1.00000000000008p-1022", false),
            ("5e-324", true),
            ("1e-310", true),
            ("1e-300", false),
            ("0", false),
            ("-inf", false),
            (&smallest, false),
            (&format!("-00{smallest}00"), false),
            (&with_exponent, false),
            (&inexact, true),
        ] {
            assert!(parse_double(text.as_bytes()).is_some(), "{text}");
            let strict = parse_double_without_underflow(text.as_bytes());
            assert_eq!(strict.is_none(), underflows, "{text}");
        }
    }
}
