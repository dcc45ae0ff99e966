//! What both encodings share: the header and how many registers follow it.

/// Bits of a hash that choose the register.
pub(super) const REGISTER_BITS: u32 = 14;
/// Registers of a HyperLogLog.
pub(super) const REGISTERS: usize = 1 << REGISTER_BITS;
/// `HYLL`, the encoding, three bytes without a meaning, and the last estimate in eight.
pub(super) const HEADER_BYTES: usize = 16;
