//! Short histories of mixed commands on a few keys are linearizable: each command takes effect at
//! one moment between its request and its reply. A command without a reply takes effect at some
//! moment after its request, or never.

mod checker;
#[cfg(test)]
mod checker_tests;
mod commands;
mod history;
mod model;
mod rounds;
mod values;

pub use self::rounds::{CLIENTS, Rounds, check};
