//! What commands mean.
//!
//! A type (`list`, `string`, `hash`, `set`, `zset`, `stream`, `pqueue`, `taskqueue`) is a folder: its operations,
//! its commands with their rows, how it is dumped, what doctor checks, and the tests. `keys` and `script` work
//! on all types. General code (`unit`, `keyspace`, `rows`, `prefetch`, `cluster`, `command`) asks a type's
//! descriptor ([`keyspace::kind::ValueKind`]) and names no type. [`table`] lists the types and the commands.
//! [`command::call`] is the only way to run a command. [`error`] is what a command may end with; one place turns it
//! into RESP. A function that reads or writes the store fails when the store does; its comment names only other errors.
//!
//! The crate knows the trait of the store and the layout. It knows no engine: which commands share a transaction,
//! who waits, and when a transaction runs again is decided above. It knows no connections.

pub mod cluster;
pub mod command;
pub mod error;
pub mod fields;
pub mod hash;
pub mod keys;
pub mod keyspace;
pub mod list;
pub mod pqueue;
pub mod prefetch;
pub mod rows;
pub mod script;
pub mod server_commands;
pub mod set;
pub mod stream;
pub mod string;
pub mod table;
pub mod taskqueue;
#[cfg(test)]
mod testing;
pub mod unit;
pub mod warm;
pub mod zset;
