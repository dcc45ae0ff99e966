//! What a batch's commands did that others must hear of once it is committed: keys that changed
//! (for WATCH and CLIENT TRACKING), keys that something was put into (for clients that wait for them), and messages
//! for subscribers.
//!
//! What a client waits for within a key, and what has become ready there, where not all of it is
//! for every client. Only the key's type knows what they mean.

use std::any::Any;
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use quoin_base::limits::PUBLISHED_BYTES_MAX;
use quoin_layout::ValueType;

use crate::keyspace::key::ClientKey;
use crate::unit::host::{CallsMade, Change, Origin};
use crate::unit::known::ChangedBodies;

/// A key, or all keys of a database, that may have become ready for clients that wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Ready {
    /// Something was put into a key.
    Key(ClientKey, ValueType),
    /// A key of this type was removed, or something else was put in its place.
    Gone(ClientKey, ValueType),
    /// Items became ready in a key that are for the same of its clients.
    Items {
        /// The key.
        key: ClientKey,
        /// Its type.
        value_type: ValueType,
        /// What its clients are told of them.
        offer: Arc<dyn Offer>,
        /// The location of each ([`Signals::is_item_there`]).
        locations: Vec<Bytes>,
    },
    /// A database shows other keys than before (SWAPDB).
    Database(u32),
}

/// How a message finds its subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// By channel and by pattern: PUBLISH.
    Global,
    /// By shard channel: SPUBLISH.
    Shard,
}

/// A message that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How it finds its subscribers.
    pub kind: ChannelKind,
    /// The channel's name.
    pub channel: Bytes,
    /// The message.
    pub payload: Bytes,
}

/// Who hears the messages: this server's subscribers.
pub trait Subscribers: Send + Sync {
    /// How many clients of this server a message to this channel would reach.
    fn count(&self, kind: ChannelKind, channel: &[u8]) -> usize;

    /// Hands a message to all whom it reaches. Never waits for any of them.
    fn deliver(&self, message: &Message);

    /// Whether nobody would hear any message.
    fn is_empty(&self) -> bool;
}

/// Which keys this server's clients watch.
pub trait WatchedKeys: Send + Sync {
    /// Those of a database.
    fn of_database(&self, database: u32) -> Vec<Bytes>;
}

/// A database that shows other keys than before, for the clients that watch keys of it.
#[derive(Debug)]
pub struct Exchanged {
    /// Its number.
    pub database: u32,
    /// The watched keys that the command has looked at. It has touched those that changed; what
    /// became of keys that were watched later nobody has looked at.
    pub looked_at: HashSet<Bytes>,
}

/// What the commands of one attempt at a batch have to tell. Begun anew with each attempt, so
/// that nobody hears of what was not committed.
#[derive(Debug, Default)]
pub struct Signals {
    /// On whose behalf the current command runs.
    origin: Cell<Origin>,
    changes: RefCell<Vec<Change>>,
    exchanged: RefCell<Vec<Exchanged>>,
    ready: RefCell<Vec<Ready>>,
    messages: RefCell<Vec<Message>>,
    message_bytes: Cell<usize>,
    /// What `message_bytes` were when the current call began: a command, a script or an EXEC.
    bytes_before_call: Cell<usize>,
    has_refused: Cell<bool>,
    has_ready: Cell<bool>,
    task_ends: Cell<TaskEnds>,
    /// The locations of items that became ready and were not taken since.
    ready_items: RefCell<HashSet<Bytes>>,
    /// The changes of `ready_items`, so that they can be undone.
    item_changes: RefCell<Vec<ItemChange>>,
    /// What scripts have called. It counts even where the script's writes are undone.
    pub script_calls: CallsMade,
    /// Small values that were changed, for the next attempt where this one conflicts.
    pub changed_bodies: ChangedBodies,
}

/// A change of the set of items that became ready.
#[derive(Debug)]
enum ItemChange {
    Added(Bytes),
    Removed(Bytes),
}

/// Leases of tasks that ended without success, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskEnds {
    /// Tasks that are to be tried again.
    pub retries: u64,
    /// Tasks that died.
    pub deaths: u64,
}

/// How far [`Signals`] had come.
#[derive(Debug, Clone, Copy)]
pub struct SignalsSavepoint {
    changes: usize,
    exchanged: usize,
    ready: usize,
    /// Places of the last entry of `ready`, if that names items.
    last_locations: usize,
    messages: usize,
    message_bytes: usize,
    item_changes: usize,
    task_ends: TaskEnds,
}

impl Signals {
    /// Notes how far they have come, to go back to it by [`Self::rollback`]. What is told may not be
    /// taken meanwhile.
    pub fn savepoint(&self) -> SignalsSavepoint {
        let ready = self.ready.borrow();
        SignalsSavepoint {
            changes: self.changes.borrow().len(),
            exchanged: self.exchanged.borrow().len(),
            ready: ready.len(),
            last_locations: match ready.last() {
                Some(Ready::Items { locations, .. }) => locations.len(),
                _ => 0,
            },
            messages: self.messages.borrow().len(),
            message_bytes: self.message_bytes.get(),
            item_changes: self.item_changes.borrow().len(),
            task_ends: self.task_ends.get(),
        }
    }

    /// Forgets what was told since the savepoint.
    pub fn rollback(&self, savepoint: SignalsSavepoint) {
        self.changes.borrow_mut().truncate(savepoint.changes);
        self.exchanged.borrow_mut().truncate(savepoint.exchanged);
        let mut ready = self.ready.borrow_mut();
        ready.truncate(savepoint.ready);
        if let Some(Ready::Items { locations, .. }) = ready.last_mut() {
            locations.truncate(savepoint.last_locations);
        }
        self.has_ready.set(!ready.is_empty());
        self.messages.borrow_mut().truncate(savepoint.messages);
        self.message_bytes.set(savepoint.message_bytes);
        self.has_refused.set(false);
        self.task_ends.set(savepoint.task_ends);
        let mut changes = self.item_changes.borrow_mut();
        let mut items = self.ready_items.borrow_mut();
        for change in changes.drain(savepoint.item_changes..).rev() {
            match change {
                ItemChange::Added(location) => drop(items.remove(&location)),
                ItemChange::Removed(location) => drop(items.insert(location)),
            }
        }
    }

    /// What is told from now on comes from a command of this client.
    pub fn set_origin(&self, origin: Origin) {
        self.origin.set(origin);
    }

    /// On whose behalf the current command runs.
    pub fn origin(&self) -> Origin {
        self.origin.get()
    }

    /// A key changed.
    pub fn touch(&self, key: ClientKey) {
        let client = self.origin.get().client;
        self.change(Change::Key { key, client });
    }

    /// Something changed, or was read.
    pub fn change(&self, change: Change) {
        let mut changes = self.changes.borrow_mut();
        // A command often touches its key more than once, and a pipeline one key many times.
        if changes.last() != Some(&change) {
            changes.push(change);
        }
    }

    /// A database shows other keys than before.
    pub fn exchange(&self, exchanged: Exchanged) {
        self.exchanged.borrow_mut().push(exchanged);
    }

    /// The databases that show other keys than before.
    pub fn take_exchanged(&self) -> Vec<Exchanged> {
        std::mem::take(&mut *self.exchanged.borrow_mut())
    }

    /// Whether any of these keys changed, even if it is now as it was.
    pub fn has_touched<'k>(&self, keys: impl IntoIterator<Item = &'k ClientKey>) -> bool {
        let changes = self.changes.borrow();
        if changes.is_empty() {
            return false;
        }
        // Both may be many.
        let keys: HashSet<&ClientKey> = keys.into_iter().collect();
        let mut touched = changes.iter().filter_map(Change::watched_key);
        !keys.is_empty() && touched.any(|key| keys.contains(key))
    }

    /// Something was put into a key, or a database was exchanged.
    pub fn ready(&self, ready: Ready) {
        let mut all = self.ready.borrow_mut();
        if all.last() != Some(&ready) {
            all.push(ready);
        }
        self.has_ready.set(true);
    }

    /// An item became ready in a key. No other item has its `location`.
    pub fn item_ready(
        &self,
        key: ClientKey,
        value_type: ValueType,
        offer: Arc<dyn Offer>,
        location: Bytes,
    ) {
        if self.ready_items.borrow_mut().insert(location.clone()) {
            let added = ItemChange::Added(location.clone());
            self.item_changes.borrow_mut().push(added);
        }
        let mut all = self.ready.borrow_mut();
        match all.last_mut() {
            Some(Ready::Items {
                key: last,
                offer: same,
                locations,
                ..
            }) if *last == key && same.is_same(&*offer) => locations.push(location),
            _ => all.push(Ready::Items {
                key,
                value_type,
                offer,
                locations: vec![location],
            }),
        }
        self.has_ready.set(true);
    }

    /// An item that was ready was taken or removed.
    pub fn item_left(&self, location: &[u8]) {
        if let Some(location) = self.ready_items.borrow_mut().take(location) {
            let removed = ItemChange::Removed(location);
            self.item_changes.borrow_mut().push(removed);
        }
    }

    /// Whether an item that became ready is still there.
    pub fn is_item_there(&self, location: &[u8]) -> bool {
        self.ready_items.borrow().contains(location)
    }

    /// Nothing will ask for the items that have become ready so far.
    pub fn forget_items(&self) {
        self.ready_items.borrow_mut().clear();
        self.item_changes.borrow_mut().clear();
    }

    /// The lease of a task has ended without success.
    pub fn task_end(&self, is_dead: bool) {
        let mut ends = self.task_ends.get();
        match is_dead {
            true => ends.deaths += 1,
            false => ends.retries += 1,
        }
        self.task_ends.set(ends);
    }

    /// The leases that have ended without success so far.
    pub fn task_ends(&self) -> TaskEnds {
        self.task_ends.get()
    }

    /// What is published from now on counts as published by another call.
    pub fn begin_call(&self) {
        self.bytes_before_call.set(self.message_bytes.get());
    }

    /// A message was published. Refuses it if the call has published too much. One message is never
    /// too much, nor is what the server's own work tells: that does little at a time, and has nobody to
    /// give an error to.
    pub fn publish(&self, message: Message) {
        let bytes = message.channel.len() + message.payload.len() + size_of::<Message>();
        let before = self.message_bytes.get();
        let bytes = before.saturating_add(bytes);
        let before_call = self.bytes_before_call.get();
        let is_bounded = self.origin.get() != Origin::SERVER;
        if is_bounded
            && before > before_call
            && bytes.saturating_sub(before_call) > PUBLISHED_BYTES_MAX
        {
            self.has_refused.set(true);
            return;
        }
        self.message_bytes.set(bytes);
        self.messages.borrow_mut().push(message);
    }

    /// Whether a message was refused that was not undone since. The command that published it must be.
    pub fn has_refused(&self) -> bool {
        self.has_refused.get()
    }

    /// Bytes of the messages.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes.get()
    }

    /// The messages so far.
    pub fn messages(&self) -> Ref<'_, Vec<Message>> {
        self.messages.borrow()
    }

    /// Whether [`Self::take_ready`] has anything.
    pub fn has_ready(&self) -> bool {
        self.has_ready.get()
    }

    /// What has become ready since this was asked last.
    pub fn take_ready(&self) -> Vec<Ready> {
        self.has_ready.set(false);
        std::mem::take(&mut *self.ready.borrow_mut())
    }

    /// Nothing will ask for what has become ready so far.
    pub fn forget_ready(&self) {
        self.has_ready.set(false);
        self.ready.borrow_mut().clear();
        self.forget_items();
    }

    /// What changed and was read, in order.
    pub fn changes(&self) -> Ref<'_, Vec<Change>> {
        self.changes.borrow()
    }

    /// The messages, in the order in which they were published.
    pub fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.borrow_mut())
    }
}

/// Something that has become ready in a key.
pub trait Offer: Any + Debug + Send + Sync {
    /// Whether the other is for the same clients.
    fn is_same(&self, other: &dyn Offer) -> bool;
}

/// What a client can use of what becomes ready in a key.
pub trait Wants: Any + Debug + Send + Sync {
    /// Whether it can use what has become ready.
    fn accepts(&self, offer: &dyn Offer) -> bool;

    /// Whether the other wants the same: where one finds nothing the other would not either.
    fn is_same(&self, other: &dyn Wants) -> bool;
}

impl PartialEq for dyn Offer {
    fn eq(&self, other: &dyn Offer) -> bool {
        self.is_same(other)
    }
}

impl PartialEq for dyn Wants {
    fn eq(&self, other: &dyn Wants) -> bool {
        self.is_same(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An offer that is the same as any other.
    #[derive(Debug)]
    struct Anything;

    impl Offer for Anything {
        fn is_same(&self, _: &dyn Offer) -> bool {
            true
        }
    }

    #[test]
    fn an_item_that_was_taken_is_not_there() {
        let signals = Signals::default();
        let offer: Arc<dyn Offer> = Arc::new(Anything);
        let value_type = ValueType::TaskQueue;
        let key = ClientKey {
            database: 0,
            key: Bytes::from("q"),
        };
        let locations = [Bytes::from("first"), Bytes::from("second")];
        for location in &locations {
            signals.item_ready(
                key.clone(),
                value_type,
                Arc::clone(&offer),
                location.clone(),
            );
        }
        signals.item_left(b"first");
        let ready = Ready::Items {
            key,
            value_type,
            offer,
            locations: locations.to_vec(),
        };
        assert_eq!(signals.take_ready(), [ready]);
        assert!(!signals.is_item_there(b"first") && signals.is_item_there(b"second"));
        signals.forget_items();
        assert!(!signals.is_item_there(b"second"));
    }

    #[test]
    fn a_call_publishes_no_more_than_it_may() {
        let signals = Signals::default();
        signals.set_origin(Origin {
            client: 1,
            ..Origin::SERVER
        });
        let publish = |bytes: &Bytes| {
            signals.publish(Message {
                kind: ChannelKind::Global,
                channel: Bytes::from_static(b"c"),
                payload: bytes.clone(),
            });
            signals.has_refused()
        };
        let half = Bytes::from(vec![0; PUBLISHED_BYTES_MAX / 2]);
        let savepoint = signals.savepoint();
        assert!(!publish(&half));
        assert!(publish(&half));
        assert_eq!(signals.messages().len(), 1);
        signals.rollback(savepoint);
        assert!(!signals.has_refused());
        // A single message may be as large as an argument, and each call has its own.
        let whole = Bytes::from(vec![0; PUBLISHED_BYTES_MAX]);
        assert!(!publish(&whole));
        signals.begin_call();
        assert!(!publish(&half));
        assert_eq!(signals.messages().len(), 2);
        // The server's own work is never refused.
        signals.set_origin(Origin::SERVER);
        assert!(!publish(&whole));
        assert_eq!(signals.messages().len(), 3);
    }
}
