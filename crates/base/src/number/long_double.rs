//! Floating-point numbers with 64 bits of significand: x86's `long double`. Redis uses it to calculate
//! INCRBYFLOAT and HINCRBYFLOAT, and to print coordinates.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};
use std::ops::{Add, Sub};

use super::{hex_value, parse_binary_exponent};

/// Longer texts are not numbers (Redis: `MAX_LONG_DOUBLE_CHARS`, which counts a final zero byte).
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;

/// The exponent of numbers with fewer than 64 significant bits.
const EXPONENT_MIN: i64 = -16_445;

/// The exponent of the greatest numbers.
const EXPONENT_MAX: i64 = 16_320;
const SIGNIFICAND_BITS: i64 = 64;

/// Digits after the point that are written.
const FRACTION_DIGITS: usize = 17;
const FRACTION_SCALE: u128 = 100_000_000_000_000_000;

/// A number in the x87's 80-bit format.
///
/// [`Add`] rounds to nearest, ties to even, like the x87. [`Display`] writes Redis's human-readable
/// form (`ld2string`): 17 decimals, without trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongDouble {
    is_negative: bool,
    magnitude: Magnitude,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Magnitude {
    /// `significand * 2^exponent`. The first bit of the significand is set, unless the exponent is
    /// [`EXPONENT_MIN`]; 0 has that exponent.
    Finite {
        significand: u64,
        exponent: i64,
    },
    Infinite,
    NotANumber,
}

const ZERO: Magnitude = Magnitude::Finite {
    significand: 0,
    exponent: EXPONENT_MIN,
};

impl LongDouble {
    /// Zero.
    pub const ZERO: Self = Self {
        is_negative: false,
        magnitude: ZERO,
    };

    /// The greatest number.
    pub const MAX: Self = Self {
        is_negative: false,
        magnitude: Magnitude::Finite {
            significand: u64::MAX,
            exponent: EXPONENT_MAX,
        },
    };

    /// The least number.
    pub const MIN: Self = Self {
        is_negative: true,
        ..Self::MAX
    };

    /// Parses a number like Redis's `string2ld` (C's `strtold` over the whole text).
    ///
    /// Accepts `inf` and `infinity` in any case, `0x` hexadecimal numbers and decimal ones. Refuses
    /// the empty text, anything before or after the number, `nan`, texts of 5120 bytes and more,
    /// and numbers other than 0 that are too large or would become 0.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (is_negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let is_infinite = [&b"inf"[..], b"infinity"]
            .iter()
            .any(|name| text.eq_ignore_ascii_case(name));
        let magnitude = match text {
            _ if is_infinite => Magnitude::Infinite,
            [b'0', b'x' | b'X', rest @ ..] => parse_hexadecimal(rest)?,
            decimal => parse_decimal(decimal)?,
        };
        Some(Self {
            is_negative,
            magnitude,
        })
    }

    /// Whether it is neither infinite nor the result of adding opposite infinities.
    pub fn is_finite(&self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { .. })
    }

    /// Whether it is greater than another. False if either is not a number.
    pub fn exceeds(&self, other: &Self) -> bool {
        let rank = |number: &Self| match number.magnitude {
            Magnitude::NotANumber => None,
            // Numbers are normalised, so a greater exponent is a greater number.
            Magnitude::Finite {
                significand,
                exponent,
            } => Some((exponent, significand)),
            Magnitude::Infinite => Some((i64::MAX, 0)),
        };
        let (Some(ours), Some(theirs)) = (rank(self), rank(other)) else {
            return false;
        };
        let are_zero = self.magnitude == ZERO && other.magnitude == ZERO;
        match (self.is_negative, other.is_negative) {
            _ if are_zero => false,
            (false, false) => ours > theirs,
            (true, true) => ours < theirs,
            (is_negative, _) => !is_negative,
        }
    }
}

/// Digits with an optional point, then an optional exponent.
fn parse_decimal(text: &[u8]) -> Option<Magnitude> {
    let (mantissa, mut exponent) = split_exponent(text, [b'e', b'E'])?;
    let mut has_digits = false;
    let mut has_point = false;
    for byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                has_digits = true;
                exponent -= i64::from(has_point);
            }
            b'.' if !has_point => has_point = true,
            _ => return None,
        }
    }
    if !has_digits {
        return None;
    }
    let first = mantissa.iter().position(|byte| matches!(byte, b'1'..=b'9'));
    let last = mantissa
        .iter()
        .rposition(|byte| matches!(byte, b'1'..=b'9'));
    let (Some(first), Some(last)) = (first, last) else {
        return Some(ZERO);
    };
    let significant = mantissa.get(first..=last)?;
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let count = |digits: &[u8]| i64::try_from(digits.iter().filter(is_digit).count());
    exponent += count(mantissa.get(last + 1..)?).ok()?;
    // Magnitude of the first digit. Numbers far outside of the format need not be calculated.
    let magnitude = exponent.saturating_add(count(significant).ok()?);
    if !(-5_000..=5_000).contains(&magnitude) {
        return None;
    }
    not_lost(from_decimal(Natural::from_decimal(significant), exponent))
}

/// `number * 10^exponent`, rounded.
fn from_decimal(mut number: Natural, exponent: i64) -> Magnitude {
    if exponent >= 0 {
        number.multiply_by_fives(exponent.unsigned_abs());
        let (significand, dropped) = number.leading_bits();
        return round(significand, exponent.saturating_add_unsigned(dropped));
    }
    let mut divisor = Natural::from(1);
    divisor.multiply_by_fives(exponent.unsigned_abs());
    // Both get the same number of bits, so that the quotient's first bit is one of its first two.
    let (bits, divisor_bits) = (number.bits(), divisor.bits());
    number.shift_left(divisor_bits.saturating_sub(bits));
    divisor.shift_left(bits.saturating_sub(divisor_bits));
    /// One bit that may be 0, 64 of the significand, one to round by, one for all others.
    const QUOTIENT_BITS: i64 = SIGNIFICAND_BITS + 3;
    let mut quotient = 0_u128;
    for _ in 0..QUOTIENT_BITS {
        quotient <<= 1;
        if number >= divisor {
            number.subtract(&divisor);
            quotient |= 1;
        }
        number.shift_left(1);
    }
    quotient |= u128::from(!number.is_zero());
    let shifted = exponent
        .saturating_add_unsigned(bits)
        .saturating_sub_unsigned(divisor_bits);
    round(quotient, shifted - (QUOTIENT_BITS - 1))
}

/// What follows `0x`: hexadecimal digits with an optional point, then an optional binary exponent.
fn parse_hexadecimal(text: &[u8]) -> Option<Magnitude> {
    let (mantissa, mut exponent) = split_exponent(text, [b'p', b'P'])?;
    let mut significand = 0_u128;
    let mut has_digits = false;
    let mut has_point = false;
    for byte in mantissa {
        if *byte == b'.' && !has_point {
            has_point = true;
        } else if byte.is_ascii_hexdigit() {
            has_digits = true;
            let digit = u128::from(hex_value(*byte));
            if significand >> 124 == 0 {
                significand = (significand << 4) | digit;
                exponent -= if has_point { 4 } else { 0 };
            } else {
                // Too far right to be a digit, but it can still break a tie.
                significand |= u128::from(digit != 0);
                exponent += if has_point { 0 } else { 4 };
            }
        } else {
            return None;
        }
    }
    match (has_digits, significand) {
        (false, _) => None,
        (true, 0) => Some(ZERO),
        (true, _) => not_lost(round(significand, exponent)),
    }
}

/// The part before the exponent, and the exponent. A number without an exponent has 0.
fn split_exponent(text: &[u8], marks: [u8; 2]) -> Option<(&[u8], i64)> {
    let Some(at) = text.iter().position(|byte| marks.contains(byte)) else {
        return Some((text, 0));
    };
    let exponent = parse_binary_exponent(text.get(at + 1..)?)?;
    Some((text.get(..at)?, exponent))
}

/// The magnitude, unless the format cannot hold it.
fn not_lost(magnitude: Magnitude) -> Option<Magnitude> {
    (magnitude != Magnitude::Infinite && magnitude != ZERO).then_some(magnitude)
}

/// `significand * 2^exponent` as the nearest number of the format. A significand that has lost
/// bits has its last bit set and at least 66 bits.
fn round(significand: u128, exponent: i64) -> Magnitude {
    if significand == 0 {
        return ZERO;
    }
    let bits = i64::from(u128::BITS - significand.leading_zeros());
    let unit = exponent
        .saturating_add(bits - SIGNIFICAND_BITS)
        .max(EXPONENT_MIN);
    let (kept, unit) = match u32::try_from(unit.saturating_sub(exponent)) {
        Ok(dropped) => match shift_right(significand, dropped) {
            // The carry of 64 ones.
            kept if kept >> SIGNIFICAND_BITS != 0 => (kept >> 1, unit + 1),
            kept => (kept, unit),
        },
        Err(_) => {
            let missing = u32::try_from(exponent.saturating_sub(unit)).unwrap_or(u32::MAX);
            (significand.checked_shl(missing).unwrap_or(0), unit)
        }
    };
    match u64::try_from(kept) {
        Ok(significand) if unit <= EXPONENT_MAX => Magnitude::Finite {
            significand,
            exponent: unit,
        },
        _ => Magnitude::Infinite,
    }
}

/// The number without its last bits, rounded to nearest, ties to even.
fn shift_right(number: u128, bits: u32) -> u128 {
    let Some(kept) = number.checked_shr(bits) else {
        return u128::from(bits == u128::BITS && number > 1 << (u128::BITS - 1));
    };
    let half = 1_u128 << bits.saturating_sub(1);
    let rest = number ^ (kept << bits);
    let rounds_up = bits > 0 && (rest > half || (rest == half && kept & 1 == 1));
    kept + u128::from(rounds_up)
}

impl Add for LongDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self.magnitude, other.magnitude) {
            (Magnitude::NotANumber, _) => self,
            (_, Magnitude::NotANumber) => other,
            (Magnitude::Infinite, Magnitude::Infinite) if self.is_negative != other.is_negative => {
                Self {
                    is_negative: false,
                    magnitude: Magnitude::NotANumber,
                }
            }
            (Magnitude::Infinite, _) => self,
            (_, Magnitude::Infinite) => other,
            (
                Magnitude::Finite {
                    significand: ours,
                    exponent: our_exponent,
                },
                Magnitude::Finite {
                    significand: theirs,
                    exponent: their_exponent,
                },
            ) => {
                let exponent = our_exponent.max(their_exponent) - ALIGNED_BITS;
                let ours = aligned(ours, our_exponent - exponent);
                let theirs = aligned(theirs, their_exponent - exponent);
                let (is_negative, sum) = if self.is_negative == other.is_negative {
                    (self.is_negative, ours + theirs)
                } else if ours == theirs {
                    (false, 0)
                } else if ours > theirs {
                    (self.is_negative, ours - theirs)
                } else {
                    (other.is_negative, theirs - ours)
                };
                Self {
                    is_negative,
                    magnitude: round(sum, exponent),
                }
            }
        }
    }
}

/// Bits that the greater summand gets after its significand.
const ALIGNED_BITS: i64 = 62;

/// The significand with `bits` bits after it. If bits are shifted out, the lowest bit is set.
fn aligned(significand: u64, shift: i64) -> u128 {
    let wide = u128::from(significand);
    match u32::try_from(shift) {
        Ok(shift) => wide << shift,
        Err(_) => {
            let dropped = u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX);
            let kept = wide.checked_shr(dropped).unwrap_or(0);
            let is_exact = kept.checked_shl(dropped).unwrap_or(0) == wide;
            kept | u128::from(!is_exact)
        }
    }
}

impl Sub for LongDouble {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let is_negative = !other.is_negative;
        self + Self {
            is_negative,
            ..other
        }
    }
}

impl From<f64> for LongDouble {
    fn from(number: f64) -> Self {
        const FRACTION_BITS: u32 = 52;
        let fraction = number.to_bits() & ((1 << FRACTION_BITS) - 1);
        let biased = (number.to_bits() >> FRACTION_BITS) & 0x7ff;
        let magnitude = match (biased, fraction) {
            (0x7ff, 0) => Magnitude::Infinite,
            (0x7ff, _) => Magnitude::NotANumber,
            (0, subnormal) => round(subnormal.into(), -1_074),
            (biased, fraction) => {
                let significand = fraction | 1 << FRACTION_BITS;
                let exponent = i64::try_from(biased).unwrap_or(0) - 1_075;
                round(significand.into(), exponent)
            }
        };
        Self {
            is_negative: number.is_sign_negative(),
            magnitude,
        }
    }
}

impl Display for LongDouble {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        let (significand, exponent) = match self.magnitude {
            Magnitude::NotANumber => return formatter.write_str("nan"),
            Magnitude::Infinite => return write!(formatter, "{sign}inf"),
            Magnitude::Finite {
                significand,
                exponent,
            } => (significand, exponent),
        };
        if exponent >= 0 {
            let mut whole = Natural::from(significand);
            whole.shift_left(exponent.unsigned_abs());
            return write!(formatter, "{sign}{}", whole.to_decimal());
        }
        let dropped = u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX);
        let scaled = shift_right(u128::from(significand) * FRACTION_SCALE, dropped);
        let (whole, fraction) = (scaled / FRACTION_SCALE, scaled % FRACTION_SCALE);
        let fraction = format!("{fraction:0FRACTION_DIGITS$}");
        match (whole, fraction.trim_end_matches('0')) {
            (0, "") => formatter.write_str("0"),
            (whole, "") => write!(formatter, "{sign}{whole}"),
            (whole, fraction) => write!(formatter, "{sign}{whole}.{fraction}"),
        }
    }
}

const WORD_BITS: u64 = 32;

/// The greatest power of ten that fits one word, and its number of zeros.
const DECIMAL_CHUNK: u32 = 1_000_000_000;
const DECIMAL_CHUNK_DIGITS: usize = 9;

/// The greatest power of five that fits one word, and its exponent.
const FIVES_CHUNK: u32 = 1_220_703_125;
const FIVES_CHUNK_EXPONENT: u64 = 13;

/// A non-negative integer. Its last word, the most significant one, is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Natural {
    words: Vec<u32>,
}

impl Natural {
    /// The number that decimal digits say; other bytes are passed over.
    fn from_decimal(text: &[u8]) -> Self {
        let mut number = Self::default();
        let (mut chunk, mut scale) = (0_u32, 1_u32);
        for digit in text.iter().filter(|byte| byte.is_ascii_digit()) {
            chunk = chunk * 10 + u32::from(digit - b'0');
            scale *= 10;
            if scale == DECIMAL_CHUNK {
                number.multiply_and_add(scale, chunk);
                (chunk, scale) = (0, 1);
            }
        }
        number.multiply_and_add(scale, chunk);
        number
    }

    pub(super) fn is_zero(&self) -> bool {
        self.words.is_empty()
    }

    /// How many bits it has, without leading zeros.
    pub(super) fn bits(&self) -> u64 {
        let full = u64::try_from(self.words.len()).unwrap_or(u64::MAX) * WORD_BITS;
        let leading = self.words.last().map_or(0, |word| word.leading_zeros());
        full - u64::from(leading)
    }

    /// Multiplies it by 5 to the `exponent`.
    fn multiply_by_fives(&mut self, mut exponent: u64) {
        while exponent >= FIVES_CHUNK_EXPONENT {
            self.multiply_and_add(FIVES_CHUNK, 0);
            exponent -= FIVES_CHUNK_EXPONENT;
        }
        for _ in 0..exponent {
            self.multiply_and_add(5, 0);
        }
    }

    fn multiply_and_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for word in &mut self.words {
            let product = u64::from(*word) * u64::from(factor) + carry;
            *word = low(product);
            carry = product >> WORD_BITS;
        }
        if carry != 0 {
            self.words.push(low(carry));
        }
    }

    /// Multiplies it by 2 to the `exponent`.
    fn shift_left(&mut self, exponent: u64) {
        if self.is_zero() {
            return;
        }
        let within = exponent % WORD_BITS;
        let mut carry = 0_u64;
        for word in &mut self.words {
            let shifted = u64::from(*word) << within | carry;
            *word = low(shifted);
            carry = shifted >> WORD_BITS;
        }
        if carry != 0 {
            self.words.push(low(carry));
        }
        let whole = usize::try_from(exponent / WORD_BITS).unwrap_or(usize::MAX);
        self.words.splice(0..0, std::iter::repeat_n(0, whole));
    }

    /// Subtracts a number that is not greater.
    fn subtract(&mut self, other: &Self) {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        let mut borrows = false;
        for (word, other) in self.words.iter_mut().zip(others) {
            let (difference, first) = word.overflowing_sub(other);
            let (difference, second) = difference.overflowing_sub(u32::from(borrows));
            *word = difference;
            borrows = first || second;
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Its first bits, up to 128, and the number of bits after them. The last bit is set if any bit
    /// after it is.
    fn leading_bits(&self) -> (u128, u64) {
        let mut leading = 0_u128;
        let mut taken = 0;
        for word in self.words.iter().rev().take(4) {
            leading = leading << WORD_BITS | u128::from(*word);
            taken += 1;
        }
        let rest = self.words.len().saturating_sub(taken);
        let is_odd = self.words.iter().take(rest).any(|word| *word != 0);
        let dropped = u64::try_from(rest).unwrap_or(u64::MAX) * WORD_BITS;
        (leading | u128::from(is_odd), dropped)
    }

    /// Its decimal digits.
    fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut chunks = Vec::new();
        while !rest.is_zero() {
            let mut remainder = 0_u64;
            for word in rest.words.iter_mut().rev() {
                let dividend = remainder << WORD_BITS | u64::from(*word);
                *word = low(dividend / u64::from(DECIMAL_CHUNK));
                remainder = dividend % u64::from(DECIMAL_CHUNK);
            }
            rest.trim();
            chunks.push(remainder);
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.iter().rev() {
            text.push_str(&format!("{chunk:0DECIMAL_CHUNK_DIGITS$}"));
        }
        text
    }
}

impl From<u64> for Natural {
    fn from(number: u64) -> Self {
        let mut natural = Self {
            words: vec![low(number), low(number >> WORD_BITS)],
        };
        natural.trim();
        natural
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = self.words.len().cmp(&other.words.len());
        lengths.then_with(|| self.words.iter().rev().cmp(other.words.iter().rev()))
    }
}

/// The word of the lowest bits.
#[allow(clippy::cast_possible_truncation)]
fn low(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
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
            // A tie, which rounds to even.
            ("18446744073709551616", "1", "18446744073709551616"),
            ("18446744073709551618", "1", "18446744073709551620"),
            ("1", "1e-18", "1"),
            ("1", "-1e-17", "0.99999999999999999"),
            ("1e-17", "0", "0.00000000000000001"),
            ("1e-18", "0", "0"),
            ("-1e-4950", "0", "0"),
            // A tie of the decimal digits, which rounds to even.
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
    fn numbers_are_in_order() {
        let ordered = [
            LongDouble::MIN,
            read("-1e100"),
            read("-2"),
            read("-1.5"),
            read("-1e-4940"),
            LongDouble::ZERO,
            read("1e-4950"),
            read("1e-4940"),
            read("1.5"),
            read("1.75"),
            read("2"),
            LongDouble::MAX,
            read("inf"),
        ];
        for (place, number) in ordered.iter().enumerate() {
            for (other_place, other) in ordered.iter().enumerate() {
                assert_eq!(
                    number.exceeds(other),
                    place > other_place,
                    "{number} {other}"
                );
            }
        }
        assert!(!LongDouble::ZERO.exceeds(&read("-0")));
        assert!(!read("-0").exceeds(&LongDouble::ZERO));
        let not_a_number = read("inf") - read("inf");
        assert_eq!(not_a_number.to_string(), "nan");
        assert!(!not_a_number.exceeds(&LongDouble::MIN));
        assert!(!LongDouble::MAX.exceeds(&not_a_number));
    }

    #[test]
    fn differences_are_sums() {
        assert_eq!((read("1.75") - read("2.25")).to_string(), "-0.5");
        assert_eq!((read("1") - read("1")).to_string(), "0");
        assert!(!(LongDouble::MIN - LongDouble::MAX).is_finite());
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
}
