//! The rows of the commands that concern the connection or the server. The server carries most of
//! them out itself.

mod client;
mod containers;
mod modules;
mod pure;
mod replication;
mod rows;

pub use rows::ROWS;
