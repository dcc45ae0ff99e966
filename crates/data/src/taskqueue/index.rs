//! The index of minima above the order of a class's ready tasks.
//!
//! On each level *nodes* divide the order into stretches: a node stands at a place, and its
//! stretch goes up to the next node of its level. It holds, for each resource of the class, a
//! number that is at most what any task of its stretch needs. Levels do not depend on each other;
//! the stretches of a higher one are longer, that is all. So the rules are few:
//!
//! - Whatever stands in front of the first node of a level is not covered by it, and searched.
//! - The last node of a level begins with minima of zero, which never change while it is the
//!   last: tasks that are added behind all others change no minima.
//! - A task that is added elsewhere lowers the minima of its node on each level, by atomic
//!   operations. It conflicts with changes of the nodes around it (a node put in between, or its
//!   own taken away), which are rare, and not with others that are added.
//! - Taking a task changes no node. Minima that have become too low are raised by [who finds out]
//!   (super::tend), and nodes that have no tasks any more are taken away.

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use super::alarms::TEND_STEP_MS;
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{TaskRow, successor};
use quoin_store::{Isolation, RangeQuery, StoreError};

/// Tasks in a stretch of the index, beyond which it is cut.
pub const LEAF_MAX: usize = 128;
/// Nodes in a stretch of a higher level, beyond which it is cut.
pub(super) const FAN_MAX: usize = 64;
/// Levels of the index; each holds some dozens of times fewer nodes than the one below.
pub(super) const LEVELS_MAX: u32 = 6;
/// The index is looked after once for so many tasks that are added or taken.
pub(super) const TEND_EVERY: i64 = 16;

/// What maintenance of the index is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tending {
    /// Long stretches are cut, going up as long as there was something to cut.
    Split,
    /// That, and minima are raised, on every level.
    All,
}

impl Tending {
    /// How a note to the background work says it.
    pub(super) fn note(self) -> &'static [u8] {
        match self {
            Tending::Split => b"s",
            Tending::All => b"",
        }
    }

    pub(super) fn from_note(note: &[u8]) -> Self {
        match note {
            b"s" => Tending::Split,
            _ => Tending::All,
        }
    }
}

/// A node whose minima are lower than need be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stale {
    pub(super) class: u32,
    pub(super) level: u32,
    pub(super) place: Bytes,
    /// Up to where its stretch was looked at.
    pub(super) to: Bytes,
    /// What its tasks need at the least; infinite where it has none.
    pub(super) minima: Vec<f64>,
}

/// Where a class lies.
#[derive(Debug, Clone)]
pub(super) struct ClassPlace {
    pub(super) data: quoin_layout::Id,
    pub(super) class: u32,
    /// Resources that its tasks need.
    pub(super) slots: usize,
    pub(super) order_prefix: Vec<u8>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) place: Bytes,
    pub(super) minima: Vec<f64>,
}

/// A key behind all rows below a prefix, or in front of `to` where there is one.
pub(super) fn end_key(prefix: &[u8], to: Option<&[u8]>) -> Vec<u8> {
    match to {
        Some(to) => [prefix, to].concat(),
        None => [prefix, &[0xff]].concat(),
    }
}

/// A key in front of all rows below a prefix, or of those from `from` on.
pub(super) fn begin_key(prefix: &[u8], from: Option<&[u8]>) -> Vec<u8> {
    match from {
        Some(from) => [prefix, from].concat(),
        None => [prefix, &[0x00]].concat(),
    }
}

impl ReadContext<'_> {
    pub(super) fn class_place(&self, key: &OpenKey, class: u32, slots: usize) -> ClassPlace {
        ClassPlace {
            data: key.data(),
            class,
            slots,
            order_prefix: self.layout().task_order_prefix(key.data(), class),
        }
    }

    pub(super) fn level_prefix(&self, class: &ClassPlace, level: u32) -> Vec<u8> {
        self.layout()
            .task_nodes_prefix(class.data, class.class, level)
    }

    /// Nodes of a level from one place up to another, at most so many, and whether there may be
    /// more; then the last may lack some of its minima.
    pub(super) async fn nodes_between(
        &self,
        class: &ClassPlace,
        level: u32,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        nodes_max: usize,
        isolation: Isolation,
    ) -> Result<(Vec<Node>, bool), StoreError> {
        let prefix = self.level_prefix(class, level);
        let limit = nodes_max.saturating_mul(class.slots + 1);
        let rows = self
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
        class: &ClassPlace,
        prefix_length: usize,
        rows: &[quoin_store::KeyValue],
    ) -> Result<Vec<Node>, StoreError> {
        let mut nodes: Vec<Node> = Vec::new();
        for row in rows {
            let (place, slot) = self.layout().read_task_node(prefix_length, &row.key)?;
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

    /// The node whose stretch a place lies in.
    pub(super) async fn node_over(
        &self,
        class: &ClassPlace,
        level: u32,
        place: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Node>, StoreError> {
        let prefix = self.level_prefix(class, level);
        let mut rows = self
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

    /// The place of the first node behind a place.
    pub(super) async fn node_behind(
        &self,
        class: &ClassPlace,
        level: u32,
        place: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, StoreError> {
        let prefix = self.level_prefix(class, level);
        let rows = self
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
                self.layout().read_task_node(prefix.len(), &row.key)?.0,
            )),
            None => Ok(None),
        }
    }

    /// How many levels there are.
    pub(super) async fn levels(&self, class: &ClassPlace) -> Result<u32, StoreError> {
        if class.slots == 0 {
            return Ok(0);
        }
        let (range, prefix_length) = self.layout().task_levels(class.data, class.class);
        match self.outermost(&range, true, self.relaxed()).await? {
            Some(row) => Ok(self.layout().read_task_level(prefix_length, &row.key)? + 1),
            None => Ok(0),
        }
    }
}

impl WriteContext<'_> {
    /// Lets the index know of a task that has become ready; its row in the order is written.
    pub(super) async fn index_ready(&self, key: &OpenKey, row: &TaskRow) -> Result<(), StoreError> {
        if row.amounts.is_empty() {
            // Tasks that need nothing fit everyone: the first is always the one.
            return Ok(());
        }
        let class = self.class_place(key, row.class, row.amounts.len());
        let place = row.place.encode();
        let is_alone = self.environment.capabilities.single_writer;
        // On the first level that has no nodes others may put some meanwhile.
        let levels = self.levels(&class).await? + u32::from(!is_alone);
        let lowered = (0..levels.min(LEVELS_MAX))
            .map(|level| self.lower_minima(&class, level, &place, &row.amounts));
        // Side by side, because on a cluster each read is a round trip.
        try_join_all(lowered).await?;
        if is_alone {
            if row.place.index.rem_euclid(TEND_EVERY) == 0 {
                self.tend(&class, &place, Tending::Split).await?;
            }
        } else if self.environment.random.below(TEND_EVERY as u64 * 4) == 0 {
            // By a transaction of its own, which may conflict with others as this one must not.
            self.leave_untended(key, &class, &place, Tending::Split);
        }
        Ok(())
    }

    /// Asks background work to look at a place of the index.
    pub(super) fn leave_untended(
        &self,
        key: &OpenKey,
        class: &ClassPlace,
        place: &[u8],
        tending: Tending,
    ) {
        let row = self
            .layout()
            .task_untended_key(class.data, class.class, place);
        self.transaction.set(&row, tending.note());
        // Not at once: additions that are under way meet what it does, and are run again.
        let step_ms = TEND_STEP_MS;
        self.set_alarm(
            key,
            self.now_ms.saturating_add(step_ms - 1) / step_ms * step_ms,
        );
    }

    /// Lowers the minima over a place on one level.
    async fn lower_minima(
        &self,
        class: &ClassPlace,
        level: u32,
        place: &[u8],
        amounts: &[f64],
    ) -> Result<(), StoreError> {
        let prefix = self.level_prefix(class, level);
        let has_conflicts = !self.environment.capabilities.single_writer;
        let behind_place = [prefix.as_slice(), place, &[0xff]].concat();
        let (over, behind) = try_join(
            self.node_over(class, level, place, Isolation::Snapshot),
            self.node_behind(class, level, place, Isolation::Snapshot),
        )
        .await?;
        let Some(node) = over else {
            // In front of all nodes, where nothing is covered: unless one is put here meanwhile.
            if has_conflicts {
                self.transaction
                    .add_read_conflict_range(&begin_key(&prefix, None), &behind_place);
            }
            return Ok(());
        };
        let mark = self.layout().task_mark_key(&prefix, &node.place);
        if behind.is_none() {
            if has_conflicts {
                // Unless the node is taken away, or is not the last any more.
                self.transaction
                    .add_read_conflict_range(&mark, &successor(&mark));
                self.transaction
                    .add_read_conflict_range(&behind_place, &end_key(&prefix, None));
            }
            return Ok(());
        }
        if has_conflicts {
            self.transaction
                .add_read_conflict_range(&mark, &behind_place);
        }
        for (slot, (amount, minimum)) in amounts.iter().zip(&node.minima).enumerate() {
            // What was read is certain only where nobody else writes.
            if has_conflicts || amount < minimum {
                let row = self.layout().task_minimum_key(&prefix, &node.place, slot);
                self.transaction.atomic_min(&row, amount.to_bits());
            }
        }
        Ok(())
    }

    /// Puts a node somewhere: whoever adds a task behind it meanwhile conflicts.
    pub(super) fn put_node(&self, class: &ClassPlace, level: u32, place: &[u8], minima: &[f64]) {
        self.set_minima(class, level, place, minima);
        let mark = self
            .layout()
            .task_mark_key(&self.level_prefix(class, level), place);
        self.transaction.set(&mark, b"");
    }

    /// Gives a node other minima. The caller has read its stretch, and so conflicts with those
    /// who add a task to it first; those who do later lower the new minima.
    pub(super) fn set_minima(&self, class: &ClassPlace, level: u32, place: &[u8], minima: &[f64]) {
        let prefix = self.level_prefix(class, level);
        for (slot, minimum) in minima.iter().enumerate() {
            let row = self.layout().task_minimum_key(&prefix, place, slot);
            self.transaction.set(&row, &minimum.to_bits().to_le_bytes());
        }
    }

    /// Takes a node away: its stretch becomes part of the one before.
    pub(super) fn clear_node(&self, class: &ClassPlace, level: u32, place: &[u8]) {
        let prefix = self.level_prefix(class, level);
        let begin = [prefix.as_slice(), place].concat();
        let end = [prefix.as_slice(), place, &[0xff]].concat();
        self.transaction.clear_range(&begin, &end);
    }
}
