//! Counters of the server, for INFO.

use crate::executor::statistics::Counter;

/// What the server has seen since the start or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct ServerStatistics {
    /// Connections that were accepted.
    pub connections_received: Counter,
    /// Connections that were refused because of `maxclients`.
    pub connections_rejected: Counter,
    /// Commands that were carried out or refused.
    pub commands_processed: Counter,
    /// Bytes that were read from clients.
    pub input_bytes: Counter,
    /// Bytes that were written to clients.
    pub output_bytes: Counter,
    /// Replies that were errors.
    pub error_replies: Counter,
}
