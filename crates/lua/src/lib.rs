//! Lua for scripts: machines of Lua 5.1 with Redis's libraries, each on its own fiber.
//!
//! A script runs on the fiber of its [`Machine`]. The commands that it calls run there too
//! ([`Commands`]). The fiber is suspended while a command is pending ([`Fiber::wait`]). So a script
//! may wait for the store at any point: in `pcall`, in `table.sort`, in a metamethod, in a
//! coroutine. The crate knows nothing about stores
//! (docs/understand/decisions/022-scripts-on-fibers.md).
//!
//! Scripts see stock Lua 5.1, with the holes closed that Redis closes in its own copy of it:
//! [`raw`] and [`sandbox`].

mod api;
mod calls;
mod engine;
mod fiber;
mod functions;
mod json;
mod json_decode;
mod json_settings;
mod library;
mod machine;
mod msgpack;
mod numbers;
mod patterns;
mod raw;
mod running;
mod sandbox;
mod script;
mod state;
mod strings;
mod structs;
mod tables;
mod values;
mod working;

#[cfg(test)]
mod tests;

pub use api::{LIBRARY_NAME_REFUSED, is_library_name};
pub use fiber::{Commands, Fiber};
pub use functions::{Function, FunctionFlags, Libraries, Library, Program, library_source};
pub use machine::Machine;
pub use running::{Caller, KillError, Run, RunGuard, Scripts, TimeLimit};
pub use script::{Kept, Script, ScriptFlags, sha1_hex};
pub use state::{End, KILLED_LINE, Origin};
