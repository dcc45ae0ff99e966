//! The first task in order that fits.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::classes::having_for;
use super::index::{ClassPlace, FAN_MAX, LEAF_MAX, LEVELS_MAX, Stale, begin_key, end_key};
use super::{Amounts, OpenKey};
use crate::unit::context::ReadContext;
use quoin_layout::{OrderRow, TaskRegistry};
use quoin_store::{RangeQuery, StoreError};

/// Ready tasks of each class that are looked at first.
const HEAD_ROWS: usize = 4;
/// Ready tasks of a class that are looked at next, before its index is.
const HEAD_MORE_ROWS: usize = 28;
/// Classes of tasks that a search looks through side by side where a read is a round trip.
const CLASSES_AT_ONCE: usize = 16;
/// Nodes that one TASK.TAKE repairs.
const REPAIRS_MAX: usize = 16;

/// A ready task that fits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) class: u32,
    pub(super) place: Bytes,
    pub(super) id: Bytes,
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
    /// Of its nodes, those that may be repaired.
    stale: Vec<Stale>,
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
                stale: Vec::new(),
            });
        }
        let reads = lanes
            .iter()
            .map(|lane| context.first_order_rows(&lane.class, HEAD_ROWS));
        let pages = try_join_all(reads).await?;
        let mut heads = Vec::new();
        for (lane, rows) in lanes.iter_mut().zip(pages) {
            if rows.len() >= HEAD_ROWS {
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
    ///
    /// Where a read is a round trip, classes are looked through side by side, but for the first:
    /// what it has bounds how far the others go.
    pub(super) async fn next(&mut self) -> Result<Option<Found>, StoreError> {
        let context = self.context;
        let at_once = match context.environment.capabilities.single_writer {
            true => 1,
            false => CLASSES_AT_ONCE,
        };
        let lanes = self.lanes.iter().enumerate();
        let known = lanes.filter_map(|(number, lane)| Some((number, lane.found.as_ref()?)));
        let known = known.map(|(number, found)| (number, found.place.clone()));
        let mut best = known.min_by(|(_, place), (_, other)| place.cmp(other));
        let mut first = 0;
        while first < self.lanes.len() {
            let until = best.as_ref().map(|(_, place)| place.clone());
            let some = if first == 0 { 1 } else { at_once };
            let lanes = self.lanes.iter_mut().enumerate().skip(first).take(some);
            let advanced = lanes.map(async |(number, lane)| {
                let place = lane.advance(context, until.as_ref()).await?;
                Ok::<_, StoreError>(place.map(|place| (number, place)))
            });
            let advanced: Vec<_> = try_join_all(advanced).await?;
            let nearer = advanced.into_iter().flatten().chain(best);
            best = nearer.min_by(|(_, place), (_, other)| place.cmp(other));
            first += some;
        }
        let mut stale = self.lanes.iter_mut().flat_map(|lane| lane.stale.drain(..));
        let room = REPAIRS_MAX.saturating_sub(self.stale.len());
        self.stale.extend(stale.by_ref().take(room));
        drop(stale);
        let lane = best.and_then(|(number, _)| self.lanes.get_mut(number));
        Ok(lane.and_then(|lane| lane.found.take()))
    }
}

impl Lane {
    /// Finds a class's next task that fits, unless it stands at or behind `until`.
    async fn advance(
        &mut self,
        context: &ReadContext<'_>,
        until: Option<&Bytes>,
    ) -> Result<Option<Bytes>, StoreError> {
        if let Some(found) = &self.found {
            return Ok(Some(found.place.clone()));
        }
        let is_behind = |place: &[u8]| until.is_some_and(|until| place >= until.as_ref());
        loop {
            while let Some((place, row)) = self.rows.pop_front() {
                if is_behind(&place) {
                    self.rows.push_front((place, row));
                    return Ok(None);
                }
                if fits(&row.amounts, &self.having) {
                    return Ok(self.find(place, row));
                }
            }
            if self.from.as_deref().is_some_and(is_behind) {
                return Ok(None);
            }
            let (Some(from), true) = (&self.from, std::mem::take(&mut self.is_begun)) else {
                break;
            };
            let begin = begin_key(&self.class.order_prefix, Some(from));
            let rows = context
                .order_rows(&self.class, (&begin, None), HEAD_MORE_ROWS)
                .await?;
            self.from = rows
                .last()
                .filter(|_| rows.len() >= HEAD_MORE_ROWS)
                .map(|(place, _)| behind(place));
            self.rows = rows.into();
        }
        let Some(from) = self.from.take() else {
            return Ok(None);
        };
        let until = until.map(AsRef::as_ref);
        let found = self.first_fit(context, from, until).await?;
        match found {
            Some((place, row)) => Ok(self.find(place, row)),
            None => {
                self.from = until.map(<[u8]>::to_vec);
                Ok(None)
            }
        }
    }

    /// The first task of a class that fits, in front of `until`, by the index. What was read behind
    /// it is kept for the next.
    async fn first_fit(
        &mut self,
        context: &ReadContext<'_>,
        from: Vec<u8>,
        until: Option<&[u8]>,
    ) -> Result<Option<(Bytes, OrderRow)>, StoreError> {
        let (class, having) = (&self.class, self.having.as_slice());
        let levels = context.levels(class).await?.min(LEVELS_MAX);
        let mut steps = vec![Step::Stretch(Some(from), until.map(<[u8]>::to_vec), levels)];
        // What the tasks of each node that is being looked through need at the least.
        let mut least: Vec<Vec<f64>> = vec![vec![f64::INFINITY; class.slots]];
        while let Some(step) = steps.pop() {
            match step {
                Step::Stretch(from, to, 0) => {
                    let end = to.as_deref();
                    let begin = begin_key(&class.order_prefix, from.as_deref());
                    let rows = context.order_rows(class, (&begin, end), LEAF_MAX).await?;
                    let last = rows.last().filter(|_| rows.len() >= LEAF_MAX);
                    let rest = last.map(|(last, _)| behind(last));
                    let mut rows = rows.into_iter();
                    while let Some((place, row)) = rows.next() {
                        if fits(&row.amounts, having) {
                            self.from = rest.or(to);
                            self.rows = rows.collect();
                            return Ok(Some((place, row)));
                        }
                        lower(&mut least, &row.amounts);
                    }
                    if rest.is_some() {
                        steps.push(Step::Stretch(rest, to, 0));
                    }
                }
                Step::Stretch(from, to, levels) => {
                    let stretch = (from, to, levels);
                    descend(context, (class, having), stretch, &mut steps, &mut least).await?;
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
                    if let (true, Some(to), true) = (is_higher, to, self.stale.len() < REPAIRS_MAX)
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

    fn find(&mut self, place: Bytes, row: OrderRow) -> Option<Bytes> {
        self.found = Some(Found {
            class: self.class.class,
            place: place.clone(),
            id: row.id,
        });
        Some(place)
    }
}

/// Puts what of a stretch must be looked at onto the steps, the first on top.
async fn descend(
    context: &ReadContext<'_>,
    (class, having): (&ClassPlace, &[f64]),
    (from, to, levels): (Option<Vec<u8>>, Option<Vec<u8>>, u32),
    steps: &mut Vec<Step>,
    least: &mut [Vec<f64>],
) -> Result<(), StoreError> {
    let level = levels - 1;
    let (nodes, is_full) = context
        .nodes_between(
            class,
            level,
            (from.as_deref(), to.as_deref()),
            FAN_MAX * 2,
            context.relaxed(),
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
