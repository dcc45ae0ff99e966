//! TLS through rustls: what the settings name becomes a configuration of rustls, for the server's
//! listeners and for the tools' connections (docs/understand/decisions/027-rustls.md).
//!
//! The files from the lowest to the highest: `error`, `options`, `provider` and `version_1`, `any_version` and
//! `encrypted`, `own_server` and `files`, `certified`, `server` and `client`.
//!
//! It knows files and bytes, and neither settings nor connections.

mod any_version;
mod certified;
mod client;
mod encrypted;
mod error;
mod files;
mod options;
mod own_server;
mod provider;
mod server;
mod version_1;

pub use client::{ClientOptions, ClientStream};
pub use error::TlsError;
pub use options::{AuthClients, Password, ServerOptions, Version};
pub use server::server_config;

#[cfg(test)]
mod tests;
