//! What servers of one cluster tell each other through the store.

pub mod delegation;
pub mod relay;
pub mod roster;
pub mod tracker_marks;
pub mod users;
