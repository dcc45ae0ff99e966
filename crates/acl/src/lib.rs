//! Users and what they may do: Redis 7.2's access control lists (`acl.c`).
//!
//! A [`Definition`] is the result of rules such as `on >secret ~app:* +@read`: a user's flags,
//! passwords, and selectors. A command is allowed if one selector allows the command, all of its
//! keys and all of its channels. A [`User`] is a user of the running server. Its clients hold it,
//! and find a new definition in it when the rules change. [`Users`] maps names to users.
//!
//! The crate knows the table of commands, for their categories and keys. It must not know
//! connections, or where users are stored.

// From rules to the definition of a user.
mod definition;
mod rules;
mod selector;

// What a user may do.
mod check;
pub mod log;

// Users of a server, and of a file.
pub mod file;
mod users;

pub use check::{Denial, Reason};
pub use definition::{Definition, Flag, without_passwords};
pub use rules::{Defaults, RuleError, has_spaces};
pub use selector::{KeyPattern, Selector};
pub use users::{DEFAULT_USER, Replaced, User, Users};
