//! TLS through rustls: what the settings name becomes a configuration of rustls, for the server's
//! listeners and for the tools' connections (docs/understand/decisions/027-rustls.md).
//!
//! The files from the lowest to the highest: `error`, `options`, `provider` and `own_server`, `files`, `server`
//! and `client`.

mod client;
mod error;
mod files;
mod options;
mod own_server;
mod provider;
mod server;

pub use client::{ClientOptions, ClientStream};
pub use error::TlsError;
pub use options::{AuthClients, ServerOptions, Version};
pub use server::server_config;

#[cfg(test)]
mod tests;
