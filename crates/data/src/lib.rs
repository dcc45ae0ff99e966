//! What commands mean.
//!
//! [`types`] is code over the transaction trait, the same for every store: what a list, a sorted set, an
//! expiry are, and what may conflict. [`commands`] is the table of commands with their handlers, and
//! [`commands::call`], which is the only way to run one. [`error`] is what a command may end with; one place
//! turns it into RESP.
//!
//! It knows the trait of the store and the layout. It knows no engine: which commands share a transaction,
//! who waits, and when a transaction runs again is decided above. It knows no connections.

pub mod commands;
pub mod error;
pub mod types;
