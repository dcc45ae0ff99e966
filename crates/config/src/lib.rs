//! Settings, the users of the settings file, and the log.
//!
//! One table has every setting ([`table`]). It defines the file's keys, the variables, the flags,
//! the documents and CONFIG. [`logging`] writes the log.
//!
//! The crate knows what settings are and how they change in a running server. It must not know what
//! they are used for.

// What a setting is.
mod settings;
mod special;
pub mod table;
pub mod value;

// Settings from files, variables and flags.
pub mod error;
pub mod load;
mod redis_conf;
mod users;

// Settings of a running server: CONFIG.
pub mod hints;
mod parameters;
mod rewrite;
mod runtime;

// The log, and the addresses of a server for tools.
pub mod logging;
mod own_address;

#[cfg(test)]
mod tests;

pub use error::{ConfigError, Origin};
pub use load::LoadedSettings;
pub use own_address::{note_server, remove_note, server_places};
pub use parameters::is_secret;
pub use runtime::{Reloaded, RuntimeConfig, TlsChange};
pub use settings::{
    DashboardAddress, EndpointType, FdbTls, Fsync, KeysPattern, LogFormat, LogLevel, MemoryLimit,
    OutputLimit, OutputLimits, Permissions, StoreKind,
};
pub use table::Settings;
pub use users::FileUsers;
