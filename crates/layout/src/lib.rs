//! The layout of the store: the only crate that knows keys and stored values byte by byte.
//! docs/understand/layout.md describes it, and `tests` pins it with golden bytes, because stored
//! data must stay readable.
//!
//! Every key is the root prefix followed by FoundationDB tuple elements. The first element is the
//! space ([`Space`]). This file lists the spaces, the types of values and the sections of their
//! data. [`rows`] builds the keys that every type has. Each type has a file for its own keys.
//!
//! The crate knows neither what a value means nor how a store keeps it.

pub mod delegation;
pub mod field;
pub mod library;
pub mod member;
pub mod message;
pub mod meta;
pub mod name;
pub mod position;
pub mod priority;
pub mod rank;
pub mod row_kinds;
pub mod rows;
pub mod run;
pub mod script;
pub mod server;
pub mod stream;
pub mod stream_group;
pub mod stream_producer;
pub mod string;
pub mod task;
pub mod task_kept;
pub mod task_options;
pub mod task_schedule;
mod task_waits;
mod tuple;
pub mod user;
pub mod value;

#[cfg(test)]
mod tests;

pub use delegation::{Grant, PopRequest, PopRun, PoppedElement, decode_elements, encode_elements};
pub use field::{Entry, FieldRow, FieldValue};
pub use library::{StoredFunction, StoredLibrary};
pub use member::{HashedKeys, LongPlace, Member, MemberEntry, ScoreEntry};
pub use meta::{InlineValue, Meta, MetaCopy};
pub use name::KeyName;
pub use position::Position;
pub use priority::{Priority, PriorityNumber, QueuePlace, priority_length};
pub use rank::place_between;
pub use rows::{KeysRow, Layout};
pub use run::{ElementsValue, RUN_BYTES_MAX, RUN_ELEMENT_BYTES_MAX, RUN_ELEMENTS_MAX, Run};
pub use script::{ScriptOrigin, StoredScript};
pub use server::{ServerRow, ServersKey, decode_choice, encode_choice};
pub use stream::{StreamHead, StreamId};
pub use stream_group::{StreamConsumer, StreamGroup, StreamPending, StreamPolicy};
pub use stream_producer::{ProducedEntry, ProducerName, ProducerSettings, StreamProducer};
pub use task::{
    OrderPlace, OrderRow, TaskClass, TaskCounter, TaskNotes, TaskPlace, TaskRegistry, TaskRow,
    TaskState, Timers,
};
pub use task_kept::{TaskEnding, TaskKept};
pub use task_options::{TaskNumber, TaskOptions};
pub use task_schedule::{TaskMissed, TaskSchedule, TaskSpec, TaskTiming, TaskUnique};
pub use tuple::{
    Id, KeyRange, decode_counter, decode_id, decode_length, encode_counter, encode_id,
    encode_length, length_delta,
};
pub use user::{decode_user, encode_user};
pub use value::StoredValue;

pub use quoin_base::decode_error::DecodeError;
pub use quoin_base::key_after::key_after as successor;

use tuple::{corrupt, next_is_nil, take, take_id, with_byte};

/// Version of this layout, stored under [`Space::Version`] and checked at start.
pub const LAYOUT_VERSION: i64 = 6;

/// An enum whose variants have numbers in stored bytes, with a list of all variants.
macro_rules! numbered {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[doc = $variant_about:literal])+ $variant:ident = $number:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $variant_about])+ $variant = $number,)+
        }

        impl $name {
            /// All variants, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The variant with this number.
            pub fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| *one as u64 == number)
            }
        }
    };
}
use numbered;

numbered! {
    /// The first tuple element after the root prefix.
    pub enum Space {
        /// `(0) = LAYOUT_VERSION`.
        Version = 0,
        /// `(1, namespace…, hash, name) = meta`, `(…, 0) = length counter`.
        Keys = 1,
        /// `(2, data id…, section, …)`: the rows of values ([`Section`]).
        Data = 2,
        /// `(3, expire_at_ms, namespace…, hash, name) = ""`.
        Expiry = 3,
        /// `(4, kind, id…) = ""`: what a background task still has to clear.
        Trash = 4,
        /// `(5, instance, slot) = batch number`: shows whether a commit of unknown result was applied.
        Operations = 5,
        /// `(6) = number of server starts`, a counter for instance numbers.
        Instances = 6,
        /// `(7, database) = namespace`: what SWAPDB and FLUSHDB change.
        Databases = 7,
        /// `(8, 0)`: a counter of transactions that publish; `(8, 1, versionstamp)`: published
        /// messages; `(8, 2, instance) = ""`: servers whose clients track keys; `(8, 3, instance)`:
        /// counters that such servers change while they live; `(8, 4)`: the key of the last message
        /// that was cleared.
        Messages = 8,
        /// `(9, at_ms, namespace…, hash, name) = ""`: timers of task queues and streams.
        Timers = 9,
        /// `(10, kind, data id…, …)`: what servers of older builds popped for each other.
        Delegation = 10,
        /// `(11, 0)`: a counter of flushes; `(11, 1, sha[, number])`: scripts and their text;
        /// `(11, 2, name[, number])`: libraries of functions; `(11, 3, at_ms, sha) = ""`: index of
        /// scripts that EVAL has stored; `(11, 4)`: the version of the libraries.
        Scripts = 11,
        /// `(12, 0)`: the version of the users; `(12, 1, name)`: the rules of a user.
        Users = 12,
        /// `(13, 0, instance)`: a server that shares the store; `(13, 1, name) = instance`: the server that
        /// was chosen for a name.
        Servers = 13,
        /// `(14, at_ms, namespace…, hash, name) = ""`: timers of hashes with fields that expire.
        HashTimers = 14,
        /// `(63, random)`: a row that `quoin doctor` measures with, and removes.
        Scratch = 63,
    }
}

numbered! {
    /// The types of keys. What else the program has to know about a type is in its descriptor
    /// (`data::keyspace::kind`).
    pub enum ValueType {
        /// A list.
        List = 1,
        /// A sorted set.
        SortedSet = 2,
        /// A priority queue.
        PriorityQueue = 3,
        /// A task queue.
        TaskQueue = 4,
        /// A string.
        String = 5,
        /// A hash.
        Hash = 6,
        /// A set.
        Set = 7,
        /// A stream.
        Stream = 8,
    }
}

numbered! {
    /// The part of a data id's keys that a row belongs to.
    pub enum Section {
        /// A list's elements by position.
        Elements = 0,
        /// A sorted set's members by score.
        Scores = 1,
        /// A sorted set's scores by member.
        Members = 2,
        /// Chunks of values that are split.
        Chunks = 3,
        /// A priority queue's elements by priority.
        Queue = 4,
        /// A hash's fields by hash.
        Fields = 5,
        /// A set's members by hash.
        SetMembers = 6,
        /// Pieces of a long string.
        Pieces = 7,
        /// A task queue's ready tasks by class and place.
        TaskOrder = 8,
        /// Minima over ranges of that order.
        TaskNodes = 9,
        /// A task queue's tasks by id.
        Tasks = 10,
        /// Leases and delays by the time of their end.
        TaskDue = 11,
        /// Dead tasks by when they died.
        TaskDead = 12,
        /// A task queue's counters and its registry of resources.
        TaskQueue = 13,
        /// Requests for maintenance of the index around a place.
        TaskMaintenance = 14,
        /// A stream's entries by id.
        StreamEntries = 15,
        /// A stream's last id, the greatest deleted one, and the settings for its producers.
        StreamHead = 16,
        /// A stream's consumer groups by name.
        StreamGroups = 17,
        /// Pending entries by group and id.
        StreamPending = 18,
        /// The same by group, consumer and id.
        StreamConsumerPending = 19,
        /// Consumers by group and name.
        StreamConsumers = 20,
        /// How many entries are pending, by group, and by group and consumer.
        StreamPendingCounts = 21,
        /// The same entries by when they were delivered, of groups with a policy.
        StreamIdle = 22,
        /// How many elements the blocks of a sorted set, a list or a priority queue have.
        RankCounts = 23,
        /// End of these blocks.
        RankMarks = 24,
        /// A hash's fields by when they expire.
        FieldExpiries = 25,
        /// A stream's producers that have added entries with ids of their own.
        StreamProducers = 26,
        /// These entries by producer and the producer's id.
        StreamProduced = 27,
        /// The same by producer and number.
        StreamProducedOrder = 28,
        /// Tokens and results that a task queue remembers for a time.
        TaskKept = 29,
        /// Their ends in order, together with the ends of tasks with a time to live, and the next
        /// moments of schedules.
        TaskEnds = 30,
        /// A task queue's schedules by name.
        TaskSchedules = 31,
        /// Tasks of groups that are on lease, by group.
        TaskGroupLeases = 32,
        /// Waiting tasks by since when they wait.
        TaskWaiting = 33,
        /// The tasks that a waiting task waits for.
        TaskAwaited = 34,
        /// The same, by the awaited task.
        TaskDependants = 35,
    }
}

numbered! {
    /// The kind of id that a trash row names.
    pub enum TrashKind {
        /// Everything below a data id.
        Data = 0,
        /// Every key of a namespace, with its data.
        Namespace = 1,
    }
}
