//! The tools: doctor, backup, import, export and compact.
//!
//! [`backup`] and [`compact`] work on the folder of an embedded store. [`doctor`] reads a store over the
//! transaction trait. [`import`] and [`export`] are clients of servers. The server uses [`backup`] for BGSAVE
//! and for the schedule of backups.
//!
//! They know stores, the layout and the types. They know no connections and no engine.

pub mod backup;
pub mod compact;
pub mod doctor;
pub mod export;
pub mod import;
mod progress;
