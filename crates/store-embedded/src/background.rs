//! A thread that works until it is dropped.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use super::shared::{Shared, guarded};
use quoin_base::threads;

/// A thread of the store. Dropping this waits for its end.
pub(super) struct BackgroundThread {
    /// `None` once the thread was asked to end.
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundThread {
    /// Starts it. `work` returns once its receiver is disconnected. A panic breaks the store.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start(
        name: &'static str,
        shared: Arc<Shared>,
        work: impl FnOnce(Receiver<()>) + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let thread = threads::spawn(name, move || guarded(&shared, || work(ended)))?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}
