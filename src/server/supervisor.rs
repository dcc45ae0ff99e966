//! systemd, if it has started the server: it is told when the server is ready and when it stops
//! (`sd_notify(3)`).

use std::env;

use sd_notify::NotifyState;

/// Whether systemd, or another supervisor that speaks its protocol, has started the server.
pub(super) fn is_there() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some()
}

/// Tells the supervisor that the server listens.
pub(super) fn note_ready() {
    send(&[NotifyState::Ready]);
}

/// Tells the supervisor that the server reads its settings again, until it is ready.
pub(super) fn note_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("cannot read the system's clock: {error}"),
    }
}

/// Tells the supervisor that the server stops.
pub(super) fn note_stopping() {
    send(&[NotifyState::Stopping]);
}

/// Tells the supervisor regularly that the server is alive, if it asks for that. Never ends.
pub(super) async fn keep_informed() {
    let interval = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero());
    let (Some(interval), true) = (interval, is_there()) else {
        return std::future::pending().await;
    };
    // Twice as often as it must be, which systemd recommends.
    let mut ticks = tokio::time::interval(interval / 2);
    loop {
        ticks.tick().await;
        send(&[NotifyState::Watchdog]);
    }
}

/// Does nothing without a supervisor.
fn send(state: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("cannot say {state:?} to the supervisor: {error}");
    }
}
