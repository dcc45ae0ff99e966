//! What Redis's types mean, over the transaction trait: strings, lists, hashes, sets, sorted
//! sets, streams, Quoin's own types, and the keyspace that holds them. Knows the layout and nothing of connections or replies.

pub mod changed_bodies;
pub mod context;
pub mod copying;
pub mod delegation;
pub mod dumping;
pub mod encoding;
pub mod fields;
pub mod fingerprint;
pub mod flush;
pub mod hash;
mod hashed;
pub mod ids;
pub mod key;
pub mod key_figures;
pub mod key_pattern;
pub mod keyspace;
pub mod kind;
pub mod known_keys;
pub mod latest_known;
pub mod libraries;
pub mod list;
mod located;
pub mod migrating;
pub mod notices;
pub mod pages;
pub mod prefetch;
pub mod presence;
pub mod priority_queue;
pub mod queue_spans;
pub mod ranks;
pub mod read_window;
mod reading_ahead;
pub mod relay;
pub mod retained;
pub mod rights;
mod runs;
pub mod scanning;
pub mod script_calls;
pub mod script_reads;
pub mod scripts;
pub mod set;
mod side_by_side;
pub mod signals;
pub mod size_budget;
pub mod sizing;
pub mod sort;
pub mod sorted_set;
pub mod split;
pub mod startup;
pub mod stream;
pub mod string;
pub mod sweeping;
pub mod task_queue;
#[cfg(test)]
mod testing;
pub mod tracker_marks;
pub mod tracking;
pub mod unit;
pub mod users;
pub mod wants;

pub use context::{Environment, ReadContext, WriteContext};
pub use key::OpenKey;
pub use kind::{TypeKind, ValueKind};
pub use unit::{ReadUnit, Unit};

use quoin_layout::ValueType;

impl TypeKind for ValueType {
    fn kind(self) -> &'static ValueKind {
        match self {
            ValueType::List => &list::KIND,
            ValueType::SortedSet => &sorted_set::KIND,
            ValueType::PriorityQueue => &priority_queue::KIND,
            ValueType::TaskQueue => &task_queue::KIND,
            ValueType::String => &string::KIND,
            ValueType::Hash => &hash::KIND,
            ValueType::Set => &set::KIND,
            ValueType::Stream => &stream::KIND,
        }
    }
}
