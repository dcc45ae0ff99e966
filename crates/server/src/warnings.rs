//! Warnings in the log about connections that were refused or suspicious. Anybody who can connect can
//! cause them, so each kind is logged at most once a minute.

use std::io;

use super::endpoint::Endpoint;
use quoin_base::log_throttle::LogThrottle;
use quoin_data::error::CommandError;

/// Bytes of a user's name that are logged.
const USER_BYTES_MAX: usize = 64;

/// The kinds of warnings, each with its own minute.
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
                "refused a connection from {address}: protected mode answers only clients of this \
                 machine as long as there is no password (requirepass){more}"
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
                "the users in the store cannot be read, those that are known hold: {error}{more}"
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

    /// A client of the TLS port did not shake hands.
    pub(super) fn no_handshake(&self, address: &Endpoint, reason: &str) {
        if let Some(more) = self.handshake.pass() {
            tracing::warn!("no TLS handshake with {address}: {reason}{more}");
        }
    }
}
