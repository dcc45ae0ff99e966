//! TLS through rustls: turns what the settings name into a configuration of rustls, for the
//! server's listeners and for the tools' connections (docs/understand/decisions/027-rustls.md).
//!
//! The files from the lowest to the highest: `options`, `version_1`, `files`, `server` and
//! `client`.
//!
//! The crate knows files and bytes, and neither settings nor connections.

mod client;
mod files;
mod options;
mod server;
mod version_1;

#[cfg(test)]
mod tests;

pub use client::{ClientOptions, ClientStream};
pub use options::{AuthClients, Password, ServerOptions, TlsError, Version};
pub use server::server_config;
