//! Scripts and functions: which are known, and the commands that run them.
//!
//! Scripts and functions: EVAL and its kin, SCRIPT, FCALL, FUNCTION.
//!
//! A script or a function runs within one unit of work, beside other commands of the batch or within an EXEC. Its
//! calls go the way of all commands ([`crate::command::call::call`]); the machine that runs its Lua knows
//! nothing of them ([`quoin_lua`]).

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
