//! The first task in order that fits.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::classes::having_for;
use super::index::{ClassPlace, begin_key, end_key};
use super::{Amounts, OpenKey};
use crate::layout::{OrderRow, TaskRegistry};
use crate::limits::{
    TASK_FAN_MAX, TASK_HEAD_MORE_ROWS, TASK_HEAD_ROWS, TASK_LEAF_MAX, TASK_LEVELS_MAX,
    TASK_REPAIRS_MAX,
};
use crate::store::{RangeQuery, StoreError};
use crate::types::context::ReadContext;

/// A ready task that fits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) class: u32,
    pub(super) place: Bytes,
    pub(super) id: Bytes,
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

/// A class that is looked through.
struct Lane {
    class: ClassPlace,
    having: Vec<f64>,
    /// Rows that were read and not looked at yet.
    rows: VecDeque<(Bytes, OrderRow)>,
    /// What comes behind those rows; `None` where nothing does.
    from: Option<Vec<u8>>,
    /// Only the very first rows were read.
    is_begun: bool,
    found: Option<Found>,
}

/// Of what a search goes on with.
enum Step {
    /// A stretch of the order, and the level whose nodes divide it; 0 is the tasks themselves.
    Stretch(Option<Vec<u8>>, Option<Vec<u8>>, u32),
    /// A node's stretch begins.
    Begin,
    /// Everything in this node's stretch has been looked at.
    End {
        level: u32,
        place: Bytes,
        to: Option<Bytes>,
        stored: Vec<f64>,
    },
}

/// Tasks that fit, in their order, one after the other.
pub(super) struct Search<'c, 't> {
    context: &'c ReadContext<'t>,
    lanes: Vec<Lane>,
    /// Nodes that may be repaired.
    pub(super) stale: Vec<Stale>,
    /// The first ready task of each class that was looked at.
    pub(super) heads: Vec<(ClassPlace, Bytes)>,
}

impl<'c, 't> Search<'c, 't> {
    /// Begins with the first rows of each class of which something can fit.
    pub(super) async fn begin(
        context: &'c ReadContext<'t>,
        key: &OpenKey,
        registry: &TaskRegistry,
        having: &Amounts,
    ) -> Result<Self, StoreError> {
        let mut lanes = Vec::new();
        for (number, class) in registry.classes.iter().enumerate() {
            let Some(having) = having_for(registry, class, having) else {
                continue;
            };
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            lanes.push(Lane {
                class: context.class_place(key, number, having.len()),
                having,
                rows: VecDeque::new(),
                from: None,
                is_begun: true,
                found: None,
            });
        }
        let reads = lanes
            .iter()
            .map(|lane| context.first_order_rows(&lane.class, TASK_HEAD_ROWS));
        let pages = try_join_all(reads).await?;
        let mut heads = Vec::new();
        for (lane, rows) in lanes.iter_mut().zip(pages) {
            if rows.len() >= TASK_HEAD_ROWS {
                lane.from = rows.last().map(|(place, _)| behind(place));
            }
            if let Some((place, _)) = rows.first() {
                heads.push((lane.class.clone(), place.clone()));
            }
            lane.rows = rows.into();
        }
        // What the first finds bounds how far the others must look.
        lanes.sort_by(|a, b| {
            let place = |lane: &Lane| lane.rows.front().map(|(place, _)| place.clone());
            let (a, b) = (place(a), place(b));
            a.is_none().cmp(&b.is_none()).then(a.cmp(&b))
        });
        Ok(Self {
            context,
            lanes,
            stale: Vec::new(),
            heads,
        })
    }

    /// The next task that fits.
    pub(super) async fn next(&mut self) -> Result<Option<Found>, StoreError> {
        let mut best: Option<(usize, Bytes)> = None;
        for number in 0..self.lanes.len() {
            let until = best.as_ref().map(|(_, place)| place.clone());
            if let Some(place) = self.advance(number, until.as_ref()).await?
                && until.is_none_or(|until| place < until)
            {
                best = Some((number, place));
            }
        }
        let lane = best.and_then(|(number, _)| self.lanes.get_mut(number));
        Ok(lane.and_then(|lane| lane.found.take()))
    }

    /// Finds a class's next task that fits, unless it stands at or behind `until`.
    async fn advance(
        &mut self,
        number: usize,
        until: Option<&Bytes>,
    ) -> Result<Option<Bytes>, StoreError> {
        let context = self.context;
        let Some(lane) = self.lanes.get_mut(number) else {
            return Ok(None);
        };
        if let Some(found) = &lane.found {
            return Ok(Some(found.place.clone()));
        }
        let is_behind = |place: &[u8]| until.is_some_and(|until| place >= until.as_ref());
        loop {
            while let Some((place, row)) = lane.rows.pop_front() {
                if is_behind(&place) {
                    lane.rows.push_front((place, row));
                    return Ok(None);
                }
                if fits(&row.amounts, &lane.having) {
                    return Ok(lane.find(place, row));
                }
            }
            if lane.from.as_deref().is_some_and(is_behind) {
                return Ok(None);
            }
            let (Some(from), true) = (&lane.from, std::mem::take(&mut lane.is_begun)) else {
                break;
            };
            let begin = begin_key(&lane.class.order_prefix, Some(from));
            let rows = context
                .order_rows(&lane.class, (&begin, None), TASK_HEAD_MORE_ROWS)
                .await?;
            lane.from = rows
                .last()
                .filter(|_| rows.len() >= TASK_HEAD_MORE_ROWS)
                .map(|(place, _)| behind(place));
            lane.rows = rows.into();
        }
        let Some(from) = lane.from.take() else {
            return Ok(None);
        };
        let (class, having) = (lane.class.clone(), lane.having.clone());
        let found = self
            .first_fit(&class, &having, from, until.map(AsRef::as_ref))
            .await?;
        let Some(lane) = self.lanes.get_mut(number) else {
            return Ok(None);
        };
        match found {
            Some((place, row)) => {
                lane.from = Some(behind(&place));
                Ok(lane.find(place, row))
            }
            None => {
                lane.from = until.map(|until| until.to_vec());
                Ok(None)
            }
        }
    }

    /// The first task of a class that fits, in front of `until`, by the index.
    async fn first_fit(
        &mut self,
        class: &ClassPlace,
        having: &[f64],
        from: Vec<u8>,
        until: Option<&[u8]>,
    ) -> Result<Option<(Bytes, OrderRow)>, StoreError> {
        let levels = self.context.levels(class).await?.min(TASK_LEVELS_MAX);
        let mut steps = vec![Step::Stretch(Some(from), until.map(<[u8]>::to_vec), levels)];
        // What the tasks of each node that is being looked through need at the least.
        let mut least: Vec<Vec<f64>> = vec![vec![f64::INFINITY; class.slots]];
        while let Some(step) = steps.pop() {
            match step {
                Step::Stretch(from, to, 0) => {
                    let end = to.as_deref();
                    let begin = begin_key(&class.order_prefix, from.as_deref());
                    let rows = self
                        .context
                        .order_rows(class, (&begin, end), TASK_LEAF_MAX)
                        .await?;
                    if rows.len() >= TASK_LEAF_MAX
                        && let Some((last, _)) = rows.last()
                    {
                        steps.push(Step::Stretch(Some(behind(last)), to, 0));
                    }
                    for (place, row) in rows {
                        if fits(&row.amounts, having) {
                            return Ok(Some((place, row)));
                        }
                        lower(&mut least, &row.amounts);
                    }
                }
                Step::Stretch(from, to, levels) => {
                    self.descend(class, having, (from, to, levels), &mut steps, &mut least)
                        .await?;
                }
                Step::Begin => least.push(vec![f64::INFINITY; class.slots]),
                Step::End {
                    level,
                    place,
                    to,
                    stored,
                } => {
                    let Some(minima) = least.pop() else {
                        continue;
                    };
                    lower(&mut least, &minima);
                    let is_higher = minima.iter().zip(&stored).any(|(new, old)| new > old);
                    if let (true, Some(to), true) =
                        (is_higher, to, self.stale.len() < TASK_REPAIRS_MAX)
                    {
                        self.stale.push(Stale {
                            class: class.class,
                            level,
                            place,
                            to,
                            minima,
                        });
                    }
                }
            }
        }
        Ok(None)
    }

    /// Puts what of a stretch must be looked at onto the steps, the first on top.
    async fn descend(
        &self,
        class: &ClassPlace,
        having: &[f64],
        (from, to, levels): (Option<Vec<u8>>, Option<Vec<u8>>, u32),
        steps: &mut Vec<Step>,
        least: &mut [Vec<f64>],
    ) -> Result<(), StoreError> {
        let level = levels - 1;
        let (nodes, is_full) = self
            .context
            .nodes_between(
                class,
                level,
                (from.as_deref(), to.as_deref()),
                TASK_FAN_MAX * 2,
                self.context.relaxed(),
            )
            .await?;
        let Some(first) = nodes.first() else {
            steps.push(Step::Stretch(from, to, level));
            return Ok(());
        };
        // The last node of a full page comes again with the next one, which tells where it ends.
        let known = nodes.len() - usize::from(is_full && nodes.len() > 1);
        if let Some(next) = nodes.get(known) {
            steps.push(Step::Stretch(Some(next.place.to_vec()), to.clone(), levels));
        }
        let ends = nodes.iter().skip(1).map(|node| Some(node.place.clone()));
        let ends = ends.chain([to.map(Bytes::from)]);
        let stretches: Vec<_> = nodes.iter().zip(ends).take(known).collect();
        for (node, end) in stretches.into_iter().rev() {
            if !fits(&node.minima, having) {
                lower(least, &node.minima);
                continue;
            }
            let from = Some(node.place.to_vec());
            let to = end.as_ref().map(|end| end.to_vec());
            steps.push(Step::End {
                level,
                place: node.place.clone(),
                to: end,
                stored: node.minima.clone(),
            });
            steps.push(Step::Stretch(from, to, level));
            steps.push(Step::Begin);
        }
        if from
            .as_deref()
            .is_none_or(|from| from < first.place.as_ref())
        {
            steps.push(Step::Stretch(from, Some(first.place.to_vec()), level));
        }
        Ok(())
    }
}

impl Lane {
    fn find(&mut self, place: Bytes, row: OrderRow) -> Option<Bytes> {
        self.found = Some(Found {
            class: self.class.class,
            place: place.clone(),
            id: row.id,
        });
        Some(place)
    }
}

/// Behind a place, and behind the rows of a node that stands there. (No place begins with another.)
fn behind(place: &[u8]) -> Vec<u8> {
    [place, &[0xff]].concat()
}

fn fits(amounts: &[f64], having: &[f64]) -> bool {
    amounts
        .iter()
        .zip(having)
        .all(|(amount, having)| amount <= having)
}

/// Lowers the minima on top to these.
fn lower(least: &mut [Vec<f64>], amounts: &[f64]) {
    if let Some(least) = least.last_mut() {
        for (least, amount) in least.iter_mut().zip(amounts) {
            *least = least.min(*amount);
        }
    }
}

impl ReadContext<'_> {
    /// The first ready tasks of a class.
    pub(super) async fn first_order_rows(
        &self,
        class: &ClassPlace,
        limit: usize,
    ) -> Result<Vec<(Bytes, OrderRow)>, StoreError> {
        let begin = begin_key(&class.order_prefix, None);
        self.order_rows(class, (&begin, None), limit).await
    }

    /// Ready tasks of a class with their places, from a key up to a place.
    pub(super) async fn order_rows(
        &self,
        class: &ClassPlace,
        (begin, to): (&[u8], Option<&[u8]>),
        limit: usize,
    ) -> Result<Vec<(Bytes, OrderRow)>, StoreError> {
        let rows = self
            .transaction
            .get_range(RangeQuery {
                begin,
                end: &end_key(&class.order_prefix, to),
                limit,
                reverse: false,
                isolation: self.relaxed(),
            })
            .await?;
        let prefix = class.order_prefix.len();
        rows.into_iter()
            .map(|row| {
                if row.key.len() < prefix {
                    return Err(StoreError::Corrupt("key of a task's place"));
                }
                let order = OrderRow::decode(class.slots, &row.value)?;
                Ok((row.key.slice(prefix..), order))
            })
            .collect()
    }
}
