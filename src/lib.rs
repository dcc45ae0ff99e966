//! Quoin: durable queues behind the Redis protocol.
//!
//! docs/understand/architecture.md gives the way of data and the order of the modules: a module imports
//! only from those below it.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod acl;
pub mod allocator;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod compact;
pub mod config;
pub mod counter;
pub mod decode_error;
pub mod doctor;
pub mod dump;
pub mod error;
pub mod events;
pub mod executor;
pub mod export;
pub mod fatal_panic;
pub mod glob;
pub mod import;
pub mod key_after;
pub mod layout;
pub mod limits;
pub mod log_throttle;
pub mod logging;
pub mod number;
pub mod random;
pub mod redis_client;
pub mod reply;
pub mod scripting;
pub mod server;
pub mod size;
pub mod sparse;
pub mod stopwatch;
pub mod store;
pub mod threads;
pub mod tls;
pub mod types;
pub mod version;
pub mod wire;
