//! Quoin: durable queues behind the Redis protocol.
//!
//! The way of data, and the direction of imports (each module uses only those after it):
//! `server` → `wire`, `commands` → `executor` → `types` → `store`, `layout`;
//! `limits`, `clock`, `random`, `key_after`, `allocator`, `fatal_panic`, `log_throttle`, `size` and `sparse`
//! are leaves that every module may use, and `error` is over `layout`, `store` and `dump` only.
//! Beside `server` stand the tools: `doctor` over `types`, `layout` and `store`, `backup` and
//! `compact` over `store`, each told what to work on by `config`'s settings; `import` over
//! `redis_client`, the client of other servers, which `backup` uses too. `cli` reads the command
//! line, and knows all of them.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod allocator;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod compact;
pub mod config;
pub mod doctor;
pub mod dump;
pub mod error;
pub mod events;
pub mod executor;
pub mod fatal_panic;
pub mod glob;
pub mod import;
pub mod key_after;
pub mod layout;
pub mod limits;
pub mod log_throttle;
pub mod number;
pub mod random;
pub mod redis_client;
pub mod reply;
pub mod server;
pub mod size;
pub mod sparse;
pub mod store;
pub mod types;
pub mod wire;
