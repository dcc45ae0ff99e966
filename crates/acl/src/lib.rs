//! Users and what they may do: Redis 7.2's access control lists (`acl.c`).
//!
//! A [`Definition`] is what rules such as `on >secret ~app:* +@read` say of a user: its flags, its
//! passwords, and selectors. A command is allowed where one selector allows the command, all of its
//! keys and all of its channels. A [`User`] is a user of the running server: its clients hold it, and
//! find a new definition in it when the rules change. [`Users`] has them by name. Nothing here knows of
//! connections or of where users are kept.
//!
//! The files from the lowest to the highest: `rule_error`, `text` and `password`, `command_set`,
//! `selector`, `rules`, `definition`, `describe`, `denial`, `check`, `user`, `users`, `file` and `log`.

mod check;
mod command_set;
mod definition;
mod denial;
mod describe;
pub mod file;
pub mod log;
mod password;
mod rule_error;
mod rules;
mod selector;
mod text;
mod user;
mod users;

pub use definition::{Definition, Flag};
pub use denial::{Denial, Reason};
pub use password::without_passwords;
pub use rule_error::RuleError;
pub use rules::Defaults;
pub use selector::{KeyPattern, Selector};
pub use text::has_spaces;
pub use user::User;
pub use users::{DEFAULT_USER, Replaced, Users};

#[cfg(test)]
mod tests;
