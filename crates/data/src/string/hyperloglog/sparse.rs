//! The sparse encoding: runs of registers of equal value.
//!
//! | bits | registers |
//! |---|---|
//! | `00llllll` | up to 64 zeros |
//! | `01llllll llllllll` | up to 16,384 zeros |
//! | `1vvvvvll` | up to 4 of a value up to 32 |
//!
//! The stored lengths and values are one less.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use super::dense::{HEADER_BYTES, REGISTERS};

/// The greatest value of a run.
const VALUE_MAX: u8 = 32;
const VALUE_RUN_MAX: usize = 4;
const SHORT_ZEROS_MAX: usize = 64;
/// Number of runs to examine after a change, to join equal ones.
const JOINED_RUNS: usize = 5;

/// A run of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Zeros(usize),
    LongZeros(usize),
    Values(u8, usize),
}

impl Run {
    /// The run that begins at `at`. As in Redis, a missing last byte is 0.
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let first = *bytes.get(at)?;
        let low = usize::from(first & 0x3f);
        Some(match first >> 6 {
            0 => Self::Zeros(low + 1),
            1 => {
                let second = bytes.get(at + 1).copied().unwrap_or(0);
                Self::LongZeros((low << 8 | usize::from(second)) + 1)
            }
            _ => Self::Values((first >> 2 & 0x1f) + 1, usize::from(first & 0x03) + 1),
        })
    }

    fn registers(self) -> usize {
        match self {
            Self::Zeros(count) | Self::LongZeros(count) | Self::Values(_, count) => count,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::LongZeros(_) => 2,
            Self::Zeros(_) | Self::Values(..) => 1,
        }
    }

    /// A run in the fewest bytes.
    fn of(value: u8, count: usize) -> Self {
        match value {
            0 if count > SHORT_ZEROS_MAX => Self::LongZeros(count),
            0 => Self::Zeros(count),
            value => Self::Values(value, count),
        }
    }

    fn value(self) -> u8 {
        match self {
            Self::Zeros(_) | Self::LongZeros(_) => 0,
            Self::Values(value, _) => value,
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn write(self, to: &mut Vec<u8>) {
        let length = self.registers().saturating_sub(1);
        match self {
            Self::Zeros(_) => to.push(length as u8),
            Self::LongZeros(_) => to.extend([0x40 | (length >> 8) as u8, length as u8]),
            Self::Values(value, _) => to.push(0x80 | (value - 1) << 2 | length as u8),
        }
    }
}

/// As PFDEBUG DECODE shows it.
impl Display for Run {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros(count) => write!(to, "z:{count}"),
            Self::LongZeros(count) => write!(to, "Z:{count}"),
            Self::Values(value, count) => write!(to, "v:{value},{count}"),
        }
    }
}

/// The runs, each with its offset.
fn runs(bytes: &[u8]) -> impl Iterator<Item = (usize, Run)> {
    let mut next = HEADER_BYTES;
    std::iter::from_fn(move || {
        let at = next;
        let run = Run::at(bytes, at)?;
        next += run.bytes();
        Some((at, run))
    })
}

/// Writes one run of all registers, with value 0.
pub(super) fn write_empty(bytes: &mut Vec<u8>) {
    Run::of(0, REGISTERS).write(bytes);
}

/// The runs as PFDEBUG DECODE shows them.
pub(super) fn describe(bytes: &[u8]) -> String {
    let texts: Vec<String> = runs(bytes).map(|(_, run)| run.to_string()).collect();
    texts.join(" ")
}

/// The registers that are not 0, in runs of one value. `None` if the runs have more or fewer registers than a
/// HyperLogLog.
pub(super) fn values(bytes: &[u8]) -> Option<Vec<(Range<usize>, u8)>> {
    let mut found = Vec::new();
    let mut first = 0;
    for (_, run) in runs(bytes) {
        let end = first + run.registers();
        if end > REGISTERS {
            return None;
        }
        if run.value() > 0 {
            found.push((first..end, run.value()));
        }
        first = end;
    }
    (first == REGISTERS).then_some(found)
}

/// The result of [`raise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raised {
    /// The register already had the value, or a greater one.
    Not,
    /// The register has the value now.
    Yes,
    /// The value does not fit: the encoding must become dense.
    NoRoom,
    /// The register is missing.
    Corrupt,
}

/// Raises a register to a value. The string, header included, grows to at most `bytes_max`.
pub(super) fn raise(bytes: &mut Vec<u8>, index: usize, value: u8, bytes_max: usize) -> Raised {
    if value > VALUE_MAX {
        return Raised::NoRoom;
    }
    let mut first = 0;
    let mut before = HEADER_BYTES;
    let mut found = None;
    for (at, run) in runs(bytes) {
        if index < first + run.registers() {
            found = Some((at, run));
            break;
        }
        first += run.registers();
        before = at;
    }
    let Some((at, run)) = found else {
        return Raised::Corrupt;
    };
    if run.value() >= value {
        return Raised::Not;
    }
    let last = first + run.registers() - 1;
    let mut replacement = Vec::with_capacity(5);
    if index > first {
        Run::of(run.value(), index - first).write(&mut replacement);
    }
    Run::of(value, 1).write(&mut replacement);
    if index < last {
        Run::of(run.value(), last - index).write(&mut replacement);
    }
    let end = (at + run.bytes()).min(bytes.len());
    let length = bytes.len() - (end - at) + replacement.len();
    if length > bytes.len() && length > bytes_max {
        return Raised::NoRoom;
    }
    bytes.splice(at..end, replacement);
    join_alike(bytes, before);
    Raised::Yes
}

/// Joins adjacent runs of one value. Examines a few runs, starting at `from`.
fn join_alike(bytes: &mut Vec<u8>, from: usize) {
    let mut at = from;
    for _ in 0..JOINED_RUNS {
        let Some(run) = Run::at(bytes, at) else {
            return;
        };
        match (run, Run::at(bytes, at + run.bytes())) {
            (Run::Values(value, count), Some(Run::Values(other, others)))
                if value == other && count + others <= VALUE_RUN_MAX =>
            {
                let mut joined = Vec::with_capacity(1);
                Run::of(value, count + others).write(&mut joined);
                bytes.splice(at..at + 2, joined);
            }
            _ => at += run.bytes(),
        }
    }
}
