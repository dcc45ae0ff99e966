//! The server: connections, clients, and the commands that concern them rather than data.
//!
//! A connection parses requests and hands commands on data to the executor (`quoin_engine`). It
//! runs the other commands itself. The server knows who is connected, as which user, and who
//! receives which messages. It must not know what a command on data means, or which rows a store
//! holds.
//!
//! The modules below follow the path of a request: from the start of the server to a connection,
//! its commands, and what all connections share.

// From the start to the stop.
mod cron;
mod descriptors;
mod error;
mod shutdown;
mod signals;
mod startup;
mod systemd;
pub mod version;

// How clients connect.
mod addresses;
mod admission;
mod announced;
mod listener;
mod protected_mode;
mod stream;
mod tls;

// One client, and its commands.
mod clients;
mod connection;
mod connection_commands;
mod session;

// Users.
mod access;
mod single_flight;
mod users;

// What all connections share.
mod cluster;
mod eviction;
mod links;
mod monitors;
mod names;
mod pause;
mod pubsub;
mod sentinel;
mod state;
mod tracking;

// What operators see.
mod audit;
mod dashboard;
mod http;
mod metrics;
mod procfs;
mod slowlog;
mod statistics;
mod traces;
mod warnings;

#[cfg(test)]
mod fleet;

pub use error::ServerError;
pub use startup::run;
