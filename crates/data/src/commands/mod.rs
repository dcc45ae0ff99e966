//! Redis's commands: one row each ([`row::Row`]) in the table of its family, from which
//! dispatch, COMMAND and docs/start/commands.md come.
//!
//! A family's module parses arguments into typed ones and calls `types`; what a command means is
//! there. Commands that concern the connection or the server rather than data are named by
//! [`row::ConnectionCommand`] and carried out by the server.

pub mod access;
pub mod arguments;
pub mod bitmaps;
pub mod call;
pub mod categories;
mod chunks;
pub mod command;
pub mod connection;
#[cfg(test)]
mod document;
pub mod flags;
pub mod geo;
pub mod grammar;
pub mod hashes;
pub mod help;
pub mod hyperloglogs;
pub mod key_specs;
pub mod keys;
pub mod lists;
pub mod locks;
mod member_scan;
mod multi_pop;
pub mod plan;
mod popping;
pub mod priority_queues;
pub mod pubsub;
mod put_series;
mod random_draw;
pub mod resolve;
pub mod row;
pub mod scripting;
pub mod sets;
pub mod sorted_sets;
pub mod streams;
pub mod strings;
pub mod table;
pub mod tasks;
pub mod transactions;
pub mod waits;

pub use access::Access;
pub use call::{CallError, Invocation, Mode, call};
pub use locks::KeyLocks;
pub use plan::Plan;
pub use resolve::{Refusal, resolve};
pub use row::{ConnectionCommand, Handler, Row};
pub use table::find;
pub use waits::{WaitSpec, Wake};
