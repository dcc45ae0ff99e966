//! How an embedded store is opened.

use crate::limits;

/// When an acknowledged write is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsyncPolicy {
    /// Before it is acknowledged: every commit is synced. Nothing is lost at a power failure.
    #[default]
    Always,
    /// Within about a second. Where syncs take longer writes wait, so that no more than two
    /// seconds of them are not on the disk. A process that dies loses nothing. A power failure or
    /// a crash of the operating system loses the writes of the last second or two: the store goes
    /// back to a state that was.
    EverySecond,
}

/// How to open an embedded store.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// When commits are synced.
    pub fsync: FsyncPolicy,
    /// The largest that the data file can become, in bytes: address space that is reserved, not
    /// memory or disk. Rounded down to a multiple of 64 KiB.
    pub map_bytes: usize,
    /// Whether a copy of a folder that was not closed in order is opened: it may have files of
    /// different moments.
    pub accepts_copy: bool,
    /// Whether to go on where the journal is damaged, without the commits from there on.
    pub accepts_journal_loss: bool,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            fsync: FsyncPolicy::default(),
            map_bytes: limits::EMBEDDED_MAP_BYTES,
            accepts_copy: false,
            accepts_journal_loss: false,
        }
    }
}
