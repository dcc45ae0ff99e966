//! Keeps a transaction's writes until its commit and caches its reads, for stores on a network.
//!
//! A batch reads the same few rows repeatedly: the metadata and length of a hot queue, and the rows
//! at its end. FoundationDB's client also caches reads and applies writes to them, but each call
//! crosses to its network thread, into a tree that keeps all previous versions. [`ReadYourWrites`]
//! does it on this side. The transaction below it only reads its snapshot. At the commit it gets
//! all conflicts and writes at once, with the writes to one key combined.

pub mod cache;
mod coverage;
mod transaction;
mod writes;

pub use coverage::{clear_bytes, conflict_bytes, set_bytes};
pub use transaction::{BaseTransaction, ReadYourWrites};
