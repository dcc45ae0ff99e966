//! systemd, if it has started the server: it is told when the server is ready and when it stops
//! (`sd_notify(3)`).

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The variable that names the socket of who has started the server.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// The variable with the microseconds within which it wants to hear that the server is alive.
const WATCHDOG_VARIABLE: &str = "WATCHDOG_USEC";

/// Who has started the server, if they want to hear of it.
pub(super) struct Supervisor {
    socket: Option<UnixDatagram>,
}

impl Supervisor {
    /// The one that the environment names.
    pub(super) fn find() -> Self {
        let socket = env::var_os(SOCKET_VARIABLE).map(|name| connect(name.as_bytes()));
        let socket = socket.and_then(|connected| match connected {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!("cannot reach the supervisor at {SOCKET_VARIABLE}: {error}");
                None
            }
        });
        Self { socket }
    }

    /// Whether there is one.
    pub(super) fn is_there() -> bool {
        env::var_os(SOCKET_VARIABLE).is_some()
    }

    /// The server listens.
    pub(super) fn note_ready(&self) {
        self.send("READY=1");
    }

    /// The server reads its settings again, until it is ready.
    pub(super) fn note_reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
    }

    /// The server stops.
    pub(super) fn note_stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Says again and again that the server is alive, if that is asked for. Never ends.
    pub(super) async fn keep_informed(&self) {
        let asked_us = env::var(WATCHDOG_VARIABLE).ok();
        let asked_us = asked_us.and_then(|text| text.parse().ok());
        let (Some(asked_us), Some(_)) = (asked_us.filter(|us| *us > 0), &self.socket) else {
            return std::future::pending().await;
        };
        // Twice as often as it must be, which systemd recommends.
        let mut ticks = tokio::time::interval(Duration::from_micros(asked_us) / 2);
        loop {
            ticks.tick().await;
            self.send("WATCHDOG=1");
        }
    }

    fn send(&self, state: &str) {
        let Some(socket) = &self.socket else {
            return;
        };
        if let Err(error) = socket.send(state.as_bytes()) {
            tracing::warn!("cannot say {state:?} to the supervisor: {error}");
        }
    }
}

fn connect(name: &[u8]) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    let address = match name.split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    socket.connect_addr(&address)?;
    // The server never waits for it.
    socket.set_nonblocking(true)?;
    Ok(socket)
}
