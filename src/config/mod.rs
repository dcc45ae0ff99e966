//! Settings.
//!
//! [`table`] declares each setting once; [`load::load`] reads them from flags, variables and a
//! file; [`runtime::RuntimeConfig`] is what CONFIG GET, SET and REWRITE act on.

pub mod error;
pub mod load;
pub mod runtime;
pub mod settings;
pub mod table;
pub mod value;

mod atomic;
#[cfg(test)]
mod document;
#[cfg(feature = "fdb")]
mod fdb;
pub(crate) mod hints;
mod origin;
mod own_address;
mod parameters;
mod redis_conf;
mod rewrite;
mod special;
mod users;

pub use error::ConfigError;
pub use load::LoadedSettings;
pub use origin::Origin;
pub(crate) use own_address::{note_server, remove_note, server_places};
pub(crate) use parameters::is_secret;
pub use runtime::{RuntimeConfig, TlsChange};
pub use settings::{
    FdbTls, Fsync, KeysPattern, LogFormat, LogLevel, MemoryLimit, OutputLimit, OutputLimits,
    Permissions, StoreKind,
};
pub use table::Settings;
pub use users::FileUsers;
