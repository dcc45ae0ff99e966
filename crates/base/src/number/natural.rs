//! Whole numbers of any size, as far as decimal floating-point texts need them.

use std::cmp::Ordering;

const WORD_BITS: u64 = 32;
/// The greatest power of ten that one word holds, and its digits.
const DECIMAL_CHUNK: u32 = 1_000_000_000;
const DECIMAL_CHUNK_DIGITS: usize = 9;
/// The greatest power of five that one word holds, and its exponent.
const FIVES_CHUNK: u32 = 1_220_703_125;
const FIVES_CHUNK_EXPONENT: u64 = 13;

/// A whole number from 0 on. Its last word, the most significant one, is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Natural {
    words: Vec<u32>,
}

impl Natural {
    /// The number that decimal digits say; other bytes are passed over.
    pub(super) fn from_decimal(text: &[u8]) -> Self {
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
    pub(super) fn multiply_by_fives(&mut self, mut exponent: u64) {
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
    pub(super) fn shift_left(&mut self, exponent: u64) {
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

    /// Takes away a number that is not greater.
    pub(super) fn subtract(&mut self, other: &Self) {
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

    /// Its first bits, up to 128, the last of them set if any bit after them is, and how many bits
    /// are after them.
    pub(super) fn leading_bits(&self) -> (u128, u64) {
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
    pub(super) fn to_decimal(&self) -> String {
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
