//! A command's table row, its argument parsing, and its execution.
//!
//! Dispatch, COMMAND and docs/start/commands.md are derived from the rows ([`row::Row`]). Each type's folder holds the
//! rows of its commands; [`table`](crate::table) lists them all. The server executes the commands in
//! [`row::ConnectionCommand`], which concern the connection or the server.

pub mod access;
pub mod arguments;
pub mod call;
#[cfg(test)]
mod document;
pub(crate) mod expiry_conditions;
pub mod flags;
pub mod grammar;
pub mod help;
pub mod key_specs;
pub mod plan;
pub(crate) mod popping;
pub(crate) mod put_coalesced;
pub mod resolve;
pub mod row;
pub mod waits;

pub use crate::command::access::KeyLocks;
pub use access::Access;
pub use call::{CallError, Invocation, Mode, call};
pub use plan::Plan;
pub use resolve::{Refusal, resolve, resolve_on_sentinel};
pub use row::{ConnectionCommand, Handler, Row};
pub use waits::{WaitSpec, Wake};
