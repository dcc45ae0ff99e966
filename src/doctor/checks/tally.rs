//! Counting what a key has, and comparing it with its counters.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::walk::FoundKey;
use crate::doctor::subject::{Subject, rows};
use crate::layout::{
    Id, KeyRange, Meta, Section, StoredValue, TaskCounter, TaskRow, TaskState, ValueType,
    decode_counter, decode_length, length_delta, successor,
};
use crate::limits::{DOCTOR_DATA_PAGE_ROWS, DOCTOR_RECOUNT_ROWS_MAX};
use crate::store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

/// The counters of a task queue that count tasks by state.
const STATE_COUNTERS: [(TaskState, TaskCounter); 3] = [
    (TaskState::Leased, TaskCounter::Leased),
    (TaskState::Delayed, TaskCounter::Delayed),
    (TaskState::Dead, TaskCounter::Dead),
];

/// What a key has at one moment.
#[derive(Debug)]
pub(super) struct Tally {
    meta: Meta,
    length: i64,
    /// Rows by section; those of no section that its type has are under their number too.
    rows: BTreeMap<u64, u64>,
    /// Tasks by state.
    states: BTreeMap<u64, i64>,
    /// Counters of a task queue, in the order of [`STATE_COUNTERS`].
    counters: Vec<i64>,
    /// Values whose bytes are in chunks, and ids that chunks have.
    splits: u64,
    chunk_ids: u64,
    last_chunks: Option<Id>,
    /// Rows that cannot be read.
    unreadable: u64,
}

/// What is wrong with a key's counters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) length: bool,
    pub(super) task_counters: bool,
    pub(super) indexes: bool,
    pub(super) chunks: bool,
    pub(super) foreign_rows: bool,
    pub(super) unreadable: bool,
}

/// Counts a key's rows; `None` where it is not there any more, or has more than `rows_max`.
pub(super) async fn count(
    subject: &Subject<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    isolation: Isolation,
    rows_max: u64,
) -> Result<Option<Tally>, StoreError> {
    let layout = &subject.layout;
    let Some(meta) = transaction.get(&key.meta_key, isolation).await? else {
        return Ok(None);
    };
    let length_key = layout.length_key(&key.meta_key);
    let length = transaction.get(&length_key, isolation).await?;
    let mut tally = Tally {
        meta: Meta::decode(&meta)?,
        length: decode_length(length.as_ref())?,
        rows: BTreeMap::new(),
        states: BTreeMap::new(),
        counters: Vec::new(),
        splits: 0,
        chunk_ids: 0,
        last_chunks: None,
        unreadable: 0,
    };
    let data = tally.meta.data;
    if tally.meta.value_type == ValueType::TaskQueue {
        for (_, counter) in STATE_COUNTERS {
            let row = layout.task_counter_key(data, counter);
            let value = transaction.get(&row, isolation).await?;
            tally.counters.push(decode_counter(value.as_ref())?);
        }
    }
    let mut range = KeyRange::children(&layout.data_prefix(data));
    let mut count = 0;
    loop {
        let limit = DOCTOR_DATA_PAGE_ROWS;
        let page = rows(transaction, &range.begin, &range.end, limit, isolation).await?;
        for row in &page {
            tally.take(subject, row);
        }
        count += page.len() as u64;
        if count > rows_max {
            return Ok(None);
        }
        match page.last() {
            Some(last) if page.len() >= limit => range.begin = successor(&last.key),
            _ => return Ok(Some(tally)),
        }
    }
}

impl Tally {
    fn take(&mut self, subject: &Subject<'_>, row: &KeyValue) {
        let Ok((data, number)) = subject.layout.read_data_key(&row.key) else {
            self.unreadable += 1;
            return;
        };
        if subject.layout.is_signpost(&row.key) {
            return;
        }
        *self.rows.entry(number).or_default() += 1;
        let value = match Section::from_number(number) {
            Some(Section::Elements | Section::Queue) => Some(row.value.clone()),
            // Of short members the row says nothing more than its key.
            Some(Section::Scores) if !row.value.is_empty() => Some(row.value.clone()),
            Some(Section::Tasks) => match TaskRow::decode(&row.value) {
                Ok(task) => {
                    *self.states.entry(task.state as u64).or_default() += 1;
                    Some(task.payload)
                }
                Err(_) => {
                    self.unreadable += 1;
                    None
                }
            },
            Some(Section::Chunks) => {
                match subject.layout.read_chunk_key(data, &row.key) {
                    Ok(chunks) if self.last_chunks == Some(chunks) => {}
                    Ok(chunks) => {
                        self.chunk_ids += 1;
                        self.last_chunks = Some(chunks);
                    }
                    Err(_) => self.unreadable += 1,
                }
                None
            }
            _ => None,
        };
        if let Some(value) = value {
            self.take_value(&value);
        }
    }

    fn take_value(&mut self, value: &Bytes) {
        match StoredValue::decode(value) {
            Ok(StoredValue::Plain(_)) => {}
            Ok(StoredValue::Split { .. }) => self.splits += 1,
            Err(_) => self.unreadable += 1,
        }
    }

    fn rows(&self, section: Section) -> i64 {
        let count = self.rows.get(&(section as u64)).copied().unwrap_or(0);
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    fn tasks(&self, state: TaskState) -> i64 {
        self.states.get(&(state as u64)).copied().unwrap_or(0)
    }

    /// How many elements there are.
    fn elements(&self) -> i64 {
        match self.meta.value_type {
            ValueType::List => self.rows(Section::Elements),
            ValueType::SortedSet => self.rows(Section::Scores),
            ValueType::PriorityQueue => self.rows(Section::Queue),
            ValueType::TaskQueue => self.rows(Section::Tasks),
        }
    }

    fn indexes_disagree(&self) -> bool {
        match self.meta.value_type {
            ValueType::List | ValueType::PriorityQueue => false,
            ValueType::SortedSet => self.rows(Section::Scores) != self.rows(Section::Members),
            ValueType::TaskQueue => {
                let waiting = self.tasks(TaskState::Leased) + self.tasks(TaskState::Delayed);
                self.rows(Section::TaskOrder) != self.tasks(TaskState::Ready)
                    || self.rows(Section::TaskDue) != waiting
                    || self.rows(Section::TaskDead) != self.tasks(TaskState::Dead)
            }
        }
    }

    fn has_section(&self, number: u64) -> bool {
        use Section::{
            Chunks, Elements, Members, Queue, Scores, TaskDead, TaskDue, TaskNodes, TaskOrder,
            TaskQueue, TaskUntended, Tasks,
        };
        let Some(section) = Section::from_number(number) else {
            return false;
        };
        match self.meta.value_type {
            ValueType::List => matches!(section, Elements | Chunks),
            ValueType::SortedSet => matches!(section, Scores | Members | Chunks),
            ValueType::PriorityQueue => matches!(section, Queue | Chunks),
            ValueType::TaskQueue => matches!(
                section,
                TaskOrder
                    | TaskNodes
                    | Tasks
                    | TaskDue
                    | TaskDead
                    | TaskQueue
                    | TaskUntended
                    | Chunks
            ),
        }
    }

    /// Compares.
    pub(super) fn wrong(&self) -> Wrong {
        let counted = STATE_COUNTERS.map(|(state, _)| self.tasks(state));
        Wrong {
            length: self.length != self.elements(),
            task_counters: !self.counters.is_empty() && self.counters != counted,
            indexes: self.indexes_disagree(),
            chunks: self.splits != self.chunk_ids,
            foreign_rows: self.rows.keys().any(|number| !self.has_section(*number)),
            unreadable: self.unreadable > 0,
        }
    }

    /// Rows that were looked at.
    pub(super) fn row_count(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// Counts a key anew and corrects its counters, in one transaction that conflicts with whoever
/// changes the key. Answers whether they are right now; not where the key is too large for that,
/// or where its indexes disagree, so that it is not known what is right.
pub(super) async fn mend(subject: &Subject<'_>, key: &FoundKey) -> Result<bool, StoreError> {
    let rows_max = if subject.store.capabilities().single_writer {
        u64::MAX
    } else {
        DOCTOR_RECOUNT_ROWS_MAX
    };
    subject
        .repair(async |transaction: &dyn Transaction| {
            let isolation = Isolation::Serializable;
            let counted = count(subject, transaction, key, isolation, rows_max).await?;
            let Some(tally) = counted else {
                return Ok(false);
            };
            let wrong = tally.wrong();
            let is_doubtful = tally.meta.value_type == ValueType::SortedSet && wrong.indexes;
            if is_doubtful || wrong.unreadable {
                return Ok(false);
            }
            // Elements that a server has claimed may come back to an empty key.
            let is_removed =
                tally.elements() == 0 && !subject.has_claims(transaction, tally.meta.data).await?;
            correct(subject, transaction, key, &tally, is_removed);
            Ok(true)
        })
        .await
}

/// Writes what was counted; a key that `is_removed` has no elements, and ceases to exist.
fn correct(
    subject: &Subject<'_>,
    transaction: &dyn Transaction,
    key: &FoundKey,
    tally: &Tally,
    is_removed: bool,
) {
    let layout = &subject.layout;
    let length_key = layout.length_key(&key.meta_key);
    let elements = tally.elements();
    if is_removed {
        transaction.clear(&key.meta_key);
        transaction.clear(&length_key);
        if let Some(at_ms) = tally.meta.expire_at_ms {
            transaction.clear(&layout.expiry_key(at_ms, key.namespace, &key.name));
        }
        subject.discard_data(transaction, tally.meta.data);
        return;
    }
    if elements != tally.length {
        // An addition, so that what counts changes goes on.
        transaction.atomic_add(&length_key, length_delta(elements - tally.length));
    }
    for ((state, counter), stored) in STATE_COUNTERS.iter().zip(&tally.counters) {
        let counted = tally.tasks(*state);
        if counted != *stored {
            let row = layout.task_counter_key(tally.meta.data, *counter);
            transaction.atomic_add(&row, counted - stored);
        }
    }
}
