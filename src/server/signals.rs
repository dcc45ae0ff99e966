//! SIGHUP must not end the server.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Ignores SIGHUP until [`outlive_hangup`], for the time in which there is no runtime yet.
pub(super) fn ignore_hangup() {
    // SAFETY: a signal that is ignored runs no code.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
    }
}

/// Logs SIGHUP instead of ending the process. Terminals send it when they are closed, and so do tools
/// that rotate logs. (SIGPIPE, the other signal that Redis ignores, is ignored in every Rust program.)
pub(super) fn outlive_hangup(runtime: &Runtime) -> io::Result<()> {
    let mut hangup = {
        let _context = runtime.enter();
        signal(SignalKind::hangup())?
    };
    runtime.spawn(async move {
        while hangup.recv().await.is_some() {
            tracing::info!("SIGHUP: nothing to do, as there is no log file to reopen");
        }
    });
    Ok(())
}
