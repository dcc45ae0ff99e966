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
        // Of 53 bits, so that a greater exponent would not round it up.
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
