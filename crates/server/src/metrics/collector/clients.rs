//! Metrics of clients and connections.

use std::fmt;

use crate::metrics::writer::Writer;
use crate::state::ServerState;
use quoin_data::unit::signals::ChannelKind;

/// Writes the metrics of clients.
pub(super) fn write(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let statistics = &state.statistics;
    let clients = state.clients.all();
    let blocked = clients.iter().filter(|client| client.is_blocked()).count();
    let channels = state.pubsub.channel_count(ChannelKind::Global) + state.pubsub.pattern_count();
    for (name, help, value) in [
        ("connected_clients", "Clients", clients.len()),
        (
            "blocked_clients",
            "Clients that wait in a blocking command",
            blocked,
        ),
        (
            "blocking_keys",
            "Keys for which clients wait",
            state.executor.waiters().key_count(),
        ),
        (
            "subscribed_channels",
            "Channels and patterns with subscribers",
            channels,
        ),
        (
            "client_buffers_bytes",
            "Memory that the buffers of all clients take",
            state.clients.memory().bytes(),
        ),
    ] {
        writer.gauge(name, help, value as f64)?;
    }
    for (name, help, counter) in [
        (
            "connections_received",
            "Connections that were accepted",
            &statistics.connections_received,
        ),
        (
            "connections_rejected",
            "Connections that were refused because of maxclients or protected mode, or without a TLS handshake",
            &statistics.connections_rejected,
        ),
        (
            "tls_handshakes_failed",
            "TLS handshakes of clients that failed or took too long",
            &statistics.failed_handshakes,
        ),
        (
            "wrong_passwords",
            "Attempts to authenticate with a wrong name or password",
            &state.access.log.denied_auth,
        ),
        (
            "clients_evicted",
            "Clients that were disconnected because of maxmemory-clients",
            &state.disconnections.evicted,
        ),
        (
            "query_buffer_disconnections",
            "Clients that were disconnected because of client-query-buffer-limit",
            &state.disconnections.query_buffer,
        ),
        (
            "output_buffer_disconnections",
            "Clients that were disconnected because of client-output-buffer-limit",
            &state.disconnections.output_buffer,
        ),
        ("input_bytes", "Bytes from clients", &statistics.input_bytes),
        ("output_bytes", "Bytes to clients", &statistics.output_bytes),
    ] {
        writer.counter(name, help, counter.get())?;
    }
    Ok(())
}
