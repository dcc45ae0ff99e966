//! Floating-point numbers with 64 bits of significand: x86's `long double`, in which Redis
//! calculates INCRBYFLOAT and HINCRBYFLOAT, and in whose digits it answers coordinates.

use std::fmt::{self, Display, Formatter};
use std::ops::Add;

use super::natural::Natural;
use super::{hex_value, parse_binary_exponent};

/// Longer texts are no numbers (Redis: `MAX_LONG_DOUBLE_CHARS`, which counts a final zero byte).
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// The exponent of numbers with fewer than 64 significant bits.
const EXPONENT_MIN: i64 = -16_445;
/// The exponent of the greatest numbers.
const EXPONENT_MAX: i64 = 16_320;
const SIGNIFICAND_BITS: i64 = 64;
/// Digits after the point that are written.
const FRACTION_DIGITS: usize = 17;
const FRACTION_SCALE: u128 = 100_000_000_000_000_000;

/// A number of the x87's 80-bit format.
///
/// [`Add`] rounds to nearest, ties to even, as the x87 does. [`Display`] writes what Redis's
/// `ld2string` writes for people: 17 digits after the point, without the zeros at the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongDouble {
    is_negative: bool,
    magnitude: Magnitude,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Magnitude {
    /// `significand * 2^exponent`. The first bit of the significand is set, except where the
    /// exponent is [`EXPONENT_MIN`]; 0 has that one.
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

    /// Reads a number as Redis's `string2ld` does (C's `strtold` over the whole text).
    ///
    /// Reads `inf` and `infinity` in any case, `0x` hexadecimal numbers and decimal ones. Refuses
    /// the empty text, leading or trailing anything, `nan`, texts of 5120 bytes and more, and
    /// numbers other than 0 that are too large or would become 0.
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
    // Of the first digit: what is far outside of the format need not be calculated.
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
    // Both get equally many bits, so that the first bit of the quotient is one of the first two.
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
                // Too far to be a digit, but not too far to break a tie.
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

/// What is before the exponent, and the exponent, 0 where there is none.
fn split_exponent(text: &[u8], marks: [u8; 2]) -> Option<(&[u8], i64)> {
    let Some(at) = text.iter().position(|byte| marks.contains(byte)) else {
        return Some((text, 0));
    };
    let exponent = parse_binary_exponent(text.get(at + 1..)?)?;
    Some((text.get(..at)?, exponent))
}

/// The magnitude, unless it is beyond what the format holds.
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

/// The significand with so many bits after it; of bits that are shifted out, one remains.
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

#[cfg(test)]
mod tests;
