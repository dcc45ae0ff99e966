//! Marks of servers whose clients track keys. A batch that changes keys reads the marks serializably. If another
//! server has one, the batch also writes the names of the keys to the message log ([`crate::cluster::relay`]). So no
//! batch that commits after a mark was set misses it.
//!
//! A server increments a counter next to its mark as a sign of life. Other servers remove the marks of dead servers.
//! A server that finds its own mark missing sets it again, and tells its clients to forget everything.

use quoin_base::limits::TRACKER_MARKS_PER_LOOK;
use quoin_layout::Layout;
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError, Transaction};

/// A mark of another server, with its sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerMark {
    /// The start of the server.
    pub instance: u64,
    /// The value of its counter.
    pub beat: Option<bytes::Bytes>,
}

/// Marks this start of the server as one whose clients track keys.
pub fn set_mark(transaction: &dyn Transaction, layout: &Layout, instance: u64) {
    transaction.set(&layout.tracker_key(instance), b"");
    transaction.atomic_add(&layout.tracker_beat_key(instance), 1);
}

/// Removes the mark of a start of a server.
pub fn clear_mark(transaction: &dyn Transaction, layout: &Layout, instance: u64) {
    transaction.clear(&layout.tracker_key(instance));
    transaction.clear(&layout.tracker_beat_key(instance));
}

/// Shows a sign of life. Returns whether the mark still existed. If not, sets it again.
pub async fn beat(
    transaction: &dyn Transaction,
    layout: &Layout,
    instance: u64,
) -> Result<bool, StoreError> {
    let key = layout.tracker_key(instance);
    let mark = transaction.get(&key, Isolation::Serializable).await?;
    match &mark {
        Some(_) => transaction.atomic_add(&layout.tracker_beat_key(instance), 1),
        None => set_mark(transaction, layout, instance),
    }
    Ok(mark.is_some())
}

/// Whether clients of other servers track keys. Conflicts with a server whose clients begin to.
pub async fn has_other_trackers(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    instance: u64,
) -> Result<bool, StoreError> {
    let range = layout.trackers();
    let query = RangeQuery {
        begin: &range.begin,
        end: &range.end,
        // One of them may be this server's own.
        limit: 2,
        reverse: false,
        isolation: Isolation::Serializable,
    };
    let own = layout.tracker_key(instance);
    let marks = transaction.get_range(query).await?;
    Ok(marks.iter().any(|mark| mark.key != own))
}

/// Marks of other servers.
pub async fn other_marks(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    instance: u64,
) -> Result<Vec<TrackerMark>, StoreError> {
    let range = layout.trackers();
    let query = RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: TRACKER_MARKS_PER_LOOK,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let mut marks = Vec::new();
    for row in transaction.get_range(query).await? {
        let other = layout.read_tracker_key(&row.key)?;
        if other != instance {
            let key = layout.tracker_beat_key(other);
            let beat = transaction.get(&key, Isolation::Snapshot).await?;
            marks.push(TrackerMark {
                instance: other,
                beat,
            });
        }
    }
    Ok(marks)
}

/// Removes a mark if its server has shown no sign of life since the mark was read.
pub async fn clear_if_silent(
    transaction: &dyn Transaction,
    layout: &Layout,
    mark: &TrackerMark,
) -> Result<(), StoreError> {
    let key = layout.tracker_beat_key(mark.instance);
    let beat = transaction.get(&key, Isolation::Serializable).await?;
    if beat == mark.beat {
        clear_mark(transaction, layout, mark.instance);
    }
    Ok(())
}
