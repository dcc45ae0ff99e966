//! Keeping the index of minima in shape: nodes are put in where stretches have grown long, minima
//! are raised that have become too low, and nodes without tasks are taken away.
//!
//! On a store with a single writer whoever adds or takes does it, a bounded piece at a time. On
//! one with many it would make additions and takes conflict, so those leave a note, and the
//! background work does it.

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use super::index::{
    ClassPlace, FAN_MAX, LEAF_MAX, LEVELS_MAX, Node, Stale, Tending, begin_key, end_key,
};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{KeyRange, OrderRow};
use quoin_store::{Isolation, RangeQuery, StoreError};

#[cfg(test)]
mod tests;

/// Tasks in the first part of a stretch that is cut.
const LEAF_CUT: usize = 64;
/// Nodes in the first part of such a stretch.
const FAN_CUT: usize = 32;
/// Nodes that are put in at most when it is, on each level.
const TEND_CUTS_MAX: usize = 16;

/// What became of a stretch that may have been too long.
enum Cut {
    /// It was not.
    None,
    /// It was cut into parts none of which is.
    All,
    /// As many nodes were put in as are at once; the last part, from here on, may be too long.
    UpTo(Bytes),
}

/// The parts that a stretch consists of: tasks, or nodes of the level below.
struct Part {
    place: Bytes,
    minima: Vec<f64>,
}

/// A stretch, with its parts in order.
struct Stretch {
    node: Option<Node>,
    end: Option<Bytes>,
    parts: Vec<Part>,
    /// There are more parts than were read.
    is_cut_off: bool,
}

impl Stretch {
    /// Minima to which those of its node can be raised; infinite where it has nothing. `None`
    /// where they are as they should be, or not all was read, and of the last stretch, whose
    /// minima stay zero.
    fn raised(&self, class: &ClassPlace) -> Option<Vec<f64>> {
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

impl WriteContext<'_> {
    /// Looks after the stretches that a place lies in. Answers the places of those that are too
    /// long still.
    pub(super) async fn tend(
        &self,
        class: &ClassPlace,
        place: &[u8],
        tending: Tending,
    ) -> Result<Vec<Bytes>, StoreError> {
        let levels = self.levels(class).await?;
        let mut too_long = Vec::new();
        for level in 0..LEVELS_MAX {
            let cut = self.tend_level(class, level, place, tending).await?;
            let is_last = tending == Tending::Split || level >= levels;
            if matches!(cut, Cut::None) && is_last {
                break;
            }
            if let Cut::UpTo(place) = cut {
                too_long.push(place);
            }
        }
        Ok(too_long)
    }

    async fn tend_level(
        &self,
        class: &ClassPlace,
        level: u32,
        place: &[u8],
        tending: Tending,
    ) -> Result<Cut, StoreError> {
        let (parts_max, cut_at) = if level == 0 {
            (LEAF_MAX, LEAF_CUT)
        } else {
            (FAN_MAX, FAN_CUT)
        };
        let mut place = Bytes::copy_from_slice(place);
        let mut cut = Cut::None;
        // Where there is nothing to do, nothing is to conflict.
        let first_look = if self.environment.capabilities.single_writer {
            Isolation::Serializable
        } else {
            Isolation::Snapshot
        };
        for _ in 0..TEND_CUTS_MAX {
            let mut stretch = self
                .stretch(class, level, &place, parts_max * 2, first_look)
                .await?;
            // A part that was cut off before all of it was read may seem to need nothing.
            let raises = tending == Tending::All || matches!(cut, Cut::All);
            let has_work =
                stretch.parts.len() > parts_max || (raises && stretch.raised(class).is_some());
            if has_work && first_look == Isolation::Snapshot {
                stretch = self
                    .stretch(class, level, &place, parts_max * 2, Isolation::Serializable)
                    .await?;
            }
            let Some(middle) = stretch
                .parts
                .get(cut_at)
                .filter(|_| stretch.parts.len() > parts_max)
            else {
                if raises && let (Some(minima), Some(node)) = (stretch.raised(class), &stretch.node)
                {
                    self.raise_node(class, level, &node.place, &node.minima, &minima);
                }
                return Ok(cut);
            };
            cut = Cut::All;
            if let Some(node) = &stretch.node {
                let minima = minima_of(class.slots, stretch.parts.iter().take(cut_at));
                self.set_minima(class, level, &node.place, &minima);
            }
            // What is not known to need more may need nothing; and so may what will be added
            // behind all others.
            let minima = if stretch.is_cut_off || stretch.end.is_none() {
                vec![0.0; class.slots]
            } else {
                minima_of(class.slots, stretch.parts.iter().skip(cut_at))
            };
            self.put_node(class, level, &middle.place, &minima);
            place = middle.place.clone();
        }
        Ok(Cut::UpTo(place))
    }

    /// Reads the stretch that a place lies in: where it is to be changed so that this transaction
    /// conflicts with whoever else changes it.
    async fn stretch(
        &self,
        class: &ClassPlace,
        level: u32,
        place: &[u8],
        parts_max: usize,
        isolation: Isolation,
    ) -> Result<Stretch, StoreError> {
        let (node, end) = try_join(
            self.node_over(class, level, place, isolation),
            self.node_behind(class, level, place, isolation),
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
        Ok(Stretch {
            node,
            end,
            parts,
            is_cut_off,
        })
    }

    async fn task_parts(
        &self,
        class: &ClassPlace,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        parts_max: usize,
        isolation: Isolation,
    ) -> Result<(Vec<Part>, bool), StoreError> {
        let prefix = &class.order_prefix;
        let rows = self
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
        class: &ClassPlace,
        level: u32,
        (from, to): (Option<&[u8]>, Option<&[u8]>),
        parts_max: usize,
        isolation: Isolation,
    ) -> Result<(Vec<Part>, bool), StoreError> {
        // Before the nodes themselves: others may be cutting this stretch side by side in the same
        // transaction. What a node held before it was cut is too low for either part, at the
        // worst; what it holds afterwards would be too high for what the other part covers now.
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
        // Where no node of the level below stands at the beginning, the one in front of it covers
        // what is there, or none does. Where no task is there it says nothing, or a node whose
        // tasks are all gone would never be taken away.
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
        class: &ClassPlace,
        (from, to): (&[u8], Option<&[u8]>),
        isolation: Isolation,
    ) -> Result<bool, StoreError> {
        let range = KeyRange {
            begin: begin_key(&class.order_prefix, Some(from)),
            end: end_key(&class.order_prefix, to),
        };
        Ok(!self.task_rows(&range, 1, isolation).await?.is_empty())
    }

    fn raise_node(
        &self,
        class: &ClassPlace,
        level: u32,
        place: &[u8],
        stored: &[f64],
        minima: &[f64],
    ) {
        if minima.iter().all(|minimum| minimum.is_infinite()) {
            self.clear_node(class, level, place);
        } else if minima.iter().zip(stored).any(|(new, old)| new > old) {
            self.set_minima(class, level, place, minima);
        }
    }

    /// Repairs nodes that a search has found stale: at once on a store with a single writer, else
    /// by a note to the background work.
    pub(super) async fn repair(&self, key: &OpenKey, stale: &[Stale]) -> Result<(), StoreError> {
        for node in stale {
            let class = self.class_place(key, node.class, node.minima.len());
            if !self.environment.capabilities.single_writer {
                self.leave_untended(key, &class, &node.place, Tending::All);
                continue;
            }
            // The search may have been bounded by something other than the next node.
            let behind = self
                .node_behind(&class, node.level, &node.place, Isolation::Snapshot)
                .await?;
            if behind.as_ref() == Some(&node.to) {
                let stored = vec![0.0; node.minima.len()];
                self.raise_node(&class, node.level, &node.place, &stored, &node.minima);
            }
        }
        Ok(())
    }

    /// Takes away the nodes in front of a class's first task, which have nothing in their
    /// stretches. Whatever may be there all the same is then in front of all nodes, where it is
    /// found without them.
    pub(super) async fn drop_head(
        &self,
        class: &ClassPlace,
        first: &[u8],
    ) -> Result<(), StoreError> {
        let levels = self.levels(class).await?.min(LEVELS_MAX);
        // A level may have none over the first task while a higher one has.
        try_join_all((0..levels).map(|level| self.drop_level_head(class, level, first))).await?;
        Ok(())
    }

    async fn drop_level_head(
        &self,
        class: &ClassPlace,
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
        let rows = self.task_rows(&dead, 1, Isolation::Snapshot).await?;
        if !rows.is_empty() {
            self.transaction.clear_range(&dead.begin, &dead.end);
        }
        Ok(())
    }
}
