//! Marks of servers that want to know which keys change, because their clients track keys or wait for some. A batch
//! that changes keys reads the marks serializably. If another server has one, the batch also writes the names of the
//! keys to the message log ([`crate::cluster::relay`]). So no batch that commits after a mark was set misses it.
//!
//! A server increments a counter next to its mark as a sign of life. Other servers remove the marks of dead servers.
//! A server that finds its own mark missing sets it again, tells its clients to forget everything, and wakes those
//! that wait.

use quoin_base::limits::CHANGE_MARKS_PER_READ;
use quoin_layout::Layout;
use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, Transaction};

/// Value of a mark that asks for keys that became ready only. Any other value asks for all changes.
const READY: &[u8] = &[1];

/// Which changes a server wants reported. A later one includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Wanted {
    /// None.
    #[default]
    Nothing,
    /// Keys that may have something for waiting clients.
    Ready,
    /// All changed keys.
    All,
}

impl Wanted {
    fn of_mark(value: &[u8]) -> Self {
        match value == READY {
            true => Self::Ready,
            false => Self::All,
        }
    }
}

/// A mark of another server, with its sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeMark {
    /// The start of the server.
    pub instance: u64,
    /// The value of its counter.
    pub beat: Option<bytes::Bytes>,
}

/// Marks this server start as one that wants changes reported. `Nothing` removes the mark.
pub fn set_mark(transaction: &dyn Transaction, layout: &Layout, instance: u64, wanted: Wanted) {
    let key = layout.change_mark_key(instance);
    match wanted {
        Wanted::Nothing => return clear_mark(transaction, layout, instance),
        Wanted::Ready => transaction.set(&key, READY),
        Wanted::All => transaction.set(&key, b""),
    }
    transaction.atomic_add(&layout.change_mark_beat_key(instance), 1);
}

fn clear_mark(transaction: &dyn Transaction, layout: &Layout, instance: u64) {
    transaction.clear(&layout.change_mark_key(instance));
    transaction.clear(&layout.change_mark_beat_key(instance));
}

/// Beats, and sets the mark again if it is missing or asks for something else. Returns whether it
/// existed.
pub async fn beat(
    transaction: &dyn Transaction,
    layout: &Layout,
    instance: u64,
    wanted: Wanted,
) -> Result<bool, StoreError> {
    let key = layout.change_mark_key(instance);
    let mark = transaction.get(&key, Isolation::Serializable).await?;
    match &mark {
        Some(value) if Wanted::of_mark(value) == wanted => {
            transaction.atomic_add(&layout.change_mark_beat_key(instance), 1);
        }
        _ => set_mark(transaction, layout, instance, wanted),
    }
    Ok(mark.is_some())
}

/// What other servers want reported. Conflicts with a server that begins to want more.
pub async fn wanted_by_others(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    instance: u64,
) -> Result<Wanted, StoreError> {
    let own = layout.change_mark_key(instance);
    let marks = all_marks(transaction, layout, Isolation::Serializable).await?;
    if marks.len() >= CHANGE_MARKS_PER_READ {
        return Ok(Wanted::All);
    }
    let others = marks.iter().filter(|mark| mark.key != own);
    let wanted = others.map(|mark| Wanted::of_mark(&mark.value)).max();
    Ok(wanted.unwrap_or_default())
}

/// Marks of other servers.
pub async fn other_marks(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    instance: u64,
) -> Result<Vec<ChangeMark>, StoreError> {
    let mut marks = Vec::new();
    for row in all_marks(transaction, layout, Isolation::Snapshot).await? {
        let other = layout.read_change_mark_key(&row.key)?;
        if other != instance {
            let key = layout.change_mark_beat_key(other);
            let beat = transaction.get(&key, Isolation::Snapshot).await?;
            marks.push(ChangeMark {
                instance: other,
                beat,
            });
        }
    }
    Ok(marks)
}

/// The rows of the marks, up to [`CHANGE_MARKS_PER_READ`].
async fn all_marks(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, StoreError> {
    let range = layout.change_marks();
    let query = RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: CHANGE_MARKS_PER_READ,
        reverse: false,
        isolation,
    };
    transaction.get_range(query).await
}

/// Removes a mark if its server has shown no sign of life since the mark was read.
pub async fn clear_if_silent(
    transaction: &dyn Transaction,
    layout: &Layout,
    mark: &ChangeMark,
) -> Result<(), StoreError> {
    let key = layout.change_mark_beat_key(mark.instance);
    let beat = transaction.get(&key, Isolation::Serializable).await?;
    if beat == mark.beat {
        clear_mark(transaction, layout, mark.instance);
    }
    Ok(())
}
