//! Connected clients: what the server knows of each, and what it holds for them.
//!
//! The files from the lowest to the highest: `memory`, `subscriptions`, `tracking`, `mailbox`, `record`,
//! `listing`, `registry`, `place`.

mod listing;
mod mailbox;
mod memory;
mod place;
mod record;
mod registry;
mod subscriptions;
mod tracking;

pub(super) use listing::{cut, describe, put_line};
pub(super) use mailbox::{Frame, Pushed};
pub(super) use memory::BufferMemory;
pub(super) use place::Place;
pub(super) use record::{ClientRecord, NO_COMMAND, Unblock};
pub(super) use registry::ClientRegistry;
pub(super) use subscriptions::{Scope, Subscriptions};
pub(super) use tracking::TrackingMode;
