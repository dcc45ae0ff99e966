//! The header and the number of registers; the dense encoding: six bits for each register, the first in the
//! lowest bits.

/// Bits of a hash that choose the register.
pub(super) const REGISTER_BITS: u32 = 14;
/// Registers of a HyperLogLog.
pub(super) const REGISTERS: usize = 1 << REGISTER_BITS;
/// `HYLL`, the encoding, three unused bytes, and the last estimate in eight.
pub(super) const HEADER_BYTES: usize = 16;

const VALUE_BITS: usize = 6;
const VALUE_MASK: u32 = (1 << VALUE_BITS) - 1;
/// Bytes of a dense HyperLogLog.
pub(super) const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * VALUE_BITS / 8;

/// The first byte and bit of a register.
fn position(index: usize) -> (usize, usize) {
    let bit = index * VALUE_BITS;
    (HEADER_BYTES + bit / 8, bit % 8)
}

/// Raises a register to a value. Returns false if it already has that value or a greater one.
pub(super) fn raise(bytes: &mut [u8], index: usize, value: u8) -> bool {
    let (at, shift) = position(index);
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let both = u32::from(byte(at)) | u32::from(byte(at + 1)) << 8;
    let value = u32::from(value) & VALUE_MASK;
    if value <= both >> shift & VALUE_MASK {
        return false;
    }
    let [low, high, ..] = (both & !(VALUE_MASK << shift) | value << shift).to_le_bytes();
    for (at, byte) in [(at, low), (at + 1, high)] {
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
    }
    true
}

/// The value of each register.
pub(super) fn values(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let registers = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let (triples, _) = registers.as_chunks::<3>();
    triples.iter().flat_map(|[first, second, third]| {
        let mask = 0x3f;
        [
            first & mask,
            (first >> 6 | second << 2) & mask,
            (second >> 4 | third << 4) & mask,
            third >> 2,
        ]
    })
}
