//! The tools: doctor, backup, import, export, compact, ping, queues and top.
//!
//! [`backup`] and [`compact`] work on the folder of an embedded store. [`doctor`] reads a store over the
//! transaction trait. [`import`], [`export`], [`ping`], [`queues`] and [`top`] are clients of servers. The server uses
//! [`backup`] for BGSAVE and for the schedule of backups.
//!
//! They know stores, the layout and the types. They know no connections and no engine.

pub mod backup;
pub mod compact;
pub mod doctor;
pub mod export;
pub mod import;
pub mod ping;
mod progress;
pub mod queues;
pub mod top;

use quoin_config::{Fsync, Settings};
use quoin_store_embedded::{EmbeddedOptions, FsyncPolicy};

/// How a tool opens an embedded store that no server has open.
fn embedded_options(settings: &Settings) -> EmbeddedOptions {
    EmbeddedOptions {
        fsync: match settings.fsync {
            Fsync::Always => FsyncPolicy::Always,
            Fsync::EverySec => FsyncPolicy::EverySecond,
        },
        accepts_copy: settings.accept_copied_data_dir,
        ..EmbeddedOptions::default()
    }
}
