//! Settings and the command line.
//!
//! [`table::SETTINGS`] is the one table of settings; [`cli::parse`] reads the command line and
//! loads them; [`runtime::RuntimeConfig`] is what CONFIG GET, SET and REWRITE act on.

pub mod cli;
pub mod document;
pub mod error;
pub mod load;
pub mod runtime;
pub mod settings;
pub mod table;
pub mod value;

mod atomic;
#[cfg(feature = "fdb")]
mod fdb;
mod hints;
mod parameters;
mod rewrite;
mod special;

pub use cli::{BackupOptions, DoctorOptions, Invocation, parse};
pub use error::ConfigError;
pub use load::{LoadedSettings, Origin};
pub use runtime::RuntimeConfig;
pub use settings::{
    FdbTls, Fsync, LogLevel, MemoryLimit, OutputLimit, OutputLimits, Settings, StoreKind,
};
