//! What to tell others after a batch was committed: changed keys (for WATCH and CLIENT TRACKING), keys that received
//! elements (for clients that wait for them), and messages for subscribers.
//!
//! Also what a client waits for within a key, and what has become ready there, if not every item is for every client.
//! Only the key's type knows the meaning of these.

use std::any::Any;
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use quoin_base::limits::PUBLISHED_BYTES_MAX;
use quoin_layout::ValueType;

use crate::keyspace::key::ClientKey;
use crate::unit::flows::{Flows, FlowsSavepoint};
use crate::unit::host::{CallsMade, Change, Origin};
use crate::unit::spans::{Spans, SpansSavepoint};

/// A key, or all keys of a database, that may be ready for waiting clients.
#[derive(Debug, Clone, PartialEq)]
pub enum Ready {
    /// Something was added to a key.
    Key(ClientKey, ValueType),
    /// A key of this type was removed or replaced.
    Gone(ClientKey, ValueType),
    /// Items that became ready in a key and are for the same clients.
    Items {
        /// The key.
        key: ClientKey,
        /// Its type.
        value_type: ValueType,
        /// Describes the items to waiting clients.
        offer: Arc<dyn Offer>,
        /// The location of each ([`Signals::is_item_there`]).
        locations: Vec<Bytes>,
    },
    /// A database shows other keys (SWAPDB).
    Database(u32),
    /// Elements returned to a key whose database is unknown.
    Anywhere,
}

/// How subscribers of a message are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// By channel and by pattern: PUBLISH.
    Global,
    /// By shard channel: SPUBLISH.
    Shard,
}

/// A published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How its subscribers are found.
    pub kind: ChannelKind,
    /// The channel's name.
    pub channel: Bytes,
    /// The payload.
    pub payload: Bytes,
}

/// This server's subscribers, which receive the messages.
pub trait Subscribers: Send + Sync {
    /// How many clients of this server a message to this channel would reach.
    fn count(&self, kind: ChannelKind, channel: &[u8]) -> usize;

    /// Delivers a message to all its subscribers. Never waits for any of them.
    fn deliver(&self, message: &Message);

    /// Whether no message would have a receiver.
    fn is_empty(&self) -> bool;
}

/// The keys that this server's clients watch.
pub trait WatchedKeys: Send + Sync {
    /// The watched keys of a database.
    fn of_database(&self, database: u32) -> Vec<Bytes>;
}

/// A database that shows other keys than before, for clients that watch its keys.
#[derive(Debug)]
pub struct Exchanged {
    /// Its number.
    pub database: u32,
    /// The watched keys that the command has checked. Those that changed are already marked as changed. Keys that were
    /// watched later have not been checked.
    pub checked: HashSet<Bytes>,
}

/// What the commands of one attempt at a batch have to report. Each attempt has its own, so that nothing uncommitted is
/// reported.
#[derive(Debug, Default)]
pub struct Signals {
    /// On whose behalf the current command is executed.
    origin: Cell<Origin>,
    changes: RefCell<Vec<Change>>,
    exchanged: RefCell<Vec<Exchanged>>,
    ready: RefCell<Vec<Ready>>,
    messages: RefCell<Vec<Message>>,
    message_bytes: Cell<usize>,
    /// The value of `message_bytes` when the current call (a command, script or EXEC) began.
    bytes_before_call: Cell<usize>,
    has_refused: Cell<bool>,
    has_ready: Cell<bool>,
    ended: Cell<Ended>,
    /// What happened to the elements of queues.
    pub flows: Flows,
    /// What traces show about tasks.
    pub spans: Spans,
    /// The locations of items that became ready and have not been taken since.
    ready_items: RefCell<HashSet<Bytes>>,
    /// The changes of `ready_items`, to be able to undo them.
    item_changes: RefCell<Vec<ItemChange>>,
    /// Commands called by scripts. They count even if the script's writes are undone.
    pub script_calls: CallsMade,
}

/// A change of the set of ready items.
#[derive(Debug)]
enum ItemChange {
    Added(Bytes),
    Removed(Bytes),
}

/// What has ended, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Tasks that will be retried after their lease ended without success.
    pub retries: u64,
    /// Tasks that died.
    pub deaths: u64,
    /// Fields of hashes that have expired and were removed.
    pub fields: u64,
}

/// A state of [`Signals`] that can be restored.
#[derive(Debug, Clone, Copy)]
pub struct SignalsSavepoint {
    changes: usize,
    exchanged: usize,
    ready: usize,
    /// Number of locations in the last entry of `ready`, if that has items.
    last_locations: usize,
    messages: usize,
    message_bytes: usize,
    item_changes: usize,
    ended: Ended,
    flows: FlowsSavepoint,
    spans: SpansSavepoint,
}

impl Signals {
    /// Creates a savepoint for [`Self::rollback`]. Until then, nothing may be taken.
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
            ended: self.ended.get(),
            flows: self.flows.savepoint(),
            spans: self.spans.savepoint(),
        }
    }

    /// Discards what was reported since the savepoint.
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
        self.ended.set(savepoint.ended);
        self.flows.rollback(&savepoint.flows);
        self.spans.rollback(savepoint.spans);
        let mut changes = self.item_changes.borrow_mut();
        let mut items = self.ready_items.borrow_mut();
        for change in changes.drain(savepoint.item_changes..).rev() {
            match change {
                ItemChange::Added(location) => drop(items.remove(&location)),
                ItemChange::Removed(location) => drop(items.insert(location)),
            }
        }
    }

    /// Sets the client whose commands report from now on.
    pub fn set_origin(&self, origin: Origin) {
        self.origin.set(origin);
    }

    /// On whose behalf the current command is executed.
    pub fn origin(&self) -> Origin {
        self.origin.get()
    }

    /// Reports that a key changed.
    pub fn touch(&self, key: ClientKey) {
        let client = self.origin.get().client;
        self.change(Change::Key { key, client });
    }

    /// Reports a change or a read.
    pub fn change(&self, change: Change) {
        let mut changes = self.changes.borrow_mut();
        // A command often touches its key more than once, and a pipeline one key many times.
        if changes.last() != Some(&change) {
            changes.push(change);
        }
    }

    /// Reports that a database shows other keys.
    pub fn exchange(&self, exchanged: Exchanged) {
        self.exchanged.borrow_mut().push(exchanged);
    }

    /// Takes the databases that show other keys.
    pub fn take_exchanged(&self) -> Vec<Exchanged> {
        std::mem::take(&mut *self.exchanged.borrow_mut())
    }

    /// Whether any of these keys changed, even if it now has its old value again.
    pub fn has_touched<'k>(&self, keys: impl IntoIterator<Item = &'k ClientKey>) -> bool {
        let changes = self.changes.borrow();
        if changes.is_empty() {
            return false;
        }
        // Both lists may be long.
        let keys: HashSet<&ClientKey> = keys.into_iter().collect();
        let mut touched = changes.iter().filter_map(Change::watched_key);
        !keys.is_empty() && touched.any(|key| keys.contains(key))
    }

    /// Reports that something was added to a key, or that a database was swapped.
    pub fn ready(&self, ready: Ready) {
        let mut all = self.ready.borrow_mut();
        if all.last() != Some(&ready) {
            all.push(ready);
        }
        self.has_ready.set(true);
    }

    /// Reports that an item became ready in a key. `location` identifies the item.
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

    /// Reports that a ready item was taken or removed.
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

    /// Drops the items that have become ready so far. Nothing will ask for them.
    pub fn forget_items(&self) {
        self.ready_items.borrow_mut().clear();
        self.item_changes.borrow_mut().clear();
    }

    /// Reports that the lease of a task has ended without success.
    pub fn task_end(&self, is_dead: bool) {
        let mut ended = self.ended.get();
        match is_dead {
            true => ended.deaths += 1,
            false => ended.retries += 1,
        }
        self.ended.set(ended);
    }

    /// Reports that fields of a hash have expired and were removed.
    pub fn fields_expired(&self, count: u64) {
        let mut ended = self.ended.get();
        ended.fields += count;
        self.ended.set(ended);
    }

    /// What has ended so far.
    pub fn ended(&self) -> Ended {
        self.ended.get()
    }

    /// Starts a new call. Bytes published from now on count towards it.
    pub fn begin_call(&self) {
        self.bytes_before_call.set(self.message_bytes.get());
    }

    /// Adds a published message, or refuses it if the call has published too much. A single message is always accepted.
    /// So are messages of the server's own work, which publishes little at a time and has nobody to return an error to.
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

    /// Whether a message was refused and its command has not been undone yet. The command that published it must be
    /// undone.
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

    /// Whether [`Self::take_ready`] would return anything.
    pub fn has_ready(&self) -> bool {
        self.has_ready.get()
    }

    /// Takes what has become ready since the last call.
    pub fn take_ready(&self) -> Vec<Ready> {
        self.has_ready.set(false);
        std::mem::take(&mut *self.ready.borrow_mut())
    }

    /// Drops everything that has become ready so far. Nothing will ask for it.
    pub fn forget_ready(&self) {
        self.has_ready.set(false);
        self.ready.borrow_mut().clear();
        self.forget_items();
    }

    /// The changes and reads, in order.
    pub fn changes(&self) -> Ref<'_, Vec<Change>> {
        self.changes.borrow()
    }

    /// Takes the messages, in the order in which they were published.
    pub fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.borrow_mut())
    }
}

/// Something that has become ready in a key.
pub trait Offer: Any + Debug + Send + Sync {
    /// Whether the other offer is for the same clients.
    fn is_same(&self, other: &dyn Offer) -> bool;
}

/// What a client can use of the items that become ready in a key.
pub trait Wants: Any + Debug + Send + Sync {
    /// Whether it can use this offer.
    fn accepts(&self, offer: &dyn Offer) -> bool;

    /// Whether the other client wants the same, so that if one finds nothing, neither does the other.
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

    /// An offer that equals any other.
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
        // A single message may be as large as an argument, and each call has its own allowance.
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
