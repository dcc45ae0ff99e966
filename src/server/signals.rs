//! Signals that must not end the server.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Has SIGHUP do nothing until [`outlive_hangup`]: there is no runtime yet while the store is opened.
pub(super) fn ignore_hangup() {
    // SAFETY: a signal that is ignored runs no code.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
    }
}

/// Has SIGHUP, which ends a program by default, do nothing but write a line, from now on until the
/// process ends. It is what a terminal sends when it is closed, and what tools that rotate logs
/// send. (SIGPIPE, the other signal that Redis ignores, is ignored in every Rust program.)
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
