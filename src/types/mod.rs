//! What Redis's types mean, over the transaction trait: lists, sorted sets, and the keyspace
//! that holds them. Knows the layout and nothing of connections or replies.

pub mod context;
pub mod copying;
pub mod dumping;
pub mod fingerprint;
pub mod flush;
pub mod ghosts;
pub mod ids;
pub mod keyspace;
pub mod list;
pub mod notices;
pub mod pages;
pub mod prefetch;
pub mod priority_queue;
pub mod relay;
pub mod room;
pub mod scanning;
pub mod signals;
pub mod sizing;
pub mod sort;
pub mod sorted_set;
pub mod split;
pub mod staging;
pub mod sweeping;
pub mod task_queue;
pub mod unit;
pub mod wants;

pub use context::{Environment, ReadContext, WriteContext};
pub use keyspace::OpenKey;
pub use unit::{ReadUnit, Unit};
