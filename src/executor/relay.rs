//! Brings the messages that other servers of the store publish to this server's subscribers, and
//! clears old ones (see [`crate::types::relay`]).
//!
//! A server without subscribers neither watches nor reads. One that has published clears the log
//! up to where it was some seconds ago, whether or not it listens.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::shared::Shared;
use crate::limits::{RELAY_CLEAR_INTERVAL, RELAY_POLL, RELAY_RETRY, RELAY_ROWS_PER_READ};
use crate::store::{Store, StoreError};
use crate::types::Environment;
use crate::types::relay::{LogReader, clear_messages, last_message_key};
use crate::types::signals::Subscribers;

#[cfg(test)]
mod tests;

/// The task of one server.
pub(super) struct Relay {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    shared: Arc<Shared>,
    clearing: Clearing,
}

/// When the log is cleared, and how far.
struct Clearing {
    /// The last row when this was looked at last.
    last_seen: Option<Bytes>,
    next: Instant,
}

impl Relay {
    pub(super) fn new(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            store,
            environment,
            shared,
            clearing: Clearing {
                last_seen: None,
                next: Instant::now() + RELAY_CLEAR_INTERVAL,
            },
        }
    }

    /// Serves until `stop` resolves.
    pub(super) async fn run(mut self, stop: oneshot::Receiver<()>) {
        tokio::select! {
            _ = stop => {}
            () = self.serve() => {}
        }
    }

    async fn serve(&mut self) {
        loop {
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                () = shared.relay.is_wanted.notified() => {}
                () = tokio::time::sleep_until(self.clearing.next) => {}
            }
            self.clear_when_due().await;
            let subscribers = self.environment.subscribers.get().cloned();
            if let Some(subscribers) = subscribers
                && !subscribers.is_empty()
            {
                self.listen(&*subscribers).await;
            }
        }
    }

    /// Delivers until there are no subscribers any more.
    async fn listen(&mut self, subscribers: &dyn Subscribers) {
        let mut reader = None;
        loop {
            match self.deliver_or_wait(&mut reader, subscribers).await {
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "messages of other servers cannot be read at present");
                    tokio::time::sleep(RELAY_RETRY).await;
                }
            }
            self.clear_when_due().await;
            // Under the lock: whoever subscribes looks at it afterwards.
            let has_ended = self.shared.relay.is_listening.send_if_modified(|listens| {
                let ends = subscribers.is_empty();
                *listens &= !ends;
                ends
            });
            if has_ended {
                return;
            }
        }
    }

    /// Delivers all there is, and waits for the bell.
    async fn deliver_or_wait(
        &self,
        reader: &mut Option<LogReader>,
        subscribers: &dyn Subscribers,
    ) -> Result<(), StoreError> {
        let layout = &self.environment.layout;
        let reader = match reader {
            Some(reader) => reader,
            None => {
                let last = last_message_key(&*self.store.begin_read()?, layout).await?;
                let started = LogReader::new(&self.environment, last.as_deref());
                self.shared.relay.is_listening.send_replace(true);
                reader.insert(started)
            }
        };
        // Armed before the log is read, so that nothing falls between.
        let bell = self.store.watch(&layout.bell_key()).await?;
        loop {
            let (messages, has_more) = {
                let transaction = self.store.begin_read()?;
                reader
                    .read(&*transaction, layout, RELAY_ROWS_PER_READ)
                    .await?
            };
            if !messages.is_empty() {
                self.shared.relay.note_news();
            }
            for message in &messages {
                subscribers.deliver(message);
            }
            if !has_more {
                break;
            }
        }
        tokio::select! {
            rung = bell.changed => rung,
            () = tokio::time::sleep(RELAY_POLL) => Ok(()),
        }
    }

    /// Clears what was in the log the last time, if that was long enough ago.
    async fn clear_when_due(&mut self) {
        if Instant::now() < self.clearing.next {
            return;
        }
        let has_news = self.shared.relay.has_news.swap(false, Ordering::Relaxed);
        if (has_news || self.clearing.last_seen.is_some())
            && let Err(error) = self.clear().await
        {
            // The next time is soon enough.
            self.shared.relay.note_news();
            tracing::debug!(%error, "old messages are not cleared yet");
        }
        // From when the last row was read, however long that took.
        self.clearing.next = Instant::now() + RELAY_CLEAR_INTERVAL;
    }

    async fn clear(&mut self) -> Result<(), StoreError> {
        let layout = &self.environment.layout;
        let last = last_message_key(&*self.store.begin_read()?, layout).await?;
        if let Some(seen) = self.clearing.last_seen.take() {
            let transaction = self.store.begin_write()?;
            clear_messages(&*transaction, layout, &seen);
            transaction.commit().await?;
            // All of it is gone now.
            if last.as_ref() == Some(&seen) {
                return Ok(());
            }
        }
        self.clearing.last_seen = last;
        Ok(())
    }
}
