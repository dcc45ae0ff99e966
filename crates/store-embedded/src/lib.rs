//! The embedded store: one folder on one machine, with LMDB.
//!
//! One transaction writes at a time. Any number of transactions read snapshots. A commit appends a
//! record to the [journal] and changes the rows in [memory]. Later a [drain] writes the rows of many
//! commits into LMDB's file, and a [checkpoint] syncs that file. After a crash the journal has
//! everything since the last checkpoint.
//!
//! A second write transaction waits for the first, so a thread must never open two.
//!
//! The store knows no layout: keys and values are bytes.
//!
//! A function that reads or writes files fails when that fails. Its comment names only other
//! errors.

mod archive;
mod as_store;
mod background;
mod backup;
mod bulk;
mod checkpoint;
mod checksum;
mod create;
mod data_file;
mod dirty;
mod drain;
mod error;
mod folder;
mod identity;
mod in_use;
mod inspect;
mod journal;
mod lock;
mod marker;
mod memory;
mod opening;
mod options;
mod ordered_writer;
mod ranges;
mod replay;
mod resident;
mod restore;
mod rewrite;
mod room;
mod row;
mod shared;
mod snapshot;
mod standby;
mod standby_note;
mod start;
mod store;
mod sync;
mod table;
mod transaction;
mod tree;
mod verify;
mod watch;
mod writeback;
mod writer;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use self::archive::{
    ArchiveError, ArchiveStatus, ArchiveTail, Archived, CommandStatus, Limit, Reached, TailEnd,
    read_archive,
};
pub use self::backup::Moment;
pub use self::bulk::Written;
pub use self::checkpoint::CheckpointState;
pub use self::checksum::DamagedRow;
pub use self::create::sync_folder;
pub use self::data_file::DataFileError;
pub use self::error::{BulkError, OpenError, Refusal};
pub use self::folder::has_store;
pub use self::inspect::{Inspection, inspect};
pub use self::journal::{JournalDamage, JournalFile};
pub use self::lock::is_in_use;
pub use self::lock::is_locked;
pub use self::marker::StoreId;
pub use self::options::{EmbeddedOptions, FsyncPolicy};
pub use self::restore::{Replaying, Restoration, RestoreError};
pub use self::rewrite::{Compacted, compact, make_store};
pub use self::standby::Standby;
pub use self::standby_note::followed_store;
pub use self::store::{EmbeddedStore, Summary};
pub use self::verify::Verified;
