//! How an embedded store is opened.

use quoin_base::limits;

/// When an acknowledged write is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsyncPolicy {
    /// Before it is acknowledged. Every commit is synced, and a power failure loses nothing.
    #[default]
    Always,
    /// Within about a second. If syncs take longer, writes wait, so that at most two seconds of
    /// writes are not on the disk. A crash of the process loses nothing. A power failure or a crash
    /// of the operating system loses the writes of the last second or two, and the store goes back
    /// to an earlier state.
    EverySecond,
}

/// How to open an embedded store.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// When commits are synced.
    pub fsync: FsyncPolicy,
    /// Maximum size of the data file in bytes, rounded down to a multiple of 64 KiB. It reserves
    /// address space, not memory or disk space.
    pub map_bytes: usize,
    /// Estimated memory of rows, in bytes. Above it, rows that the data file has are evicted.
    pub memory_bytes_max: usize,
    /// Whether to open a copy of a folder that was not closed cleanly. Its files may be from
    /// different moments.
    pub accepts_copy: bool,
    /// Whether to open a store whose journal is damaged, without the commits from the damage on.
    pub accepts_journal_loss: bool,
    /// Whether all commits are those of the store that a [standby](super::Standby) follows.
    pub follows: bool,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            fsync: FsyncPolicy::default(),
            map_bytes: limits::EMBEDDED_MAP_BYTES,
            memory_bytes_max: usize::MAX,
            accepts_copy: false,
            accepts_journal_loss: false,
            follows: false,
        }
    }
}
