//! Hashes of keys for data that is only in memory: [filters](super::filter) and the
//! [cache](super::snapshot_cache) of a transaction.

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(FACTOR);
    (product >> 64) as u64 ^ product as u64
}

/// A hash in which every bit is well mixed.
pub(super) fn hash_of(key: &[u8]) -> u64 {
    let mut words = key.chunks_exact(8);
    let mut hash = key.len() as u64 ^ FACTOR;
    for word in words.by_ref() {
        hash = mix(hash, word.try_into().map_or(0, u64::from_le_bytes));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(words.remainder()) {
        *to = *from;
    }
    mix(mix(hash, u64::from_le_bytes(last)), FACTOR)
}
