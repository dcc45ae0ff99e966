//! Queues as a client of the server sees them: which keys are queues, how to list them within
//! bounds, what is in them, how active they are, and actions on them.
//!
//! The dashboard and the command line use it to show and do the same things. It knows commands and
//! their replies. It knows neither how the server stores queues nor how they are shown.

#[macro_use]
mod reply;

mod actions;
mod activity;
mod figures;
mod inside;
mod kind;
mod listing;

pub use actions::{
    Outcome, Steps, delete, give_back, move_all, move_tasks, pause, purge_tasks, resume, revive,
    revive_all, trim,
};
pub use activity::{Activity, activities};
pub use figures::{Figures, Groups, Queue, heads, read_queues};
pub use inside::{Page, by_cursor, by_rank, tasks, time_of_score};
pub use kind::{Kind, State};
pub use listing::{Bounds, Names, Wanted, cursor_and_names, find, pattern_of};
pub use reply::{Pairs, Words, expect, items, number, run_all, text};
