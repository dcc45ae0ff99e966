//! The server as clients see it: the built program, over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "../support/server.rs"]
mod server;

mod administration;
mod clients;
mod command_table;
mod dumping;
mod handshake;
mod info;
mod limits;
mod pubsub;
mod requests;
mod stopping;
