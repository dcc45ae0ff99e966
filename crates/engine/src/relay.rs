//! Follows the log of other servers (see [`quoin_data::cluster::relay`]). Delivers their messages to this
//! server's subscribers, reports the keys that they changed to clients that track keys, and wakes
//! the clients that wait for what they added. Also clears old messages.
//!
//! A server without subscribed, tracking or waiting clients neither watches nor reads the log. A
//! server that has published clears the log up to where it ended some seconds ago, even if it does
//! not follow it.
//!
//! For waiting clients, the server first sets its mark, then begins to read the log, and then wakes
//! all of them once. That wake-up finds what was added before the mark, and the log reports what is
//! added later. Each awaited key is also checked again periodically, because some changes are not
//! reported: a key that got another type, and what servers with older builds add.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::shared::Shared;
use super::waiters::Cursor;
use quoin_base::limits::{
    CHANGE_MARK_DEAD_AFTER, RELAY_CLEAR_INTERVAL, RELAY_POLL, RELAY_RETRY, RELAY_ROWS_PER_READ,
    WAITERS_RECHECKED_AFTER, WAITERS_RECHECKED_PER_POLL,
};
use quoin_data::cluster::change_marks;
use quoin_data::cluster::change_marks::{ChangeMark, Wanted};
use quoin_data::cluster::relay::{LogReader, clear_messages, last_message_key};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::Environment;
use quoin_data::unit::host::Change;
use quoin_store::{Store, StoreError};

#[cfg(test)]
mod tests;

/// The relay task of one server.
pub(super) struct Relay {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    shared: Arc<Shared>,
    clearing: Clearing,
    /// Marks of other servers, and how long each has shown no sign of life.
    silent_marks: HashMap<u64, (ChangeMark, Instant)>,
    /// Whether this server's own mark was missing, so that changes by other servers were missed.
    has_lost_mark: bool,
    rechecks: Rechecks,
}

/// Awaited keys to check again although nothing was reported about them.
struct Rechecks {
    /// Keys left to check in this turn.
    keys: Vec<ClientKey>,
    /// When the next turn begins.
    next_turn: Instant,
    /// When the next of these keys are checked.
    next: Instant,
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
            rechecks: Rechecks {
                keys: Vec::new(),
                next_turn: Instant::now() + WAITERS_RECHECKED_AFTER,
                next: Instant::now(),
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
                () = shared.waiters.log_wanted() => {}
                () = tokio::time::sleep_until(self.clearing.next) => {}
            }
            self.maintain_when_due().await;
            if self.is_log_needed() {
                self.follow().await;
            }
        }
    }

    /// Whether anyone needs what is in the log.
    fn is_log_needed(&self) -> bool {
        let subscribers = self.environment.subscribers.as_ref();
        subscribers.is_some_and(|subscribers| !subscribers.is_empty())
            || self.environment.has_trackers()
            || self.shared.waiters.need_log()
    }

    /// Delivers until nobody needs the log.
    async fn follow(&mut self) {
        let mut reader = None;
        loop {
            match self.deliver_or_wait(&mut reader).await {
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot read the messages of other servers");
                    tokio::time::sleep(RELAY_RETRY).await;
                }
            }
            self.maintain_when_due().await;
            self.recheck();
            // Under the lock, because a client that subscribes checks it afterwards.
            let has_ended = self.shared.relay.is_following.send_if_modified(|follows| {
                let ends = !self.is_log_needed();
                *follows &= !ends;
                ends
            });
            if has_ended {
                return;
            }
        }
    }

    /// Delivers everything in the log, then waits for the bell.
    async fn deliver_or_wait(&self, reader: &mut Option<LogReader>) -> Result<(), StoreError> {
        let waiters = &self.shared.waiters;
        let must_begin = waiters.must_follow_log();
        if must_begin {
            self.mark_for_waiters().await?;
        }
        let reader = match reader {
            Some(reader) => reader,
            None => {
                let transaction = self.store.begin_read()?;
                let started = LogReader::start(&*transaction, &self.environment).await?;
                self.shared.relay.is_following.send_replace(true);
                reader.insert(started)
            }
        };
        if must_begin {
            waiters.begin_following(reader);
        }
        let last_bell = self.deliver(reader).await?;
        let bell = self
            .store
            .watch(&self.environment.layout.bell_key())
            .await?;
        if bell.value != last_bell {
            // The bell rang between the read and the watch.
            return Ok(());
        }
        tokio::select! {
            rung = bell.changed => rung,
            () = waiters.log_wanted() => Ok(()),
            () = tokio::time::sleep(RELAY_POLL) => Ok(()),
        }
    }

    /// Delivers everything in the log. Returns the bell at the end.
    async fn deliver(&self, reader: &mut LogReader) -> Result<Option<Bytes>, StoreError> {
        loop {
            let news = {
                let transaction = self.store.begin_read()?;
                let layout = &self.environment.layout;
                reader
                    .read(&*transaction, layout, RELAY_ROWS_PER_READ)
                    .await?
            };
            if !news.is_empty() {
                self.shared.relay.note_news();
            }
            if let Some(subscribers) = &self.environment.subscribers {
                for message in &news.messages {
                    subscribers.deliver(message);
                }
            }
            self.environment.note_changes(None, &news.changes);
            self.shared.waiters.process_news(&news, reader);
            if !news.has_more {
                return Ok(news.bell);
            }
        }
    }

    /// Marks this server as one with waiting clients.
    async fn mark_for_waiters(&self) -> Result<(), StoreError> {
        let mut mark = self.shared.relay.mark.lock().await;
        if *mark < Wanted::Ready {
            let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
            let transaction = self.store.begin_write()?;
            change_marks::set_mark(&*transaction, layout, instance, Wanted::Ready);
            transaction.commit().await?;
            *mark = Wanted::Ready;
        }
        Ok(())
    }

    /// Wakes the clients of some awaited keys, to check those again.
    fn recheck(&mut self) {
        let now = Instant::now();
        let rechecks = &mut self.rechecks;
        if rechecks.keys.is_empty() && rechecks.next_turn <= now {
            rechecks.keys = self.shared.waiters.awaited_keys();
            rechecks.next_turn = now + WAITERS_RECHECKED_AFTER;
        }
        if rechecks.next <= now {
            let kept = rechecks
                .keys
                .len()
                .saturating_sub(WAITERS_RECHECKED_PER_POLL);
            for key in rechecks.keys.drain(kept..) {
                self.shared.waiters.schedule_wake_up(key, Cursor::START);
            }
            rechecks.next = now + RELAY_POLL;
        }
    }

    /// Clears what was in the log at the previous check, if that was long enough ago, and maintains marks.
    async fn maintain_when_due(&mut self) {
        if Instant::now() < self.clearing.next {
            return;
        }
        if let Err(error) = self.maintain_own_mark().await {
            tracing::debug!(%error, "no sign of life is given yet for clients that track keys or wait");
        }
        let has_news = self.shared.relay.has_news.swap(false, Ordering::Relaxed);
        if (has_news || self.clearing.last_seen.is_some())
            && let Err(error) = self.clear().await
        {
            // A failure can wait for the next time.
            self.shared.relay.note_news();
            tracing::debug!(%error, "cannot clear old messages yet");
        }
        if has_news && let Err(error) = self.clear_dead_marks().await {
            tracing::debug!(%error, "cannot remove the marks of dead servers yet");
        }
        // Counted from when the last row was read, because reading may take long.
        self.clearing.next = Instant::now() + RELAY_CLEAR_INTERVAL;
    }

    async fn clear(&mut self) -> Result<(), StoreError> {
        let layout = &self.environment.layout;
        let last = last_message_key(&*self.store.begin_read()?, layout).await?;
        if let Some(seen) = self.clearing.last_seen.take() {
            let transaction = self.store.begin_write()?;
            clear_messages(&*transaction, layout, &seen).await?;
            transaction.commit().await?;
            // The log is empty now.
            if last.as_ref() == Some(&seen) {
                return Ok(());
            }
        }
        self.clearing.last_seen = last;
        Ok(())
    }

    /// Beats while clients track keys or wait. Removes the mark when no client does.
    async fn maintain_own_mark(&mut self) -> Result<(), StoreError> {
        let still_follows = self.shared.waiters.keep_following();
        let mut mark = self.shared.relay.mark.lock().await;
        if *mark == Wanted::Nothing {
            return Ok(());
        }
        // A client that begins to track or wait now sets the mark again. A mark that stays costs
        // other servers little.
        let wanted = match self.environment.has_trackers() {
            true => Wanted::All,
            false if still_follows => Wanted::Ready,
            false => Wanted::Nothing,
        };
        *mark = wanted.min(*mark);
        let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
        let transaction = self.store.begin_write()?;
        if wanted == Wanted::Nothing {
            change_marks::set_mark(&*transaction, layout, instance, wanted);
            return transaction.commit().await;
        }
        // Remembered until the mark is certain to exist again.
        self.has_lost_mark |= !change_marks::beat(&*transaction, layout, instance, wanted).await?;
        transaction.commit().await?;
        *mark = wanted;
        if std::mem::take(&mut self.has_lost_mark) {
            tracing::warn!(
                "other servers took this one for dead: clients forget what they track, and look again for what they \
                 wait for"
            );
            self.environment.note_changes(None, &[Change::AllKeys]);
            self.shared.waiters.note_missed();
        }
        Ok(())
    }

    /// Removes marks of servers that have long been silent.
    async fn clear_dead_marks(&mut self) -> Result<(), StoreError> {
        let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
        let marks = {
            let transaction = self.store.begin_read()?;
            change_marks::other_marks(&*transaction, layout, instance).await?
        };
        let now = Instant::now();
        let mut known = std::mem::take(&mut self.silent_marks);
        for mark in marks {
            let before = known.remove(&mark.instance);
            let since = match before {
                Some((before, since)) if before == mark => since,
                _ => now,
            };
            if now - since >= CHANGE_MARK_DEAD_AFTER {
                let transaction = self.store.begin_write()?;
                change_marks::clear_if_silent(&*transaction, layout, &mark).await?;
                transaction.commit().await?;
            } else {
                self.silent_marks.insert(mark.instance, (mark, since));
            }
        }
        Ok(())
    }
}
