//! FoundationDB's network thread. It starts once per process and stops when the process exits.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use foundationdb::FdbError;
use foundationdb::api::{FdbApiBuilder, NetworkAutoStop, NetworkBuilder};

use foundationdb::options::NetworkOption;
use quoin_base::threads;

/// How many bytes of a range FoundationDB's client requests at a time (its knob `reply_byte_limit`, 80 kB by
/// default).
const REPLY_BYTES_MAX: usize = 1_500_000;

/// The client library cannot start again after it was stopped, so it keeps running when the last store is dropped.
static STARTED: OnceLock<Result<(), FdbError>> = OnceLock::new();
static KEEPER: Mutex<Option<Keeper>> = Mutex::new(None);
/// The API version can also be selected only once per process. `BUILDER` holds the result until the start.
static SELECTED: OnceLock<Result<(), FdbError>> = OnceLock::new();
static BUILDER: Mutex<Option<NetworkBuilder>> = Mutex::new(None);

/// The thread that holds the network's guard. The thread that exits the process must not drop the guard, because its
/// thread-local variables, including the library's, are gone when exit handlers run.
struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Selects the API version, which the library needs before any other call.
pub(super) fn select_version() -> Result<(), FdbError> {
    *SELECTED.get_or_init(|| {
        let builder = FdbApiBuilder::default().build()?;
        *BUILDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(builder);
        Ok(())
    })
}

/// Starts the network thread if it is not running yet. If it is, the options have no effect.
pub(super) fn start(options: Vec<NetworkOption>) -> Result<(), FdbError> {
    *STARTED.get_or_init(|| {
        select_version()?;
        let builder = BUILDER
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut network) = builder else {
            // Unreachable: only this code takes the builder, and it runs once.
            return Ok(());
        };
        for option in options {
            network = network.set_option(option)?;
        }
        // The library reads its environment variables at the first option. So this overrides the
        // operator's value of the knob.
        let reply_bytes = format!("reply_byte_limit={REPLY_BYTES_MAX}");
        network = network.set_option(NetworkOption::Knob(reply_bytes))?;
        // SAFETY: the guard must be dropped before the process exits. `stop_before_exit` does that on every orderly
        // exit. A process that aborts need not do it.
        #[allow(unsafe_code)]
        let network = unsafe { network.boot() }?;
        keep(network);
        Ok(())
    })
}

/// Makes the exit of the process stop the network before the library's own exit handlers run.
///
/// Handlers run in reverse order, and the library registers more of them while it works. So this is called again
/// after each use.
pub(super) fn stop_before_exit() {
    // SAFETY: the function is `extern "C"`, takes no arguments, does not unwind and lives as long
    // as the program.
    #[allow(unsafe_code)]
    let refused = unsafe { libc::atexit(stop_at_exit) };
    if refused != 0 {
        tracing::warn!("FoundationDB's network thread will not be stopped at exit");
    }
}

fn keep(network: NetworkAutoStop) {
    let (stop, stopped) = mpsc::channel::<()>();
    let started = threads::spawn("fdb-keeper", move || {
        // Ends when the sender is dropped. Nothing is ever sent.
        let _ = stopped.recv();
        drop(network);
    });
    match started {
        Ok(thread) => {
            *KEEPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Keeper { stop, thread });
        }
        // The guard was dropped with the closure, so the network has stopped. Every use of it will fail.
        Err(error) => tracing::error!(%error, "cannot start the thread that keeps the network"),
    }
}

extern "C" fn stop_at_exit() {
    stop();
}

/// Stops the network permanently.
pub(super) fn stop() {
    let keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Keeper { stop, thread }) = keeper {
        drop(stop);
        // The thread has reported its own failure.
        let _ = thread.join();
    }
}
