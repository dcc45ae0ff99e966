//! Integers of any number of bits, as BITFIELD reads, adds and writes them.

/// What becomes of a number that a field cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Its highest bits are cut off.
    Wrap,
    /// It becomes the nearest that the field holds.
    Saturate,
    /// Nothing is written.
    Fail,
}

/// A type of integers: `i1` to `i64`, `u1` to `u63`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldType {
    pub(super) is_signed: bool,
    pub(super) bits: u32,
}

impl FieldType {
    /// The least and the greatest number.
    fn bounds(self) -> (i128, i128) {
        match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The number in the field's bits, which are the last of `raw`.
    pub(super) fn number(self, raw: u64) -> i64 {
        let unused = u64::BITS - self.bits;
        match self.is_signed {
            true => (raw << unused).cast_signed() >> unused,
            false => ((raw << unused) >> unused).cast_signed(),
        }
    }

    /// The number that SET makes of `number`; `None` where it fails.
    pub(super) fn set(self, number: i64, overflow: Overflow) -> Option<i64> {
        // Redis takes a negative number for a great one where the field has no sign.
        let number = match self.is_signed {
            true => i128::from(number),
            false => i128::from(number.cast_unsigned()),
        };
        self.fit(number, overflow)
    }

    /// The number that INCRBY makes of `old`; `None` where it fails.
    pub(super) fn add(self, old: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(old) + i128::from(increment), overflow)
    }

    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, greatest) = self.bounds();
        let fitting = match overflow {
            Overflow::Fail if !(least..=greatest).contains(&number) => return None,
            Overflow::Saturate => number.clamp(least, greatest),
            // The low bits are those of the field.
            _ => return Some(self.number(number as u64)),
        };
        i64::try_from(fitting).ok()
    }
}

/// Bytes that a field of 64 bits may lie in.
pub(super) const WINDOW_BYTES: usize = 9;

/// The last `bits` bits before `end` in some bytes, counted from their first bit.
pub(super) fn read_bits(window: &[u8; WINDOW_BYTES], first: u64, bits: u32) -> u64 {
    let shift = shift_of(first, bits);
    // What is above the field's bits is cut off by its type.
    (window_number(window) >> shift) as u64
}

/// Writes bits over those that are there.
pub(super) fn write_bits(window: &mut [u8; WINDOW_BYTES], first: u64, bits: u32, raw: u64) {
    let shift = shift_of(first, bits);
    let mask = ((1_u128 << bits) - 1) << shift;
    let changed = window_number(window) & !mask | (u128::from(raw) << shift) & mask;
    let bytes = changed.to_be_bytes();
    for (to, from) in window.iter_mut().rev().zip(bytes.iter().rev()) {
        *to = *from;
    }
}

fn shift_of(first: u64, bits: u32) -> u32 {
    let first = u32::try_from(first).unwrap_or(0);
    (WINDOW_BYTES as u32 * 8).saturating_sub(first + bits)
}

fn window_number(window: &[u8; WINDOW_BYTES]) -> u128 {
    window
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn field(is_signed: bool, bits: u32) -> FieldType {
        FieldType { is_signed, bits }
    }

    #[test]
    fn numbers_that_do_not_fit_wrap_saturate_or_fail() {
        let byte = field(false, 8);
        assert_eq!(byte.add(250, 10, Overflow::Wrap), Some(4));
        assert_eq!(byte.add(250, 10, Overflow::Saturate), Some(255));
        assert_eq!(byte.add(250, 10, Overflow::Fail), None);
        assert_eq!(byte.add(5, -10, Overflow::Wrap), Some(251));
        assert_eq!(byte.add(5, -10, Overflow::Saturate), Some(0));
        assert_eq!(byte.set(-1, Overflow::Saturate), Some(255));
        assert_eq!(byte.set(-1, Overflow::Fail), None);
        let long = field(true, 64);
        assert_eq!(long.add(i64::MAX, 1, Overflow::Wrap), Some(i64::MIN));
        assert_eq!(long.add(i64::MAX, 1, Overflow::Saturate), Some(i64::MAX));
        assert_eq!(long.add(i64::MIN, -1, Overflow::Fail), None);
        let bit = field(true, 1);
        assert_eq!(bit.add(0, 1, Overflow::Wrap), Some(-1));
        assert_eq!(bit.add(0, 1, Overflow::Saturate), Some(0));
        assert_eq!(field(false, 63).add(i64::MAX, 1, Overflow::Wrap), Some(0));
    }

    #[test]
    fn bits_are_read_where_they_were_written_and_nowhere_else() {
        for bits in 1..=64 {
            for first in 0..8 {
                for ground in [0x00, 0xff, 0xa5] {
                    let mut window = [ground; WINDOW_BYTES];
                    let raw = 0x0123_4567_89ab_cdef_u64;
                    write_bits(&mut window, first, bits, raw);
                    let kept = raw << (64 - bits) >> (64 - bits);
                    let read = read_bits(&window, first, bits) << (64 - bits) >> (64 - bits);
                    assert_eq!(read, kept, "{bits} from {first}");
                    let old = read_bits(&[ground; WINDOW_BYTES], first, bits);
                    write_bits(&mut window, first, bits, old);
                    assert_eq!(window, [ground; WINDOW_BYTES], "{bits} from {first}");
                }
            }
        }
    }
}
