//! Rows of commands about the connection, the server and the table of commands. The server executes most of them.

pub mod command;
pub mod connection;
mod containers;
pub mod pubsub;
mod replication;
pub mod transactions;
