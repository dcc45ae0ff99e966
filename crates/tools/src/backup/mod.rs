//! Backups of the embedded store. A backup is one file with all rows of one moment, made while the
//! store is in use. docs/operate/backup.md is the manual.
//!
//! [`Backups`] makes them in a running server, for BGSAVE and SAVE. [`make`] is `quoin backup`, which
//! asks such a server, or reads a stopped store. [`restore`] is `quoin restore`.

mod ask;
mod bar;
mod error;
mod folder;
mod format;
mod make;
mod priority;
mod read;
mod restore;
mod service;
mod write;

pub use ask::AskError;
pub use error::{BackupError, Damage};
pub use format::{Header, Totals};
pub use make::{Made, MakeError, Options, make};
pub use read::BackupFile;
pub use restore::{
    RestoreFailure, RestoreOptions, Restored, parse_restore, restore, restore_command,
};
pub use service::{Backups, Current, LastGood, Retention, StartError, Status};
pub use write::Written;
