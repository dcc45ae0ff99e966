//! Maintenance of the index of minima: it splits ranges that have become long, raises minima that have become too
//! low, and removes nodes without tasks.
//!
//! On a store with a single writer, transactions that add or take tasks do it, a bounded piece at a time. On a store
//! with many writers they would conflict, so they request it from background work.

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use super::index::{Class, FAN_MAX, LEAF_MAX, LEVELS_MAX, Node, Scope, Stale, begin_key, end_key};
use super::{TaskQueueMut, range_rows};
use quoin_layout::{KeyRange, OrderRow};
use quoin_store::{Isolation, RangeQuery, StoreError};

/// Number of tasks before the point where a range of tasks is split.
const LEAF_SPLIT: usize = 64;
/// Number of nodes before the point where a range of nodes is split.
const FAN_SPLIT: usize = 32;
/// The most nodes that maintenance adds at a time on a level.
const SPLITS_MAX: usize = 16;

/// How maintenance has split a range.
pub(super) enum Split {
    /// It was short enough.
    None,
    /// All parts are short enough.
    All,
    /// [`SPLITS_MAX`] nodes were added. The part from this place on may still be too long.
    UpTo(Bytes),
}

/// A part of a range: a task, or a node of the level below.
pub(super) struct Part {
    place: Bytes,
    minima: Vec<f64>,
}

/// A range that a node covers, or the range before all nodes, with its parts in order.
struct NodeRange {
    node: Option<Node>,
    end: Option<Bytes>,
    parts: Vec<Part>,
    /// Not all parts were read.
    is_cut_off: bool,
}

impl NodeRange {
    /// Higher minima for its node; infinite if it has no parts. `None` if the minima are right, if not all parts were
    /// read, or if the range is the last one, whose minima stay zero.
    fn raised(&self, class: &Class) -> Option<Vec<f64>> {
        let (Some(node), Some(_), false) = (&self.node, &self.end, self.is_cut_off) else {
            return None;
        };
        let minima = minima_of(class.slots, &self.parts);
        let mut pairs = minima.iter().zip(&node.minima);
        pairs.any(|(new, old)| new > old).then_some(minima)
    }
}

fn minima_of<'p>(slots: usize, parts: impl IntoIterator<Item = &'p Part>) -> Vec<f64> {
    let mut minima = vec![f64::INFINITY; slots];
    for part in parts {
        for (least, amount) in minima.iter_mut().zip(&part.minima) {
            *least = least.min(*amount);
        }
    }
    minima
}

impl TaskQueueMut<'_, '_> {
    /// Maintains the ranges around a place. Returns places in ranges that are still too long.
    pub(super) async fn maintain(
        &self,
        class: &Class,
        place: &[u8],
        scope: Scope,
    ) -> Result<Vec<Bytes>, StoreError> {
        let levels = self.levels(class).await?;
        let mut too_long = Vec::new();
        for level in 0..LEVELS_MAX {
            let split = self.maintain_level(class, level, place, scope).await?;
            let is_last = scope == Scope::Split || level >= levels;
            if matches!(split, Split::None) && is_last {
                break;
            }
            if let Split::UpTo(place) = split {
                too_long.push(place);
            }
        }
        Ok(too_long)
    }

    pub(super) async fn maintain_level(
        &self,
        class: &Class,
        level: u32,
        place: &[u8],
        scope: Scope,
    ) -> Result<Split, StoreError> {
        let (parts_max, split_at) = if level == 0 {
            (LEAF_MAX, LEAF_SPLIT)
        } else {
            (FAN_MAX, FAN_SPLIT)
        };
        let mut place = Bytes::copy_from_slice(place);
        let mut split = Split::None;
        // A check that finds no work must not conflict.
        let first_isolation = if !self.context.environment.capabilities.has_other_writers {
            Isolation::Serializable
        } else {
            Isolation::Snapshot
        };
        for _ in 0..SPLITS_MAX {
            let mut range = self
                .node_range(class, level, &place, parts_max * 2, first_isolation)
                .await?;
            // A part that was split off before all of it was read may have minima of zero.
            let raises = scope == Scope::All || matches!(split, Split::All);
            let has_work =
                range.parts.len() > parts_max || (raises && range.raised(class).is_some());
            if has_work && first_isolation == Isolation::Snapshot {
                range = self
                    .node_range(class, level, &place, parts_max * 2, Isolation::Serializable)
                    .await?;
            }
            let Some(middle) = range
                .parts
                .get(split_at)
                .filter(|_| range.parts.len() > parts_max)
            else {
                if raises && let (Some(minima), Some(node)) = (range.raised(class), &range.node) {
                    self.raise_node(class, level, &node.place, &node.minima, &minima);
                }
                return Ok(split);
            };
            split = Split::All;
            if let Some(node) = &range.node {
                let minima = minima_of(class.slots, range.parts.iter().take(split_at));
                self.set_minima(class, level, &node.place, &minima);
            }
            // Unread tasks may need nothing, and so may tasks that are added at the end.
            let minima = if range.is_cut_off || range.end.is_none() {
                vec![0.0; class.slots]
            } else {
                minima_of(class.slots, range.parts.iter().skip(split_at))
            };
            self.put_node(class, level, &middle.place, &minima);
            place = middle.place.clone();
        }
        Ok(Split::UpTo(place))
    }

    /// Reads the range around a place. A serializable read conflicts with other changes of it.
    async fn node_range(
        &self,
        class: &Class,
        level: u32,
        place: &[u8],
        parts_max: usize,
        isolation: Isolation,
    ) -> Result<NodeRange, StoreError> {
        let (node, end) = try_join(
            self.node_over(class, level, place, isolation),
            self.node_after(class, level, place, isolation),
        )
        .await?;
        let from = node.as_ref().map(|node| node.place.as_ref());
        let to = end.as_deref();
        let (parts, is_cut_off) = if level == 0 {
            self.task_parts(class, (from, to), parts_max, isolation)
                .await?
        } else {
            self.node_parts(class, level - 1, (from, to), parts_max, isolation)
                .await?
        };
        Ok(NodeRange {
            node,
            end,
            parts,
            is_cut_off,
        })
    }

    pub(super) async fn task_parts(
        &self,
        class: &Class,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        parts_max: usize,
        isolation: Isolation,
    ) -> Result<(Vec<Part>, bool), StoreError> {
        let prefix = &class.order_prefix;
        let rows = self
            .context
            .transaction
            .get_range(RangeQuery {
                begin: &begin_key(prefix, from),
                end: &end_key(prefix, to),
                limit: parts_max,
                reverse: false,
                isolation,
            })
            .await?;
        let is_cut_off = rows.len() >= parts_max;
        let mut parts = Vec::with_capacity(rows.len());
        for row in rows {
            parts.push(Part {
                place: row.key.slice(prefix.len()..),
                minima: OrderRow::decode(class.slots, &row.value)?.amounts,
            });
        }
        Ok((parts, is_cut_off))
    }

    async fn node_parts(
        &self,
        class: &Class,
        level: u32,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        parts_max: usize,
        isolation: Isolation,
    ) -> Result<(Vec<Part>, bool), StoreError> {
        // Before the nodes: this transaction may be splitting the range at the same time. The minima
        // of a node before its split are at most too low for both parts. Its minima after the split
        // could be too high for the other part.
        let over = match from {
            Some(from) => self.node_over(class, level, from, isolation).await?,
            None => None,
        };
        let (mut nodes, is_cut_off) = self
            .nodes_between(class, level, (from, to), parts_max, isolation)
            .await?;
        if is_cut_off {
            nodes.pop();
        }
        let mut parts: Vec<Part> = nodes
            .into_iter()
            .map(|node| Part {
                place: node.place,
                minima: node.minima,
            })
            .collect();
        // If no node of the level below begins there, the previous node covers the beginning, or
        // none does. It counts only if there are tasks. Otherwise a node whose tasks are all gone
        // would never be removed.
        let begins = parts.first().map(|part| part.place.as_ref());
        if let Some(from) = from
            && begins != Some(from)
            && self
                .has_tasks(class, (from, begins.or(to)), isolation)
                .await?
        {
            let minima = over.map_or_else(|| vec![0.0; class.slots], |node| node.minima);
            let place = Bytes::copy_from_slice(from);
            parts.insert(0, Part { place, minima });
        }
        Ok((parts, is_cut_off))
    }

    /// Whether a class has ready tasks from one place up to another.
    async fn has_tasks(
        &self,
        class: &Class,
        (from, to): (&[u8], Option<&[u8]>),
        isolation: Isolation,
    ) -> Result<bool, StoreError> {
        let range = KeyRange {
            begin: begin_key(&class.order_prefix, Some(from)),
            end: end_key(&class.order_prefix, to),
        };
        Ok(!range_rows(self.context, &range, 1, isolation)
            .await?
            .is_empty())
    }

    fn raise_node(&self, class: &Class, level: u32, place: &[u8], stored: &[f64], minima: &[f64]) {
        if minima.iter().all(|minimum| minimum.is_infinite()) {
            self.clear_node(class, level, place);
        } else if minima.iter().zip(stored).any(|(new, old)| new > old) {
            self.set_minima(class, level, place, minima);
        }
    }

    /// Repairs stale nodes that a search has found: at once on a store with a single writer, otherwise by a request
    /// to background work.
    pub(super) async fn repair(&self, stale: &[Stale]) -> Result<(), StoreError> {
        for node in stale {
            let class = self.class(node.class, node.minima.len());
            if self.context.environment.capabilities.has_other_writers {
                self.request_maintenance(&class, &node.place, Scope::All);
                continue;
            }
            // The search may have ended before the next node.
            let after = self
                .node_after(&class, node.level, &node.place, Isolation::Snapshot)
                .await?;
            if after.as_ref() == Some(&node.to) {
                let stored = vec![0.0; node.minima.len()];
                self.raise_node(&class, node.level, &node.place, &stored, &node.minima);
            }
        }
        Ok(())
    }

    /// Removes the nodes before a class's first task, whose ranges are empty. A task that is
    /// concurrently added there comes before all nodes, and is found without them.
    pub(super) async fn clear_nodes_before(
        &self,
        class: &Class,
        first: &[u8],
    ) -> Result<(), StoreError> {
        let levels = self.levels(class).await?.min(LEVELS_MAX);
        // A level may lack a node that covers the first task while a higher level has one.
        try_join_all((0..levels).map(|level| self.clear_level_before(class, level, first))).await?;
        Ok(())
    }

    async fn clear_level_before(
        &self,
        class: &Class,
        level: u32,
        first: &[u8],
    ) -> Result<(), StoreError> {
        let prefix = self.level_prefix(class, level);
        let over = self
            .node_over(class, level, first, Isolation::Snapshot)
            .await?;
        let Some(node) = over else {
            return Ok(());
        };
        let dead = KeyRange {
            begin: begin_key(&prefix, None),
            end: [prefix.as_slice(), node.place.as_ref()].concat(),
        };
        let rows = range_rows(self.context, &dead, 1, Isolation::Snapshot).await?;
        if !rows.is_empty() {
            self.context.transaction.clear_range(&dead.begin, &dead.end);
        }
        Ok(())
    }
}
