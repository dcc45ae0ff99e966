//! What commands mean.
//!
//! Each type has a folder (`list`, `string`, `hash`, `set`, `zset`, `stream`, `pqueue`,
//! `taskqueue`) with its operations, its commands and their rows, its dump format, what doctor
//! checks, and its tests. `keys` and `script` work on all types. General code (`unit`, `keyspace`,
//! `rows`, `prefetch`, `cluster`, `command`) asks a type's descriptor
//! ([`keyspace::kind::ValueKind`]) and names no type. [`table`] lists the types and the commands.
//! [`command::call`] is the only way to run a command. [`error`] has the errors of commands, and
//! one place turns them into RESP. A function that reads or writes the store fails when the store
//! does. Its comment names only other errors.
//!
//! The crate knows the trait of the store and the layout. It knows neither engine nor connections:
//! the crates above decide which commands share a transaction, who waits, and when a transaction
//! runs again.

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
