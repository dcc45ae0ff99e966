//! Delivers messages published on other servers to this server's subscribers, and clears old messages (see
//! [`quoin_data::cluster::relay`]).
//!
//! A server without subscribers and without clients that track keys neither watches nor reads. A server that has
//! published clears the log up to its end of some seconds ago, whether or not it listens.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::shared::Shared;
use quoin_base::limits::{
    RELAY_CLEAR_INTERVAL, RELAY_POLL, RELAY_RETRY, RELAY_ROWS_PER_READ, TRACKER_DEAD_AFTER,
};
use quoin_data::cluster::relay::{LogReader, clear_messages, last_message_key};
use quoin_data::cluster::tracker_marks;
use quoin_data::cluster::tracker_marks::TrackerMark;
use quoin_data::unit::context::Environment;
use quoin_data::unit::host::Change;
use quoin_data::unit::signals::Subscribers;
use quoin_store::{Store, StoreError};

#[cfg(test)]
mod tests;

/// The relay task of one server.
pub(super) struct Relay {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    shared: Arc<Shared>,
    clearing: Clearing,
    /// Marks of other servers whose clients track keys, and how long each has shown no sign of life.
    silent_marks: HashMap<u64, (TrackerMark, Instant)>,
    /// Whether this server's own mark was missing, so that changes by other servers were missed.
    has_lost_mark: bool,
}

/// When the log is cleared next, and how far.
struct Clearing {
    /// The last row of the log at the previous check.
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
            silent_marks: HashMap::new(),
            has_lost_mark: false,
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
            self.tend_when_due().await;
            let subscribers = self.environment.subscribers.clone();
            if let Some(subscribers) = subscribers
                && self.is_heard(&*subscribers)
            {
                self.listen(&*subscribers).await;
            }
        }
    }

    /// Whether anyone would receive what is in the log.
    fn is_heard(&self, subscribers: &dyn Subscribers) -> bool {
        !subscribers.is_empty() || self.environment.has_trackers()
    }

    /// Delivers until nobody listens any more.
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
            self.tend_when_due().await;
            // Under the lock, because a client that subscribes checks it afterwards.
            let has_ended = self.shared.relay.is_listening.send_if_modified(|listens| {
                let ends = !self.is_heard(subscribers);
                *listens &= !ends;
                ends
            });
            if has_ended {
                return;
            }
        }
    }

    /// Delivers everything in the log, then waits for the bell.
    async fn deliver_or_wait(
        &self,
        reader: &mut Option<LogReader>,
        subscribers: &dyn Subscribers,
    ) -> Result<(), StoreError> {
        let layout = &self.environment.layout;
        let reader = match reader {
            Some(reader) => reader,
            None => {
                let transaction = self.store.begin_read()?;
                let started = LogReader::start(&*transaction, &self.environment).await?;
                self.shared.relay.is_listening.send_replace(true);
                reader.insert(started)
            }
        };
        // Armed before the log is read, so that no message is missed in between.
        let bell = self.store.watch(&layout.bell_key()).await?;
        loop {
            let news = {
                let transaction = self.store.begin_read()?;
                reader
                    .read(&*transaction, layout, RELAY_ROWS_PER_READ)
                    .await?
            };
            if !news.messages.is_empty() || !news.changes.is_empty() {
                self.shared.relay.note_news();
            }
            for message in &news.messages {
                subscribers.deliver(message);
            }
            self.environment.note_changes(None, &news.changes);
            if !news.has_more {
                break;
            }
        }
        tokio::select! {
            rung = bell.changed => rung,
            () = tokio::time::sleep(RELAY_POLL) => Ok(()),
        }
    }

    /// Clears what was in the log at the previous check, if that was long enough ago, and maintains marks.
    async fn tend_when_due(&mut self) {
        if Instant::now() < self.clearing.next {
            return;
        }
        if let Err(error) = self.tend_own_mark().await {
            tracing::debug!(%error, "no sign of life is given yet for clients that track keys");
        }
        let has_news = self.shared.relay.has_news.swap(false, Ordering::Relaxed);
        if (has_news || self.clearing.last_seen.is_some())
            && let Err(error) = self.clear().await
        {
            // The next time is soon enough.
            self.shared.relay.note_news();
            tracing::debug!(%error, "old messages are not cleared yet");
        }
        if has_news && let Err(error) = self.clear_dead_marks().await {
            tracing::debug!(%error, "marks of servers that have died are not removed yet");
        }
        // Counted from when the last row was read, however long that took.
        self.clearing.next = Instant::now() + RELAY_CLEAR_INTERVAL;
    }

    async fn clear(&mut self) -> Result<(), StoreError> {
        let layout = &self.environment.layout;
        let last = last_message_key(&*self.store.begin_read()?, layout).await?;
        if let Some(seen) = self.clearing.last_seen.take() {
            let transaction = self.store.begin_write()?;
            clear_messages(&*transaction, layout, &seen);
            transaction.commit().await?;
            // The log is empty now.
            if last.as_ref() == Some(&seen) {
                return Ok(());
            }
        }
        self.clearing.last_seen = last;
        Ok(())
    }

    /// Shows a sign of life while clients track keys. Removes the mark when no client does.
    async fn tend_own_mark(&mut self) -> Result<(), StoreError> {
        let mut is_marked = self.shared.relay.is_marked.lock().await;
        if !*is_marked {
            return Ok(());
        }
        let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
        let transaction = self.store.begin_write()?;
        if !self.environment.has_trackers() {
            // A client that begins to track now sets the mark again. If the mark stays, it costs other servers a
            // little.
            *is_marked = false;
            tracker_marks::clear_mark(&*transaction, layout, instance);
            return transaction.commit().await;
        }
        // Kept until the mark is certain to exist again.
        self.has_lost_mark |= !tracker_marks::beat(&*transaction, layout, instance).await?;
        transaction.commit().await?;
        if std::mem::take(&mut self.has_lost_mark) {
            tracing::warn!("other servers took this one for dead: clients forget what they track");
            self.environment.note_changes(None, &[Change::AllKeys]);
        }
        Ok(())
    }

    /// Removes marks of servers that have shown no sign of life for a long time.
    async fn clear_dead_marks(&mut self) -> Result<(), StoreError> {
        let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
        let marks = {
            let transaction = self.store.begin_read()?;
            tracker_marks::other_marks(&*transaction, layout, instance).await?
        };
        let now = Instant::now();
        let mut known = std::mem::take(&mut self.silent_marks);
        for mark in marks {
            let before = known.remove(&mark.instance);
            let since = match before {
                Some((before, since)) if before == mark => since,
                _ => now,
            };
            if now - since >= TRACKER_DEAD_AFTER {
                let transaction = self.store.begin_write()?;
                tracker_marks::clear_if_silent(&*transaction, layout, &mark).await?;
                transaction.commit().await?;
            } else {
                self.silent_marks.insert(mark.instance, (mark, since));
            }
        }
        Ok(())
    }
}
