//! Values that a running server reads at each command and CONFIG SET changes, as atomic numbers.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::settings::{MemoryLimit, OutputLimit, OutputLimits};
use quoin_base::events::{EventClasses, EventSwitch};

/// A value with an atomic cell.
pub trait Live: Copy {
    /// What holds it.
    type Cell: Default;

    /// The value of a cell. Of several numbers a change may be seen in parts, for a moment.
    fn load(cell: &Self::Cell) -> Self;
    /// Puts the value into a cell.
    fn store(self, cell: &Self::Cell);
}

macro_rules! live_numbers {
    ($($type:ty: $cell:ty),+) => {$(
        impl Live for $type {
            type Cell = $cell;

            fn load(cell: &$cell) -> Self {
                cell.load(Ordering::Relaxed)
            }

            fn store(self, cell: &$cell) {
                cell.store(self, Ordering::Relaxed);
            }
        }
    )+};
}

live_numbers!(bool: AtomicBool, u32: AtomicU32, u64: AtomicU64, i64: AtomicI64);

impl Live for EventClasses {
    type Cell = EventSwitch;

    fn load(cell: &EventSwitch) -> Self {
        cell.classes()
    }

    fn store(self, cell: &EventSwitch) {
        cell.set(self);
    }
}

impl Live for OutputLimit {
    type Cell = (AtomicU64, AtomicU64, AtomicU32);

    fn load((hard, soft, seconds): &Self::Cell) -> Self {
        OutputLimit {
            hard_bytes: Live::load(hard),
            soft_bytes: Live::load(soft),
            soft_s: Live::load(seconds),
        }
    }

    fn store(self, (hard, soft, seconds): &Self::Cell) {
        Live::store(self.hard_bytes, hard);
        Live::store(self.soft_bytes, soft);
        Live::store(self.soft_s, seconds);
    }
}

impl Live for OutputLimits {
    type Cell = [<OutputLimit as Live>::Cell; 3];

    fn load([normal, replica, subscriber]: &Self::Cell) -> Self {
        OutputLimits {
            normal: Live::load(normal),
            replica: Live::load(replica),
            subscriber: Live::load(subscriber),
        }
    }

    fn store(self, [normal, replica, subscriber]: &Self::Cell) {
        Live::store(self.normal, normal);
        Live::store(self.replica, replica);
        Live::store(self.subscriber, subscriber);
    }
}

/// The bit of a percentage.
const PERCENT: u64 = 1 << 63;

impl Live for MemoryLimit {
    type Cell = AtomicU64;

    fn load(cell: &AtomicU64) -> Self {
        match cell.load(Ordering::Relaxed) {
            bytes if bytes & PERCENT == 0 => MemoryLimit::Bytes(bytes),
            percent => MemoryLimit::Percent(u8::try_from(percent & !PERCENT).unwrap_or(u8::MAX)),
        }
    }

    fn store(self, cell: &AtomicU64) {
        let number = match self {
            MemoryLimit::Bytes(bytes) => bytes & !PERCENT,
            MemoryLimit::Percent(percent) => PERCENT | u64::from(percent),
        };
        cell.store(number, Ordering::Relaxed);
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
            let cell = AtomicU64::default();
            limit.store(&cell);
            assert_eq!(MemoryLimit::load(&cell), limit);
        }
    }
}
