//! What a batch's commands did that others must hear of once it is committed: keys that changed
//! (for WATCH), keys that something was put into (for clients that wait for them), and messages
//! for subscribers.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashSet;

use bytes::Bytes;

use super::key::{ClientKey, OpenKey};
use super::task_queue::Amounts;
use crate::layout::ValueType;

/// A key, or all keys of a database, that may have become ready for clients that wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Ready {
    /// Something was put into a key.
    Key(ClientKey, ValueType),
    /// Tasks with these needs became ready in a task queue, at these places
    /// ([`Signals::is_task_there`]).
    Tasks(ClientKey, Amounts, Vec<Bytes>),
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

/// Nobody listens.
#[derive(Debug, Default)]
pub struct NoSubscribers;

impl Subscribers for NoSubscribers {
    fn count(&self, _kind: ChannelKind, _channel: &[u8]) -> usize {
        0
    }

    fn deliver(&self, _message: &Message) {}

    fn is_empty(&self) -> bool {
        true
    }
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
    touched: RefCell<Vec<ClientKey>>,
    exchanged: RefCell<Vec<Exchanged>>,
    ready: RefCell<Vec<Ready>>,
    messages: RefCell<Vec<Message>>,
    message_bytes: Cell<usize>,
    has_ready: Cell<bool>,
    /// The places of tasks that became ready and were not taken since.
    ready_tasks: RefCell<HashSet<Bytes>>,
    /// The changes of `ready_tasks`, so that they can be undone.
    task_changes: RefCell<Vec<TaskChange>>,
    /// Queues whose claims have to go back before the commands are run.
    to_recall: RefCell<Vec<OpenKey>>,
}

/// A change of the set of tasks that became ready.
#[derive(Debug)]
enum TaskChange {
    Added(Bytes),
    Removed(Bytes),
}

/// How far [`Signals`] had come.
#[derive(Debug, Clone, Copy)]
pub struct SignalsSavepoint {
    touched: usize,
    exchanged: usize,
    ready: usize,
    /// Places of the last entry of `ready`, where that names tasks.
    last_places: usize,
    messages: usize,
    message_bytes: usize,
    task_changes: usize,
    to_recall: usize,
}

impl Signals {
    /// Notes how far they have come, to go back to it by [`Self::rollback`]. What is told may not be
    /// taken meanwhile.
    pub fn savepoint(&self) -> SignalsSavepoint {
        let ready = self.ready.borrow();
        SignalsSavepoint {
            touched: self.touched.borrow().len(),
            exchanged: self.exchanged.borrow().len(),
            ready: ready.len(),
            last_places: match ready.last() {
                Some(Ready::Tasks(_, _, places)) => places.len(),
                _ => 0,
            },
            messages: self.messages.borrow().len(),
            message_bytes: self.message_bytes.get(),
            task_changes: self.task_changes.borrow().len(),
            to_recall: self.to_recall.borrow().len(),
        }
    }

    /// Forgets what was told since the savepoint.
    pub fn rollback(&self, savepoint: SignalsSavepoint) {
        self.touched.borrow_mut().truncate(savepoint.touched);
        self.exchanged.borrow_mut().truncate(savepoint.exchanged);
        let mut ready = self.ready.borrow_mut();
        ready.truncate(savepoint.ready);
        if let Some(Ready::Tasks(_, _, places)) = ready.last_mut() {
            places.truncate(savepoint.last_places);
        }
        self.has_ready.set(!ready.is_empty());
        self.messages.borrow_mut().truncate(savepoint.messages);
        self.message_bytes.set(savepoint.message_bytes);
        let mut changes = self.task_changes.borrow_mut();
        let mut tasks = self.ready_tasks.borrow_mut();
        for change in changes.drain(savepoint.task_changes..).rev() {
            match change {
                TaskChange::Added(place) => drop(tasks.remove(&place)),
                TaskChange::Removed(place) => drop(tasks.insert(place)),
            }
        }
        self.to_recall.borrow_mut().truncate(savepoint.to_recall);
    }

    /// A key changed.
    pub fn touch(&self, key: ClientKey) {
        let mut touched = self.touched.borrow_mut();
        // A command often touches its key more than once, and a pipeline one key many times.
        if touched.last() != Some(&key) {
            touched.push(key);
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
        let touched = self.touched.borrow();
        if touched.is_empty() {
            return false;
        }
        // Both may be many.
        let keys: HashSet<&ClientKey> = keys.into_iter().collect();
        !keys.is_empty() && touched.iter().any(|key| keys.contains(key))
    }

    /// This attempt comes to nothing: it met a queue of which other servers hold elements, which
    /// have to go back to it first.
    pub fn recall(&self, key: OpenKey) {
        self.to_recall.borrow_mut().push(key);
    }

    /// Whether there are such queues.
    pub fn has_recalls(&self) -> bool {
        !self.to_recall.borrow().is_empty()
    }

    /// Queues whose elements have to go back before the next attempt.
    pub fn take_recalls(&self) -> Vec<OpenKey> {
        std::mem::take(&mut *self.to_recall.borrow_mut())
    }

    /// Something was put into a key, or a database was exchanged.
    pub fn ready(&self, ready: Ready) {
        let mut all = self.ready.borrow_mut();
        if all.last() != Some(&ready) {
            all.push(ready);
        }
        self.has_ready.set(true);
    }

    /// A task became ready in a task queue. `place`: its row in the order, which no other task has.
    pub fn task_ready(&self, key: ClientKey, needs: Amounts, place: Bytes) {
        if self.ready_tasks.borrow_mut().insert(place.clone()) {
            let added = TaskChange::Added(place.clone());
            self.task_changes.borrow_mut().push(added);
        }
        let mut all = self.ready.borrow_mut();
        match all.last_mut() {
            Some(Ready::Tasks(last, same, places)) if *last == key && *same == needs => {
                places.push(place);
            }
            _ => all.push(Ready::Tasks(key, needs, vec![place])),
        }
        self.has_ready.set(true);
    }

    /// A task that was ready was taken, or is gone.
    pub fn task_left(&self, place: &[u8]) {
        if let Some(place) = self.ready_tasks.borrow_mut().take(place) {
            let removed = TaskChange::Removed(place);
            self.task_changes.borrow_mut().push(removed);
        }
    }

    /// Whether a task that became ready is there still.
    pub fn is_task_there(&self, place: &[u8]) -> bool {
        self.ready_tasks.borrow().contains(place)
    }

    /// Nobody will ask for the tasks that have become ready so far.
    pub fn forget_tasks(&self) {
        self.ready_tasks.borrow_mut().clear();
        self.task_changes.borrow_mut().clear();
    }

    /// A message was published.
    pub fn publish(&self, message: Message) {
        let bytes = message.channel.len() + message.payload.len();
        let bytes = self.message_bytes.get().saturating_add(bytes);
        self.message_bytes.set(bytes);
        self.messages.borrow_mut().push(message);
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

    /// The keys that changed.
    pub fn take_touched(&self) -> Vec<ClientKey> {
        std::mem::take(&mut *self.touched.borrow_mut())
    }

    /// The messages, in the order in which they were published.
    pub fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_taken_is_not_told_of_as_there() {
        let signals = Signals::default();
        let key = ClientKey {
            database: 0,
            key: Bytes::from("q"),
        };
        let places = [Bytes::from("first"), Bytes::from("second")];
        for place in &places {
            signals.task_ready(key.clone(), Amounts::default(), place.clone());
        }
        signals.task_left(b"first");
        let ready = Ready::Tasks(key, Amounts::default(), places.to_vec());
        assert_eq!(signals.take_ready(), [ready]);
        assert!(!signals.is_task_there(b"first") && signals.is_task_there(b"second"));
        signals.forget_tasks();
        assert!(!signals.is_task_there(b"second"));
    }
}
