//! Scripts and functions: EVAL and its variants, SCRIPT, FCALL and FUNCTION.
//!
//! A script or function runs within one unit of work, together with other commands of the batch or
//! within an EXEC. Its calls take the same path as all commands ([`crate::command::call::call`]).
//! The machine that executes its Lua code knows nothing about commands ([`quoin_lua`]).

pub mod cache;
mod calls;
mod eval;
mod functions;
pub mod libraries;
mod rows;
#[cfg(test)]
mod tests;

pub use crate::script::cache::busy;
pub use crate::script::eval::{declared_flags, only_reads, runs_script};
pub use crate::script::rows::ROWS;
