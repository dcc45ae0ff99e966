//! Scripts and functions: which are known, and the commands that run them.

pub mod commands;
pub mod libraries;
pub mod scripts;
