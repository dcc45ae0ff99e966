//! What others see of a client's commands: statistics, the logs of slow commands, CLIENT LIST, MONITOR.

use std::time::Duration;

use bytes::Bytes;

use super::state::Connection;
use quoin_data::command::row::Row;
use quoin_resp::reply::Reply;

impl Connection {
    /// Shows a command as the client's last one.
    pub(super) fn show(&self, row: &'static Row) {
        self.session.client.show_command(row.id);
    }

    /// Shows a command to the clients that monitor the server.
    pub(super) fn show_monitors(&self, row: &Row, arguments: &[Bytes]) {
        let (monitors, client) = (&self.state.monitors, &self.session.client);
        monitors.note(row, self.session.database, client, arguments);
    }

    /// Counts a command that was executed, and adds it to the logs of slow commands.
    pub(super) fn record(
        &self,
        row: &'static Row,
        duration: Duration,
        reply: &Reply,
        arguments: Option<&[Bytes]>,
    ) {
        let is_failed = matches!(reply, Reply::Error(_));
        self.state.statistics.commands_processed.add(1);
        self.state
            .statistics
            .record_call(row.id, duration, is_failed);
        let duration_us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let slower_than_us = self.state.config.live.slowlog_log_slower_than_us();
        if slower_than_us >= 0
            && duration_us >= slower_than_us
            && let Some(arguments) = arguments
        {
            self.state
                .note_slow(row, duration_us, arguments, &self.session.client);
        }
        let threshold_ms = self.state.config.live.latency_monitor_threshold_ms();
        if threshold_ms > 0 {
            self.state.note_latency(row, duration_us, threshold_ms);
        }
    }
}
