//! Backups of the embedded store: one file with every row of one moment, made while the store
//! serves, and made a store again by `quoin restore`. docs/backup.md is the manual.
//!
//! [`Backups`] makes them in a running server, where BGSAVE and SAVE ask for it.

mod error;
mod folder;
mod format;
mod priority;
mod service;
mod write;

pub use error::{BackupError, Damage};
pub use format::{Header, StoreId, Totals};
pub use service::{Backups, Current, LastGood, StartError, Status};
pub use write::Written;
