//! A thread that queries the server, so that the terminal responds to keys meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use quoin_base::threads;
use quoin_client::{Address, Client, ClientError};

use super::sweep::{Snapshot, Table, Wish};
use crate::queues::QueuesError;

/// Longest time until the server has accepted a connection, and longest time until each reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two refreshes until all names have been examined once.
const FIRST_SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// State that the thread and the terminal share: one slot in each direction, for the latest value
/// only.
#[derive(Default)]
struct Shared {
    wish: Mutex<Wish>,
    snapshot: Mutex<Option<Snapshot>>,
}

/// The terminal's handle of the thread. The thread ends with the process.
pub(super) struct Feed {
    shared: Arc<Shared>,
    thread: Thread,
}

/// Connects, and selects the database of the address.
pub(super) fn connect(address: &Address) -> Result<Client, ClientError> {
    let mut client = Client::connect_within(address, REPLY_TIMEOUT)?;
    client.select_existing(address.database.unwrap_or(0))?;
    Ok(client)
}

impl Feed {
    /// Starts the thread with a connection, which it reopens if it is lost.
    pub(super) fn start(
        client: Client,
        address: Address,
        wish: Wish,
        interval: Duration,
    ) -> Result<Self, QueuesError> {
        let shared = Arc::new(Shared {
            wish: Mutex::new(wish),
            snapshot: Mutex::new(None),
        });
        let of_thread = Arc::clone(&shared);
        let thread = threads::spawn("top", move || {
            run(&of_thread, client, &address, interval);
        })?;
        Ok(Self {
            shared,
            thread: thread.thread().clone(),
        })
    }

    /// Sets what to find out from now on. A changed filter takes effect at once.
    pub(super) fn wish(&self, wish: Wish) {
        let mut current = lock(&self.shared.wish);
        let is_urgent = wish.wanted != current.wanted || wish.is_held != current.is_held;
        *current = wish;
        drop(current);
        if is_urgent {
            self.thread.unpark();
        }
    }

    /// The news since the last call.
    pub(super) fn take(&self) -> Option<Snapshot> {
        lock(&self.shared.snapshot).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(shared: &Shared, client: Client, address: &Address, interval: Duration) {
    let database = address.database.unwrap_or(0);
    let mut client = Some(client);
    let mut table = Table::default();
    loop {
        let wish = lock(&shared.wish).clone();
        let mut pause = interval;
        if !wish.is_held {
            let connected = match client.take() {
                Some(client) => Ok(client),
                None => connect(address),
            };
            let refreshed = connected.and_then(|mut connected| {
                let snapshot = table.refresh(&mut connected, database, &wish)?;
                client = Some(connected);
                Ok(snapshot)
            });
            let snapshot = refreshed.unwrap_or_else(|error| table.failed(&error));
            if snapshot.error.is_none() && !snapshot.is_complete {
                pause = pause.min(FIRST_SWEEP_INTERVAL);
            }
            *lock(&shared.snapshot) = Some(snapshot);
        }
        thread::park_timeout(pause);
    }
}
