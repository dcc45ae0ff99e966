//! The search for the first task in order that fits.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::TaskQueue;
use super::index::{Class, FAN_MAX, LEAF_MAX, LEVELS_MAX, Stale, begin_key, end_key};
use super::resources::{Amounts, having_for};
use quoin_layout::{OrderRow, TaskRegistry};
use quoin_store::{RangeQuery, StoreError};

/// Ready tasks of each class that are read first.
const HEAD_ROWS: usize = 4;
/// Ready tasks of a class that are read next, before its index.
const HEAD_MORE_ROWS: usize = 28;
/// Classes that are searched concurrently if a read is a round trip.
const CLASSES_AT_ONCE: usize = 16;
/// Maximum number of nodes that one TASK.TAKE repairs.
pub(super) const REPAIRS_MAX: usize = 16;

/// A ready task that fits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) class: u32,
    pub(super) place: Bytes,
    pub(super) id: Bytes,
}

/// The search of a class.
struct ClassSearch {
    class: Class,
    having: Vec<f64>,
    /// Rows that were read and not compared yet.
    rows: VecDeque<(Bytes, OrderRow)>,
    /// Where the order continues after these rows. `None` at its end.
    from: Option<Vec<u8>>,
    /// Only the first [`HEAD_ROWS`] rows were read.
    is_at_head: bool,
    found: Option<Found>,
    /// Its stale nodes.
    stale: Vec<Stale>,
}

/// A step of a search by the index.
enum Step {
    /// Searches a range of the order, by the nodes of the level below this number; 0 reads the tasks.
    Range(Option<Vec<u8>>, Option<Vec<u8>>, u32),
    /// The range of a node begins.
    Begin,
    /// The range of this node was searched.
    End {
        level: u32,
        place: Bytes,
        to: Option<Bytes>,
        stored: Vec<f64>,
    },
}

/// Finds the tasks that fit, one after another, in order.
pub(super) struct Search<'q, 'c, 't> {
    queue: &'q TaskQueue<'c, 't>,
    searches: Vec<ClassSearch>,
    /// Stale nodes.
    pub(super) stale: Vec<Stale>,
    /// The first task that was read of each searched class.
    pub(super) heads: Vec<(Class, Bytes)>,
}

impl<'q, 'c, 't> Search<'q, 'c, 't> {
    /// Reads the first rows of each class that may have a task that fits, starting at a key suffix
    /// if given.
    pub(super) async fn begin(
        queue: &'q TaskQueue<'c, 't>,
        registry: &TaskRegistry,
        having: &Amounts,
        from: Option<Vec<u8>>,
    ) -> Result<Self, StoreError> {
        let mut searches = Vec::new();
        for (number, class) in registry.classes.iter().enumerate() {
            let Some(having) = having_for(registry, class, having) else {
                continue;
            };
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            searches.push(ClassSearch {
                class: queue.class(number, having.len()),
                having,
                rows: VecDeque::new(),
                from: None,
                is_at_head: true,
                found: None,
                stale: Vec::new(),
            });
        }
        let reads = searches
            .iter()
            .map(|search| queue.first_order_rows(&search.class, from.as_deref(), HEAD_ROWS));
        let pages = try_join_all(reads).await?;
        let mut heads = Vec::new();
        for (search, rows) in searches.iter_mut().zip(pages) {
            if rows.len() >= HEAD_ROWS {
                search.from = rows.last().map(|(place, _)| after(place));
            }
            if let Some((place, _)) = rows.first() {
                heads.push((search.class.clone(), place.clone()));
            }
            search.rows = rows.into();
        }
        // The task that the first class finds bounds the search of the others.
        searches.sort_by(|a, b| {
            let place = |search: &ClassSearch| search.rows.front().map(|(place, _)| place.clone());
            let (a, b) = (place(a), place(b));
            a.is_none().cmp(&b.is_none()).then(a.cmp(&b))
        });
        Ok(Self {
            queue,
            searches,
            stale: Vec::new(),
            heads,
        })
    }

    /// The next task that fits.
    ///
    /// If a read is a round trip, classes are searched concurrently, except the first: the task that it finds bounds
    /// the search of the others.
    pub(super) async fn next(&mut self) -> Result<Option<Found>, StoreError> {
        let queue = self.queue;
        let at_once = match queue.context.environment.capabilities.reads_wait {
            false => 1,
            true => CLASSES_AT_ONCE,
        };
        let searches = self.searches.iter().enumerate();
        let known = searches.filter_map(|(number, search)| Some((number, search.found.as_ref()?)));
        let known = known.map(|(number, found)| (number, found.place.clone()));
        let mut best = known.min_by(|(_, place), (_, other)| place.cmp(other));
        let mut first = 0;
        while first < self.searches.len() {
            let until = best.as_ref().map(|(_, place)| place.clone());
            let some = if first == 0 { 1 } else { at_once };
            let searches = self.searches.iter_mut().enumerate().skip(first).take(some);
            let advanced = searches.map(async |(number, search)| {
                let place = search.advance(queue, until.as_ref()).await?;
                Ok::<_, StoreError>(place.map(|place| (number, place)))
            });
            let advanced: Vec<_> = try_join_all(advanced).await?;
            let nearer = advanced.into_iter().flatten().chain(best);
            best = nearer.min_by(|(_, place), (_, other)| place.cmp(other));
            first += some;
        }
        let mut stale = self
            .searches
            .iter_mut()
            .flat_map(|search| search.stale.drain(..));
        let room = REPAIRS_MAX.saturating_sub(self.stale.len());
        self.stale.extend(stale.by_ref().take(room));
        drop(stale);
        let search = best.and_then(|(number, _)| self.searches.get_mut(number));
        Ok(search.and_then(|search| search.found.take()))
    }
}

impl ClassSearch {
    /// Finds the next task of the class that fits, if it is before `until`.
    async fn advance(
        &mut self,
        queue: &TaskQueue<'_, '_>,
        until: Option<&Bytes>,
    ) -> Result<Option<Bytes>, StoreError> {
        if let Some(found) = &self.found {
            return Ok(Some(found.place.clone()));
        }
        let is_beyond = |place: &[u8]| until.is_some_and(|until| place >= until.as_ref());
        loop {
            while let Some((place, row)) = self.rows.pop_front() {
                if is_beyond(&place) {
                    self.rows.push_front((place, row));
                    return Ok(None);
                }
                if fits(&row.amounts, &self.having) {
                    return Ok(self.find(place, row));
                }
            }
            if self.from.as_deref().is_some_and(is_beyond) {
                return Ok(None);
            }
            let (Some(from), true) = (&self.from, std::mem::take(&mut self.is_at_head)) else {
                break;
            };
            let begin = begin_key(&self.class.order_prefix, Some(from));
            let rows = queue
                .order_rows(&self.class, (&begin, None), HEAD_MORE_ROWS)
                .await?;
            self.from = rows
                .last()
                .filter(|_| rows.len() >= HEAD_MORE_ROWS)
                .map(|(place, _)| after(place));
            self.rows = rows.into();
        }
        let Some(from) = self.from.take() else {
            return Ok(None);
        };
        let until = until.map(AsRef::as_ref);
        let found = self.first_fit(queue, from, until).await?;
        match found {
            Some((place, row)) => Ok(self.find(place, row)),
            None => {
                self.from = until.map(<[u8]>::to_vec);
                Ok(None)
            }
        }
    }

    /// Finds the first task of the class that fits before `until` by the index. Rows after it are kept for the next
    /// search.
    async fn first_fit(
        &mut self,
        queue: &TaskQueue<'_, '_>,
        from: Vec<u8>,
        until: Option<&[u8]>,
    ) -> Result<Option<(Bytes, OrderRow)>, StoreError> {
        let (class, having) = (&self.class, self.having.as_slice());
        let levels = queue.levels(class).await?.min(LEVELS_MAX);
        let mut steps = vec![Step::Range(Some(from), until.map(<[u8]>::to_vec), levels)];
        // The minima so far for each node whose range is being searched.
        let mut least: Vec<Vec<f64>> = vec![vec![f64::INFINITY; class.slots]];
        while let Some(step) = steps.pop() {
            match step {
                Step::Range(from, to, 0) => {
                    let end = to.as_deref();
                    let begin = begin_key(&class.order_prefix, from.as_deref());
                    let rows = queue.order_rows(class, (&begin, end), LEAF_MAX).await?;
                    let last = rows.last().filter(|_| rows.len() >= LEAF_MAX);
                    let rest = last.map(|(last, _)| after(last));
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
                        steps.push(Step::Range(rest, to, 0));
                    }
                }
                Step::Range(from, to, levels) => {
                    let range = (from, to, levels);
                    descend(queue, (class, having), range, &mut steps, &mut least).await?;
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

/// Pushes the parts of a range that may have a task that fits onto the steps, the first on top.
async fn descend(
    queue: &TaskQueue<'_, '_>,
    (class, having): (&Class, &[f64]),
    (from, to, levels): (Option<Vec<u8>>, Option<Vec<u8>>, u32),
    steps: &mut Vec<Step>,
    least: &mut [Vec<f64>],
) -> Result<(), StoreError> {
    let level = levels - 1;
    let (nodes, is_full) = queue
        .nodes_between(
            class,
            level,
            (from.as_deref(), to.as_deref()),
            FAN_MAX * 2,
            queue.context.relaxed(),
        )
        .await?;
    let Some(first) = nodes.first() else {
        steps.push(Step::Range(from, to, level));
        return Ok(());
    };
    // The last node of a full page is read again with the next page, which contains its end.
    let known = nodes.len() - usize::from(is_full && nodes.len() > 1);
    if let Some(next) = nodes.get(known) {
        steps.push(Step::Range(Some(next.place.to_vec()), to.clone(), levels));
    }
    let ends = nodes.iter().skip(1).map(|node| Some(node.place.clone()));
    let ends = ends.chain([to.map(Bytes::from)]);
    let ranges: Vec<_> = nodes.iter().zip(ends).take(known).collect();
    for (node, end) in ranges.into_iter().rev() {
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
        steps.push(Step::Range(from, to, level));
        steps.push(Step::Begin);
    }
    if from
        .as_deref()
        .is_none_or(|from| from < first.place.as_ref())
    {
        steps.push(Step::Range(from, Some(first.place.to_vec()), level));
    }
    Ok(())
}

/// The key suffix after a place and the rows of a node at it (no place is a prefix of another), or
/// after all places with this prefix.
pub(super) fn after(place: &[u8]) -> Vec<u8> {
    [place, &[0xff]].concat()
}

fn fits(amounts: &[f64], having: &[f64]) -> bool {
    amounts
        .iter()
        .zip(having)
        .all(|(amount, having)| amount <= having)
}

/// Lowers the minima on top of the stack.
fn lower(least: &mut [Vec<f64>], amounts: &[f64]) {
    if let Some(least) = least.last_mut() {
        for (least, amount) in least.iter_mut().zip(amounts) {
            *least = least.min(*amount);
        }
    }
}

impl TaskQueue<'_, '_> {
    /// The first ready tasks of a class, or the first ones from a key suffix on, with their places.
    pub(super) async fn first_order_rows(
        &self,
        class: &Class,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, OrderRow)>, StoreError> {
        let begin = begin_key(&class.order_prefix, from);
        self.order_rows(class, (&begin, None), limit).await
    }

    /// Ready tasks of a class with their places, from a key to a place.
    async fn order_rows(
        &self,
        class: &Class,
        (begin, to): (&[u8], Option<&[u8]>),
        limit: usize,
    ) -> Result<Vec<(Bytes, OrderRow)>, StoreError> {
        let rows = self
            .context
            .transaction
            .get_range(RangeQuery {
                begin,
                end: &end_key(&class.order_prefix, to),
                limit,
                reverse: false,
                isolation: self.context.relaxed(),
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
