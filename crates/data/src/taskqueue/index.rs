//! The index of minima above the order of a class's ready tasks.
//!
//! Each level has *nodes*. A node has a place in the order, and covers the range from there up to
//! the next node of its level. For each resource of the class it holds a number that is at most
//! what any task in its range needs. Levels do not depend on each other. Ranges of higher levels
//! are longer. The rules:
//!
//! - The range before the first node of a level has no node, and is searched.
//! - The last node of a level has minima of zero, so tasks that are added after all others change
//!   no minima.
//! - A task that is added elsewhere lowers the minima of its node on each level, by atomic
//!   operations. It conflicts with additions and removals of nodes around its place, which are
//!   rare, and not with other tasks that are added.
//! - Taking a task changes no node. [Maintenance](super::maintenance) raises minima that have
//!   become too low, and removes nodes without tasks.

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use super::{TaskQueue, TaskQueueMut};
use quoin_layout::{Id, TaskRow, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

/// A range of the lowest level with more tasks is split.
pub(super) const LEAF_MAX: usize = 128;
/// A range of a higher level with more nodes of the level below is split.
pub(super) const FAN_MAX: usize = 64;
/// Maximum number of levels of the index. Each has dozens of times fewer nodes than the one below.
pub(super) const LEVELS_MAX: u32 = 6;
/// On average, one in this many added or taken tasks causes maintenance of the index.
pub(super) const MAINTENANCE_EVERY: i64 = 16;
/// On a store with many writers, maintenance is due at multiples of this.
pub(super) const MAINTENANCE_STEP_MS: i64 = 500;

/// What maintenance of the index does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Splits long ranges, level by level, up to the first level that has none.
    Split,
    /// Splits long ranges and raises minima, on every level.
    All,
}

impl Scope {
    /// The value of a row that requests maintenance.
    pub(super) fn value(self) -> &'static [u8] {
        match self {
            Scope::Split => b"s",
            Scope::All => b"",
        }
    }

    pub(super) fn from_value(value: &[u8]) -> Self {
        match value {
            b"s" => Scope::Split,
            _ => Scope::All,
        }
    }
}

/// A node whose minima are too low.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stale {
    pub(super) class: u32,
    pub(super) level: u32,
    pub(super) place: Bytes,
    /// The end of the range that was read.
    pub(super) to: Bytes,
    /// The minima of its tasks; infinite if it has none.
    pub(super) minima: Vec<f64>,
}

/// A class of tasks.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) data: Id,
    pub(super) class: u32,
    /// The number of resources that its tasks need.
    pub(super) slots: usize,
    pub(super) order_prefix: Vec<u8>,
}

/// A node of the index.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) place: Bytes,
    pub(super) minima: Vec<f64>,
}

/// The end of a range of keys with a prefix: at `to`, or after all keys with it.
pub(super) fn end_key(prefix: &[u8], to: Option<&[u8]>) -> Vec<u8> {
    match to {
        Some(to) => [prefix, to].concat(),
        None => [prefix, &[0xff]].concat(),
    }
}

/// The beginning of a range of keys with a prefix: at `from`, or before all keys with it.
pub(super) fn begin_key(prefix: &[u8], from: Option<&[u8]>) -> Vec<u8> {
    match from {
        Some(from) => [prefix, from].concat(),
        None => [prefix, &[0x00]].concat(),
    }
}

impl TaskQueue<'_, '_> {
    pub(super) fn class(&self, class: u32, slots: usize) -> Class {
        Class {
            data: self.key.data(),
            class,
            slots,
            order_prefix: self
                .context
                .layout()
                .task_order_prefix(self.key.data(), class),
        }
    }

    pub(super) fn level_prefix(&self, class: &Class, level: u32) -> Vec<u8> {
        self.context
            .layout()
            .task_nodes_prefix(class.data, class.class, level)
    }

    /// Up to `nodes_max` nodes of a level between two places, and whether there may be more. If so,
    /// the last node may lack some of its minima.
    pub(super) async fn nodes_between(
        &self,
        class: &Class,
        level: u32,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        nodes_max: usize,
        isolation: Isolation,
    ) -> Result<(Vec<Node>, bool), StoreError> {
        let prefix = self.level_prefix(class, level);
        let limit = nodes_max.saturating_mul(class.slots + 1);
        let rows = self
            .context
            .transaction
            .get_range(RangeQuery {
                begin: &begin_key(&prefix, from),
                end: &end_key(&prefix, to),
                limit,
                reverse: false,
                isolation,
            })
            .await?;
        let nodes = self.group_nodes(class, prefix.len(), &rows)?;
        Ok((nodes, rows.len() >= limit))
    }

    fn group_nodes(
        &self,
        class: &Class,
        prefix_length: usize,
        rows: &[KeyValue],
    ) -> Result<Vec<Node>, StoreError> {
        let mut nodes: Vec<Node> = Vec::new();
        for row in rows {
            let (place, slot) = self
                .context
                .layout()
                .read_task_node(prefix_length, &row.key)?;
            if nodes.last().is_none_or(|last| last.place != place) {
                nodes.push(Node {
                    place,
                    minima: vec![0.0; class.slots],
                });
            }
            let Some((slot, node)) = slot.zip(nodes.last_mut()) else {
                continue;
            };
            let bits = <[u8; 8]>::try_from(row.value.as_ref())
                .map_err(|_| StoreError::Corrupt("minimum"))?;
            if let Some(minimum) = node.minima.get_mut(slot) {
                *minimum = f64::from_bits(u64::from_le_bytes(bits));
            }
        }
        Ok(nodes)
    }

    /// The node that covers a place.
    pub(super) async fn node_over(
        &self,
        class: &Class,
        level: u32,
        place: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Node>, StoreError> {
        let prefix = self.level_prefix(class, level);
        let mut rows = self
            .context
            .transaction
            .get_range(RangeQuery {
                begin: &begin_key(&prefix, None),
                end: &[prefix.as_slice(), place, &[0xff]].concat(),
                limit: class.slots + 1,
                reverse: true,
                isolation,
            })
            .await?;
        rows.reverse();
        Ok(self.group_nodes(class, prefix.len(), &rows)?.pop())
    }

    /// The place of the first node after a place.
    pub(super) async fn node_after(
        &self,
        class: &Class,
        level: u32,
        place: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, StoreError> {
        let prefix = self.level_prefix(class, level);
        let rows = self
            .context
            .transaction
            .get_range(RangeQuery {
                begin: &[prefix.as_slice(), place, &[0xff]].concat(),
                end: &end_key(&prefix, None),
                limit: 1,
                reverse: false,
                isolation,
            })
            .await?;
        match rows.first() {
            Some(row) => Ok(Some(
                self.context
                    .layout()
                    .read_task_node(prefix.len(), &row.key)?
                    .0,
            )),
            None => Ok(None),
        }
    }

    /// The number of levels that have nodes.
    pub(super) async fn levels(&self, class: &Class) -> Result<u32, StoreError> {
        if class.slots == 0 {
            return Ok(0);
        }
        let (range, prefix_length) = self.context.layout().task_levels(class.data, class.class);
        match self
            .context
            .outermost(&range, true, self.context.relaxed())
            .await?
        {
            Some(row) => Ok(self
                .context
                .layout()
                .read_task_level(prefix_length, &row.key)?
                + 1),
            None => Ok(0),
        }
    }
}

impl TaskQueueMut<'_, '_> {
    /// Adds a task that has become ready to the index. Its row in the order is already written.
    pub(super) async fn index_ready(&self, row: &TaskRow) -> Result<(), StoreError> {
        if row.amounts.is_empty() {
            // Tasks that need nothing fit every consumer, so a search always finds the first one.
            return Ok(());
        }
        let class = self.class(row.class, row.amounts.len());
        let place = row.order_place().encode();
        let is_alone = !self.context.environment.capabilities.has_other_writers;
        // Others may add nodes on the first level that has none.
        let levels = self.levels(&class).await? + u32::from(!is_alone);
        let lowered = (0..levels.min(LEVELS_MAX))
            .map(|level| self.lower_minima(&class, level, &place, &row.amounts));
        // Concurrently, because on a cluster each read is a round trip.
        try_join_all(lowered).await?;
        if is_alone {
            if row.place.index.rem_euclid(MAINTENANCE_EVERY) == 0 {
                self.maintain(&class, &place, Scope::Split).await?;
            }
        } else if self
            .context
            .environment
            .random
            .below(MAINTENANCE_EVERY as u64 * 4)
            == 0
        {
            // In another transaction, because this one must not conflict with additions.
            self.request_maintenance(&class, &place, Scope::Split);
        }
        Ok(())
    }

    /// Asks background work to maintain the index around a place.
    pub(super) fn request_maintenance(&self, class: &Class, place: &[u8], scope: Scope) {
        let layout = self.context.layout();
        let row = layout.task_maintenance_key(class.data, class.class, place);
        self.context.transaction.set(&row, scope.value());
        // Not immediately, because maintenance makes concurrent additions conflict.
        let step_ms = MAINTENANCE_STEP_MS;
        let at_ms = self.context.now_ms.saturating_add(step_ms - 1) / step_ms * step_ms;
        self.context.set_timer(self.key, at_ms);
    }

    /// Lowers the minima of the node that covers a place on one level.
    async fn lower_minima(
        &self,
        class: &Class,
        level: u32,
        place: &[u8],
        amounts: &[f64],
    ) -> Result<(), StoreError> {
        let prefix = self.level_prefix(class, level);
        let has_conflicts = self.context.environment.capabilities.has_other_writers;
        let after_place = [prefix.as_slice(), place, &[0xff]].concat();
        let (over, after) = try_join(
            self.node_over(class, level, place, Isolation::Snapshot),
            self.node_after(class, level, place, Isolation::Snapshot),
        )
        .await?;
        let Some(node) = over else {
            // No node covers the place. Conflicts if one is added before it.
            if has_conflicts {
                self.context
                    .transaction
                    .add_read_conflict_range(&begin_key(&prefix, None), &after_place);
            }
            return Ok(());
        };
        let mark = self.context.layout().task_mark_key(&prefix, &node.place);
        if after.is_none() {
            if has_conflicts {
                // Conflicts if the node is removed or is not the last any more.
                self.context
                    .transaction
                    .add_read_conflict_range(&mark, &successor(&mark));
                self.context
                    .transaction
                    .add_read_conflict_range(&after_place, &end_key(&prefix, None));
            }
            return Ok(());
        }
        if has_conflicts {
            self.context
                .transaction
                .add_read_conflict_range(&mark, &after_place);
        }
        for (slot, (amount, minimum)) in amounts.iter().zip(&node.minima).enumerate() {
            // Without other writers, the minima that were read are exact.
            if has_conflicts || amount < minimum {
                let row = self
                    .context
                    .layout()
                    .task_minimum_key(&prefix, &node.place, slot);
                self.context.transaction.atomic_min(&row, amount.to_bits());
            }
        }
        Ok(())
    }

    /// Adds a node. Concurrent additions of tasks after its place conflict.
    pub(super) fn put_node(&self, class: &Class, level: u32, place: &[u8], minima: &[f64]) {
        self.set_minima(class, level, place, minima);
        let mark = self
            .context
            .layout()
            .task_mark_key(&self.level_prefix(class, level), place);
        self.context.transaction.set(&mark, b"");
    }

    /// Sets the minima of a node. The caller has read its range, so it conflicts with tasks that were added before it
    /// commits. Tasks that are added later lower the new minima.
    pub(super) fn set_minima(&self, class: &Class, level: u32, place: &[u8], minima: &[f64]) {
        let prefix = self.level_prefix(class, level);
        for (slot, minimum) in minima.iter().enumerate() {
            let row = self.context.layout().task_minimum_key(&prefix, place, slot);
            self.context
                .transaction
                .set(&row, &minimum.to_bits().to_le_bytes());
        }
    }

    /// Removes a node. The node before it covers its range then.
    pub(super) fn clear_node(&self, class: &Class, level: u32, place: &[u8]) {
        let prefix = self.level_prefix(class, level);
        let begin = [prefix.as_slice(), place].concat();
        let end = [prefix.as_slice(), place, &[0xff]].concat();
        self.context.transaction.clear_range(&begin, &end);
    }
}
