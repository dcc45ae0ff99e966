//! What a command is: its row, how its arguments are read, and how it is run.
//!
//! Dispatch, COMMAND and docs/start/commands.md come from the rows ([`row::Row`]). The rows of a type's
//! commands are in the type's folder. [`table`](crate::table) lists them all. Commands that concern the
//! connection or the server are named by [`row::ConnectionCommand`], and the server executes them.

pub mod access;
pub mod arguments;
pub mod call;
#[cfg(test)]
mod document;
pub mod flags;
pub mod grammar;
pub mod help;
pub mod key_specs;
pub mod plan;
pub(crate) mod popping;
pub(crate) mod put_series;
pub mod resolve;
pub mod row;
pub mod waits;

pub use crate::command::access::KeyLocks;
pub use access::Access;
pub use call::{CallError, Invocation, Mode, call};
pub use plan::Plan;
pub use resolve::{Refusal, resolve};
pub use row::{ConnectionCommand, Handler, Row};
pub use waits::{WaitSpec, Wake};
