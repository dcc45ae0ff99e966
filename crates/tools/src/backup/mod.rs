//! Backups of the embedded store. A backup is one file with all rows as of one moment, made while
//! the store is in use. docs/operate/backup.md is the manual.
//!
//! [`Backups`] makes them in a running server, for BGSAVE and SAVE. [`make`] is `quoin backup`,
//! which asks such a server, or reads a stopped store. [`restore`] is `quoin restore`, and
//! [`follow`] its `--follow`.

mod file;
mod folder;
mod follow;
mod make;
mod restore;
mod service;

pub use file::{BackupError, BackupFile, Damage, Header, Totals};
pub use folder::Written;
pub use follow::{FollowFailure, Followed, follow};
pub use make::{AskError, Made, MakeError, Options, make};
pub use restore::{
    RestoreFailure, RestoreOptions, Restored, parse_restore, restore, restore_command,
};
pub use service::{Backups, Current, LastGood, Retention, StartError, Status};
