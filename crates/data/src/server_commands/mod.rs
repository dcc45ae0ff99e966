//! Rows of commands on the connection, the server and the command table. The server executes most of them.

mod cluster;
pub mod command;
pub mod connection;
mod containers;
pub mod pubsub;
pub mod queues;
mod replication;
pub mod sentinel;
pub mod transactions;
