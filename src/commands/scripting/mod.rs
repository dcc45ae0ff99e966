//! Scripts: EVAL and its kin, SCRIPT.
//!
//! A script runs within one unit of work, beside other commands of the batch or within an EXEC. Its
//! calls go the way of all commands ([`crate::commands::call`]); the machine that runs its Lua knows
//! nothing of them ([`crate::scripting`]).

mod admin;
mod calls;
mod eval;
mod machines;
mod rows;
mod run;

#[cfg(test)]
mod tests;

pub use rows::ROWS;
