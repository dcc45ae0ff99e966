//! Clients that are disconnected because the server holds too much for them: counters, and Redis's
//! warnings in the log, each kind at most once a minute.

use quoin_base::counter::Counter;
use quoin_base::log_throttle::LogThrottle;

/// Counters, and warnings in the log.
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

    /// A client was evicted because the buffers of all clients take too much.
    pub(super) fn evicted(&self, client: impl FnOnce() -> String) {
        self.evicted.add(1);
        if let Some(more) = self.evicted_line.pass() {
            tracing::warn!("Evicting client: {}{more}", client());
        }
    }

    /// The buffers take too much, and no client is left that may be evicted.
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
