//! Scripts and functions: EVAL and its kin, SCRIPT, FCALL, FUNCTION.
//!
//! A script or a function runs within one unit of work, beside other commands of the batch or within an EXEC. Its
//! calls go the way of all commands ([`crate::command::call::call`]); the machine that runs its Lua knows
//! nothing of them ([`quoin_lua`]).

mod admin;
mod calls;
mod eval;
mod fcall;
mod function_rows;
mod libraries;
mod listing;
mod machines;
mod reading;
mod rows;
mod run;
mod writing;

#[cfg(test)]
mod function_tests;
#[cfg(test)]
mod tests;

pub use admin::busy;
pub use eval::{declared_flags, only_reads, runs_script};
pub use rows::ROWS;
