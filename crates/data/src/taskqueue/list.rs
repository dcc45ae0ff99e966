//! TASK.LIST: the tasks of a state in the order of their places, from a cursor on.
//!
//! A cursor is the place of the last task that was returned. So a task that keeps its place and its
//! state is returned exactly once, whatever happens to others meanwhile.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::TaskQueue;
use super::resources::Amounts;
use super::search::{self, Search};
use crate::command::arguments::{INVALID_CURSOR, ListOptions};
use crate::error::CommandError;
use crate::rows::pages::Pages;
use quoin_base::limits::TASK_LIST_CHECKED_MAX;
use quoin_layout::{KeyRange, OrderPlace, Section, TaskRegistry, TaskRow, TaskState, successor};
use quoin_store::StoreError;

/// Ids and rows of tasks.
pub(super) type Rows = Vec<(Bytes, TaskRow)>;

/// Some tasks of a state.
pub(super) struct Listed {
    pub(super) registry: TaskRegistry,
    pub(super) tasks: Rows,
    /// The place to continue after. `None` if the list is complete.
    pub(super) next: Option<Bytes>,
}

impl TaskQueue<'_, '_> {
    /// The tasks of a state: ready ones by group in the order of takes, others by the end of their
    /// lease or delay or by the time of their death. Their rows have about `bytes_max` bytes of
    /// payloads.
    ///
    /// Leased and delayed tasks share one order, so a list of either skips the others. It examines
    /// up to [`TASK_LIST_CHECKED_MAX`] tasks, and may return none although there are more.
    ///
    /// It conflicts with no change of a leased, delayed or dead task. A caller that changes tasks
    /// adds the conflicts with their rows.
    ///
    /// # Errors
    /// `Text` if the cursor is not one of such a list.
    pub(super) async fn list(
        &self,
        state: TaskState,
        options: &ListOptions,
        bytes_max: usize,
    ) -> Result<Listed, CommandError> {
        let registry = self.registry(self.context.relaxed()).await?;
        let after = options.after.as_deref();
        let listing = Listing::new(state, options.count, bytes_max);
        let (tasks, next) = match state {
            TaskState::Ready => self.list_ready(&registry, after, listing).await?,
            TaskState::Leased | TaskState::Delayed => {
                self.list_by_time(Section::TaskDue, after, listing).await?
            }
            TaskState::Dead => self.list_by_time(Section::TaskDead, after, listing).await?,
            TaskState::Waiting => {
                self.list_by_time(Section::TaskWaiting, after, listing)
                    .await?
            }
        };
        Ok(Listed {
            registry,
            tasks,
            next,
        })
    }

    async fn list_ready(
        &self,
        registry: &TaskRegistry,
        after: Option<&[u8]>,
        mut listing: Listing,
    ) -> Result<(Rows, Option<Bytes>), CommandError> {
        if after.is_some_and(|place| OrderPlace::decode(place).is_err()) {
            return Err(INVALID_CURSOR);
        }
        let everything = Amounts::unlimited(registry);
        let mut search =
            Search::begin(self, registry, &everything, after.map(search::after)).await?;
        let mut is_over = false;
        while !is_over && !listing.is_full() {
            let mut some = Vec::new();
            while some.len() < listing.room().min(self.context.large_reads_at_once()) && !is_over {
                match search.next().await? {
                    Some(found) => some.push((found.place, found.id)),
                    None => is_over = true,
                }
            }
            self.read_listed(some, &mut listing).await?;
        }
        Ok((listing.tasks, listing.last.filter(|_| !is_over)))
    }

    async fn list_by_time(
        &self,
        section: Section,
        after: Option<&[u8]>,
        mut listing: Listing,
    ) -> Result<(Rows, Option<Bytes>), CommandError> {
        let layout = self.context.layout();
        let prefix = layout.section_prefix(self.key.data(), section);
        let mut range = KeyRange::children(&prefix);
        if let Some(place) = after {
            if layout.is_task_time_place(place) {
                range.begin = successor(&[prefix.as_slice(), place].concat());
            } else {
                return Err(INVALID_CURSOR);
            }
        }
        let mut checked = 0;
        let checked_max = TASK_LIST_CHECKED_MAX.max(listing.count);
        let mut pages = Pages::new(self.context, range, false, listing.count)
            .in_isolation(self.context.relaxed());
        let is_over = 'pages: loop {
            let Some(rows) = pages.next().await? else {
                break true;
            };
            let mut rows = rows.into_iter().peekable();
            while rows.peek().is_some() {
                if listing.is_full() || checked >= checked_max {
                    break 'pages false;
                }
                let at_once = listing.room().min(self.context.large_reads_at_once());
                let some = rows.by_ref().take(at_once);
                let some = some.map(|row| (row.key.slice(prefix.len()..), row.value));
                let some: Vec<_> = some.collect();
                checked += some.len();
                self.read_listed(some, &mut listing).await?;
            }
        };
        Ok((listing.tasks, listing.last.filter(|_| !is_over)))
    }

    /// Adds the tasks that are in the list's state. `some`: places and ids.
    async fn read_listed(
        &self,
        some: Vec<(Bytes, Bytes)>,
        listing: &mut Listing,
    ) -> Result<(), StoreError> {
        // Concurrently, because on a cluster each read is a round trip.
        let reads = some.iter();
        let reads = reads.map(|(_, id)| self.row(id, self.context.relaxed()));
        let rows = try_join_all(reads).await?;
        for ((place, id), row) in some.into_iter().zip(rows) {
            listing.last = Some(place);
            if let Some(row) = row.filter(|row| row.state == listing.state) {
                listing.bytes = listing.bytes.saturating_add(row.payload.len());
                listing.tasks.push((id, row));
            }
        }
        Ok(())
    }
}

/// A list that grows.
struct Listing {
    state: TaskState,
    count: usize,
    bytes_max: usize,
    tasks: Rows,
    /// Bytes of their rows, about.
    bytes: usize,
    /// The place of the last task that was read.
    last: Option<Bytes>,
}

impl Listing {
    fn new(state: TaskState, count: usize, bytes_max: usize) -> Self {
        Self {
            state,
            count,
            bytes_max,
            tasks: Vec::new(),
            bytes: 0,
            last: None,
        }
    }

    fn room(&self) -> usize {
        self.count.saturating_sub(self.tasks.len())
    }

    fn is_full(&self) -> bool {
        self.room() == 0 || self.bytes >= self.bytes_max
    }
}
