//! Settings, the users of the settings file, and the log.
//!
//! One table has every setting ([`table`]). From it come the file's keys, the variables, the flags, the
//! documents and CONFIG. [`logging`] writes the log.
//!
//! It knows what settings are and how they change in a running server. It does not know what they are for.

pub mod error;
pub mod load;
pub mod logging;
pub mod runtime;
pub mod settings;
pub mod table;
pub mod value;

mod atomic;
#[cfg(test)]
mod document;
#[cfg(feature = "fdb")]
mod fdb;
pub mod hints;
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
pub use own_address::{note_server, remove_note, server_places};
pub use parameters::is_secret;
pub use runtime::{RuntimeConfig, TlsChange};
pub use settings::{
    FdbTls, Fsync, KeysPattern, LogFormat, LogLevel, MemoryLimit, OutputLimit, OutputLimits,
    Permissions, StoreKind,
};
pub use table::Settings;
pub use users::FileUsers;
