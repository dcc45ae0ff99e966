//! Warnings in the log about clients: connections that were refused or suspicious, and clients that
//! were disconnected because too much was held for them. Anybody who can connect can cause them, so
//! each kind is logged at most once a minute.

use std::io;

use crate::addresses::Endpoint;
use quoin_base::counter::Counter;
use quoin_base::log_throttle::LogThrottle;
use quoin_data::error::CommandError;

/// Bytes of a user's name that are logged.
const USER_BYTES_MAX: usize = 64;

/// Throttles for each kind of warning.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    accepting: LogThrottle,
    too_many: LogThrottle,
    protected: LogThrottle,
    password: LogThrottle,
    web_request: LogThrottle,
    handshake: LogThrottle,
    users: LogThrottle,
}

impl Warnings {
    /// A connection could not be accepted.
    pub(super) fn cannot_accept(&self, error: &io::Error) {
        if let Some(more) = self.accepting.pass() {
            tracing::warn!("cannot accept a connection, trying again: {error}{more}");
        }
    }

    /// A client was refused because there are too many.
    pub(super) fn too_many(&self, address: &Endpoint, maxclients: u32) {
        if let Some(more) = self.too_many.pass() {
            tracing::warn!(
                "refused a connection from {address}: max number of clients reached (maxclients \
                 is {maxclients}){more}"
            );
        }
    }

    /// A client was refused because protected mode serves only clients of this machine.
    pub(super) fn protected(&self, address: &Endpoint) {
        if let Some(more) = self.protected.pass() {
            tracing::warn!(
                "refused a connection from {address}: protected mode accepts only clients on this \
                 machine while no password (requirepass) is set{more}"
            );
        }
    }

    /// A client gave a wrong password.
    pub(super) fn wrong_password(&self, address: &Endpoint, user: &[u8]) {
        if let Some(more) = self.password.pass() {
            let user = user.get(..USER_BYTES_MAX).unwrap_or(user);
            tracing::warn!(
                "wrong password from {address} for user '{}'{more}",
                user.escape_ascii()
            );
        }
    }

    /// The users in the store cannot be read.
    pub(super) fn users_unread(&self, error: &CommandError) {
        if let Some(more) = self.users.pass() {
            tracing::warn!(
                "cannot read the users in the store, the users already known stay in effect: \
                 {error}{more}"
            );
        }
    }

    /// A web browser sent a request to this port (Redis: `securityWarningCommand`).
    pub(super) fn web_request(&self, address: &Endpoint) {
        if let Some(more) = self.web_request.pass() {
            tracing::warn!(
                "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or \
                 Host: commands to Quoin. This is likely due to an attacker attempting to use \
                 Cross Protocol Scripting to compromise your Quoin instance. Connection from \
                 {address} aborted{more}"
            );
        }
    }

    /// A client of the TLS port failed the handshake.
    pub(super) fn no_handshake(&self, address: &Endpoint, reason: &str) {
        if let Some(more) = self.handshake.pass() {
            tracing::warn!("no TLS handshake with {address}: {reason}{more}");
        }
    }
}

/// Counters of disconnected clients, and throttles of their warnings.
#[derive(Debug, Default)]
pub(super) struct Disconnections {
    /// Because of `client-query-buffer-limit`.
    pub(super) query_buffer: Counter,
    /// Because of `client-output-buffer-limit`.
    pub(super) output_buffer: Counter,
    /// Because of `maxmemory-clients`.
    pub(super) evicted: Counter,
    query_buffer_line: LogThrottle,
    output_buffer_line: LogThrottle,
    evicted_line: LogThrottle,
    nobody_to_evict_line: LogThrottle,
}

impl Disconnections {
    /// A client has sent more than the query buffer may hold.
    pub(super) fn query_buffer(&self, client: impl FnOnce() -> String) {
        self.query_buffer.add(1);
        if let Some(more) = self.query_buffer_line.pass() {
            let client = client();
            tracing::warn!("Closing client that reached max query buffer length: {client}{more}");
        }
    }

    /// More output waits for a client than allowed.
    pub(super) fn output_buffer(&self, client: impl FnOnce() -> String) {
        self.output_buffer.add(1);
        if let Some(more) = self.output_buffer_line.pass() {
            let client = client();
            tracing::warn!("Client {client} closed for overcoming of output buffer limits.{more}");
        }
    }

    /// A client was evicted because the buffers of all clients use too much memory.
    pub(super) fn evicted(&self, client: impl FnOnce() -> String) {
        self.evicted.add(1);
        if let Some(more) = self.evicted_line.pass() {
            tracing::warn!("Evicting client: {}{more}", client());
        }
    }

    /// The clients use too much memory, and none of them may be evicted.
    pub(super) fn nobody_to_evict(&self) {
        if let Some(more) = self.nobody_to_evict_line.pass() {
            tracing::warn!("Over client maxmemory after evicting all evictable clients{more}");
        }
    }

    /// CONFIG RESETSTAT.
    pub(super) fn reset(&self) {
        for counter in [&self.query_buffer, &self.output_buffer, &self.evicted] {
            counter.reset();
        }
    }
}
