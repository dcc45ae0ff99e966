//! Limits that every connection asks for and CONFIG SET changes, as atomic numbers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::settings::{MemoryLimit, OutputLimit};

/// An [`OutputLimit`]. A change may be seen in parts, for a moment.
#[derive(Debug)]
pub(super) struct AtomicOutputLimit {
    hard_bytes: AtomicU64,
    soft_bytes: AtomicU64,
    soft_s: AtomicU32,
}

impl AtomicOutputLimit {
    pub(super) fn new(limit: OutputLimit) -> Self {
        Self {
            hard_bytes: AtomicU64::new(limit.hard_bytes),
            soft_bytes: AtomicU64::new(limit.soft_bytes),
            soft_s: AtomicU32::new(limit.soft_s),
        }
    }

    pub(super) fn load(&self) -> OutputLimit {
        OutputLimit {
            hard_bytes: self.hard_bytes.load(Ordering::Relaxed),
            soft_bytes: self.soft_bytes.load(Ordering::Relaxed),
            soft_s: self.soft_s.load(Ordering::Relaxed),
        }
    }

    pub(super) fn store(&self, limit: OutputLimit) {
        self.hard_bytes.store(limit.hard_bytes, Ordering::Relaxed);
        self.soft_bytes.store(limit.soft_bytes, Ordering::Relaxed);
        self.soft_s.store(limit.soft_s, Ordering::Relaxed);
    }
}

/// A [`MemoryLimit`]: a percentage has the highest bit set.
#[derive(Debug)]
pub(super) struct AtomicMemoryLimit(AtomicU64);

const PERCENT: u64 = 1 << 63;

impl AtomicMemoryLimit {
    pub(super) fn new(limit: MemoryLimit) -> Self {
        let this = Self(AtomicU64::new(0));
        this.store(limit);
        this
    }

    pub(super) fn load(&self) -> MemoryLimit {
        match self.0.load(Ordering::Relaxed) {
            bytes if bytes & PERCENT == 0 => MemoryLimit::Bytes(bytes),
            percent => MemoryLimit::Percent(u8::try_from(percent & !PERCENT).unwrap_or(u8::MAX)),
        }
    }

    pub(super) fn store(&self, limit: MemoryLimit) {
        let number = match limit {
            MemoryLimit::Bytes(bytes) => bytes & !PERCENT,
            MemoryLimit::Percent(percent) => PERCENT | u64::from(percent),
        };
        self.0.store(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_out_as_they_went_in() {
        for limit in [
            MemoryLimit::Bytes(0),
            MemoryLimit::Bytes(i64::MAX as u64),
            MemoryLimit::Percent(1),
            MemoryLimit::Percent(100),
        ] {
            assert_eq!(AtomicMemoryLimit::new(limit).load(), limit);
        }
    }
}
