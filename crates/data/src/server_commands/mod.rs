//! Rows of commands about the connection, the server and the table of commands. The server executes most of them.

pub mod command;
pub mod connection;
pub mod pubsub;
pub mod transactions;
