//! What servers of one cluster report to each other through the store.

pub mod change_marks;
pub mod delegation;
pub mod relay;
pub mod roster;
pub mod users;
