use proptest::prelude::*;

use super::*;

fn read(text: &str) -> LongDouble {
    LongDouble::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn sums_have_the_digits_of_the_x87() {
    for (first, second, sum) in [
        ("0", "0", "0"),
        ("-0", "-0", "0"),
        ("0.1", "0.2", "0.3"),
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("3", "-1.5", "1.5"),
        ("1e15", "0.001", "1000000000000000.0009765625"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("18446744073709551615", "1", "18446744073709551616"),
        // A tie, which becomes even.
        ("18446744073709551616", "1", "18446744073709551616"),
        ("18446744073709551618", "1", "18446744073709551620"),
        ("1", "1e-18", "1"),
        ("1", "-1e-17", "0.99999999999999999"),
        ("1e-17", "0", "0.00000000000000001"),
        ("1e-18", "0", "0"),
        ("-1e-4950", "0", "0"),
        // A tie of the digits, which becomes even.
        ("0x1p-18", "0", "0.00000381469726562"),
        ("0x1.8p-17", "0", "0.00001144409179688"),
        ("0x1p62", "0x.8p0", "4611686018427387904.5"),
        ("0x1p64", "0x1.fffffffffffffffp0", "18446744073709551618"),
        ("inf", "1", "inf"),
        ("-inf", "-inf", "-inf"),
        ("-inf", "inf", "nan"),
    ] {
        let found = read(first) + read(second);
        assert_eq!(found.to_string(), sum, "{first} + {second}");
        assert_eq!(found.is_finite(), !sum.ends_with(['f', 'n']), "{sum}");
        assert_eq!((read(second) + read(first)).to_string(), sum);
    }
}

#[test]
fn the_greatest_numbers_are_written_in_full_and_overflow() {
    let greatest = read("0x1.fffffffffffffffep16383");
    let text = greatest.to_string();
    assert!(text.starts_with("118973149535723176502126385303097020516906332229462"));
    assert_eq!(text.len(), 4_933);
    assert_eq!(read(&text), greatest);
    assert!(!(greatest + greatest).is_finite());
    assert_eq!(greatest + read("1"), greatest);
    for text in ["0x1p16384", "1.2e4932", "1e99999999999999999999", "9e4932"] {
        assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_least_numbers_are_read_and_less_is_refused() {
    let least = read("0x1p-16445");
    assert_eq!(read("3.6e-4951"), least);
    assert_eq!(read("1.9e-4951"), least);
    assert_eq!(read("0x1.8p-16446"), least);
    assert_eq!(least + read("-0x1p-16445"), LongDouble::ZERO);
    for text in ["1.8e-4951", "0x1p-16446", "1e-5000", "-1e-99999999999"] {
        assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn other_texts_are_no_numbers() {
    for text in [
        "", " 1", "1 ", "+", "-", ".", "e5", "1e", "1e+", "1e5.", "1.2.3", "--1", "0x", "0x.",
        "0xp1", "0x1p", "nan", "-nan", "nan(1)", "infx", "in", "1_0", "1,5", "1\0", "é",
    ] {
        assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
    }
    for (text, number) in [
        ("5.", "5"),
        (".5", "0.5"),
        ("+1e+1", "10"),
        ("0e99999999999", "0"),
        ("0X.8P1", "1"),
        ("-Infinity", "-inf"),
        ("1E-2", "0.01"),
    ] {
        assert_eq!(read(text).to_string(), number, "{text:?}");
    }
    let long = |digits: usize| format!("0.{}", "0".repeat(digits - 2));
    assert!(LongDouble::parse(long(5_119).as_bytes()).is_some());
    assert!(LongDouble::parse(long(5_120).as_bytes()).is_none());
}

#[test]
fn long_mantissas_count_to_their_last_digit() {
    let exact = "4611686018427387904.5";
    assert_eq!(read(exact).to_string(), exact);
    // Halfway between two numbers, and a little more.
    let halfway = "18446744073709551617";
    assert_eq!(read(halfway).to_string(), "18446744073709551616");
    let above = format!("{halfway}.{}1", "0".repeat(5_000));
    assert_eq!(read(&above).to_string(), "18446744073709551618");
    let above = format!("{halfway}{}1e-4001", "0".repeat(4_000));
    assert_eq!(read(&above).to_string(), "18446744073709551618");
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text: Vec<u8>) {
        let _ = LongDouble::parse(&text);
    }

    #[test]
    fn doubles_are_kept(bits: u64) {
        let number = f64::from_bits(bits);
        let wide = LongDouble::from(number);
        prop_assert_eq!(wide.is_finite(), number.is_finite());
        if number.is_finite() {
            // All digits of the double.
            let exact = format!("{number:.1074}");
            prop_assert_eq!(read(&exact), wide);
        }
    }

    #[test]
    fn whole_numbers_add_up(first: i64, second: i64) {
        let sum = read(&first.to_string()) + read(&second.to_string());
        prop_assert_eq!(sum.to_string(), (i128::from(first) + i128::from(second)).to_string());
    }

    #[test]
    fn what_is_written_is_read_again(significand: u64, exponent in -57_i64..16_000) {
        let number = read(&format!("{significand:#x}p{exponent}"));
        // Seventeen digits hold all bits of numbers that are not small.
        if significand >> 62 != 0 && exponent > -17 {
            prop_assert_eq!(read(&number.to_string()), number);
        }
    }
}
