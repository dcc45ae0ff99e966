//! Notifies systemd, if it has started the server, when the server is ready and when it stops
//! (`sd_notify(3)`). The crate `sd-notify` does not support abstract sockets, and may block.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io};

use rustix::time::{ClockId, clock_gettime};

/// The variable that names the supervisor's socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// The variable with the interval in microseconds within which it expects a sign of life.
const WATCHDOG_VARIABLE: &str = "WATCHDOG_USEC";

/// Whether systemd, or another supervisor that speaks its protocol, has started the server.
pub(super) fn is_supervising() -> bool {
    env::var_os(SOCKET_VARIABLE).is_some()
}

/// Notifies the supervisor that the server listens.
pub(super) fn note_ready() {
    send("READY=1");
}

/// Notifies the supervisor that the server reloads its settings, until [`note_ready`].
pub(super) fn note_reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    send(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
}

/// Notifies the supervisor that the server stops.
pub(super) fn note_stopping() {
    send("STOPPING=1");
}

/// Sends the supervisor regular signs of life, if it expects them. Never returns.
pub(super) async fn keep_informed() {
    let asked_us = env::var(WATCHDOG_VARIABLE).ok();
    let asked_us = asked_us.and_then(|text| text.parse().ok());
    let (Some(asked_us), true) = (asked_us.filter(|us| *us > 0), is_supervising()) else {
        return std::future::pending().await;
    };
    // Twice as often as required, as systemd recommends.
    let mut ticks = tokio::time::interval(Duration::from_micros(asked_us) / 2);
    loop {
        ticks.tick().await;
        send("WATCHDOG=1");
    }
}

/// Does nothing without a supervisor.
fn send(state: &str) {
    let Some(name) = env::var_os(SOCKET_VARIABLE) else {
        return;
    };
    if let Err(error) = send_to(&name, state) {
        tracing::warn!("cannot send {state:?} to the supervisor: {error}");
    }
}

fn send_to(name: &OsString, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let address = match name.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    socket.connect_addr(&address)?;
    // The server must not block on it.
    socket.set_nonblocking(true)?;
    socket.send(state.as_bytes()).map(drop)
}
