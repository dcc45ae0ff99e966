//! The server as clients see it: the built program, over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "../support/authority.rs"]
mod authority;
#[path = "../support/redis.rs"]
mod redis_server;
#[path = "../support/resp.rs"]
mod resp;
#[path = "../support/script.rs"]
mod script;
#[path = "../support/server.rs"]
mod server;

mod acl;
mod administration;
mod admission;
mod backups;
mod blocked_clients;
mod blocking;
mod buffers;
mod client_filters;
mod client_memory;
mod clients;
mod cluster;
mod command_table;
mod comparisons;
mod dashboard;
mod dumping;
mod field_expiry;
mod handshake;
mod info;
mod later_commands;
mod limits;
mod logging;
mod metrics;
mod monitoring;
mod ping;
mod pipelined_transactions;
mod priority_queues;
mod pubsub;
mod queue_activity;
mod queue_tools;
mod queues_as_keys;
mod reloading;
mod reported_version;
mod requests;
mod scripts;
mod sentinel;
mod stopping;
mod stream_blocking;
mod streams;
mod task_queues;
mod threads;
mod tls;
mod top;
mod traces;
mod tracking;
mod transactions;
mod unix_socket;
mod waking;
mod watching;
