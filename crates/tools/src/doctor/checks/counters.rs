//! Counters of keys: counts all rows of a key, and compares them with its counters.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{
    Answer, DATA_PAGE_ROWS, DoctorTarget, FoundKey, KeyCheck, KeyPage, rows,
};
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_base::size::counted;
use quoin_data::keyspace::kind::{Holds, SectionKind, TypeKind};
use quoin_data::keyspace::presence::Presence;
use quoin_layout::string::PIECE_BYTES;
use quoin_layout::{
    Id, KeyRange, Meta, Section, StoredValue, decode_counter, decode_length, length_delta,
    successor,
};
use quoin_store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

/// Keys that are counted at once.
const KEYS_AT_ONCE: usize = 16;

#[derive(Default)]
pub(super) struct Counters {
    rows: u64,
    /// Keys too large to be counted at one moment.
    uncounted: u64,
    lengths: Finding,
    task_counters: Finding,
    indexes: Finding,
    chunks: Finding,
    foreign_rows: Finding,
    unreadable: Finding,
}

impl KeyCheck for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn check<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            for some in page.keys.chunks(KEYS_AT_ONCE) {
                let counts = some.iter().map(|key| count_at_one_moment(target, key));
                for (key, counted) in some.iter().zip(try_join_all(counts).await?) {
                    match counted {
                        Counted::Done(wrong, rows) => {
                            self.rows += rows;
                            self.judge(target, key, wrong).await?;
                        }
                        Counted::Gone => {}
                        Counted::TooLarge => self.uncounted += 1,
                    }
                }
                target.progress.count("rows counted", self.rows);
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut outcome = Outcome::new(format!("{} counted", counted(self.rows, "row", "rows")));
        if self.uncounted > 0 {
            outcome.note(
                Level::Ok,
                format!(
                    "{} too large to be counted at one moment: not counted",
                    counted(self.uncounted, "key is", "keys are")
                ),
            );
        }
        let recount = "--deep --repair recounts them";
        outcome
            .finding(
                Level::Fail,
                &self.lengths,
                ["key whose length is not the number of its elements or bytes", "keys whose length is not the number of their elements or bytes"],
                recount,
            )
            .finding(
                Level::Fail,
                &self.task_counters,
                ["task queue that counts its leased, delayed, dead or waiting tasks wrong", "task queues that count their leased, delayed, dead or waiting tasks wrong"],
                recount,
            )
            .finding(
                Level::Fail,
                &self.indexes,
                [
                    "sorted set or task queue with entries that one index has and another does not",
                    "sorted sets or task queues with entries that one index has and another does not",
                ],
                "see the line of indexes",
            )
            .finding(
                Level::Fail,
                &self.chunks,
                ["key with parts of long values that belong to no value, or are missing", "keys with parts of long values that belong to no value, or are missing"],
                "reading a value with missing parts returns an error; report this to the authors \
                 of Quoin",
            )
            .finding(
                Level::Warn,
                &self.foreign_rows,
                ["key with rows that its type does not have", "keys with rows that their type does not have"],
                "they only take up space: DEL of the key removes them too",
            )
            .finding(
                Level::Fail,
                &self.unreadable,
                ["key with rows that cannot be read", "keys with rows that cannot be read"],
                "commands that read them return an error; report this to the authors of Quoin",
            )
            .line(self.name())
    }
}

enum Counted {
    Done(Wrong, u64),
    Gone,
    TooLarge,
}

/// Counts, at one moment.
async fn count_at_one_moment(
    target: &DoctorTarget<'_>,
    key: &FoundKey,
) -> Result<Counted, StoreError> {
    let counted = target
        .read_much(async |transaction: &dyn ReadTransaction| {
            count(target, transaction, key, Isolation::Snapshot, u64::MAX).await
        })
        .await;
    match counted {
        Ok(Some(Some(counts))) => Ok(Counted::Done(counts.wrong(), counts.row_count())),
        Ok(Some(None)) => Ok(Counted::Gone),
        Ok(None) => Ok(Counted::TooLarge),
        Err(StoreError::Corrupt(_)) => {
            let wrong = Wrong {
                unreadable: true,
                ..Wrong::default()
            };
            Ok(Counted::Done(wrong, 0))
        }
        Err(error) => Err(error),
    }
}

impl Counters {
    async fn judge(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
        wrong: Wrong,
    ) -> Result<(), StoreError> {
        if wrong == Wrong::default() {
            return Ok(());
        }
        let is_repaired = (wrong.length || wrong.group_counters) && repair(target, key).await?;
        let name = || target.name(key.namespace, &key.name, Some(&key.meta));
        for (is_wrong, finding) in [
            (wrong.length, &mut self.lengths),
            (wrong.group_counters, &mut self.task_counters),
        ] {
            if is_wrong {
                finding.add(name);
                if is_repaired {
                    finding.count_repaired();
                }
            }
        }
        for (is_wrong, finding) in [
            (wrong.indexes || wrong.twins, &mut self.indexes),
            (wrong.chunks, &mut self.chunks),
            (wrong.foreign_rows, &mut self.foreign_rows),
            (wrong.unreadable, &mut self.unreadable),
        ] {
            if is_wrong {
                finding.add(name);
            }
        }
        Ok(())
    }
}

/// Largest number of rows of a key that is counted again for a repair while servers may run.
const RECOUNT_ROWS_MAX: u64 = 100_000;

/// The counts of a key at one moment.
#[derive(Debug)]
pub(super) struct Counts {
    meta: Meta,
    length: i64,
    /// Rows by section number, including sections that its type does not have.
    rows: BTreeMap<u64, u64>,
    /// Elements. A row that cannot be read counts as one.
    elements: i64,
    /// Elements by group.
    groups: BTreeMap<u8, i64>,
    /// The values of the type's counters of groups, in their order.
    counters: Vec<i64>,
    /// Values whose bytes are in chunks, and ids that have chunks.
    splits: u64,
    chunk_ids: u64,
    last_chunks: Option<Id>,
    /// End of the last piece.
    pieces_end: i64,
    /// Rows that cannot be read.
    unreadable: u64,
}

/// What is wrong with a key's counters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) length: bool,
    group_counters: bool,
    /// An index has other rows than the elements, whose number is certain.
    pub(super) indexes: bool,
    /// Elements have two rows each, and there are more of one kind than of the other.
    twins: bool,
    pub(super) chunks: bool,
    foreign_rows: bool,
    pub(super) unreadable: bool,
}

/// Counts the rows of a key. `None` if the key is gone or has more than `rows_max`.
pub(super) async fn count(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    isolation: Isolation,
    rows_max: u64,
) -> Result<Option<Counts>, StoreError> {
    let layout = &target.layout;
    let Some(meta) = transaction.get(&key.meta_key, isolation).await? else {
        return Ok(None);
    };
    let length_key = layout.length_key(&key.meta_key);
    let length = transaction.get(&length_key, isolation).await?;
    let mut counts = Counts {
        meta: Meta::decode(&meta)?,
        length: decode_length(length.as_ref())?,
        rows: BTreeMap::new(),
        elements: 0,
        groups: BTreeMap::new(),
        counters: Vec::new(),
        splits: 0,
        chunk_ids: 0,
        last_chunks: None,
        pieces_end: 0,
        unreadable: 0,
    };
    let data = counts.meta.data;
    for counter in counts.meta.value_type.kind().counters {
        let row = (counter.key)(layout, data);
        let value = transaction.get(&row, isolation).await?;
        counts.counters.push(decode_counter(value.as_ref())?);
    }
    let mut range = KeyRange::children(&layout.data_prefix(data));
    let mut count = 0;
    loop {
        let limit = DATA_PAGE_ROWS;
        let page = rows(transaction, &range.begin, &range.end, limit, isolation).await?;
        for row in &page {
            counts.take(target, row);
        }
        count += page.len() as u64;
        if count > rows_max {
            return Ok(None);
        }
        match page.last() {
            Some(last) if page.len() >= limit => range.begin = successor(&last.key),
            _ => return Ok(Some(counts)),
        }
    }
}

impl Counts {
    fn take(&mut self, target: &DoctorTarget<'_>, row: &KeyValue) {
        let Ok((data, number)) = target.layout.read_data_key(&row.key) else {
            self.unreadable += 1;
            return;
        };
        if target.layout.is_meta_copy(&row.key) {
            return;
        }
        *self.rows.entry(number).or_default() += 1;
        match self.section(number).map(|kind| &kind.holds) {
            Some(Holds::Elements(read)) => match read(&row.value) {
                Ok(element) => {
                    let count = i64::try_from(element.count).unwrap_or(i64::MAX);
                    *self.groups.entry(element.group).or_default() += count;
                    self.elements += count;
                    if let Some(value) = element.value {
                        self.take_value(&value);
                    }
                }
                Err(_) => {
                    self.elements += 1;
                    self.unreadable += 1;
                }
            },
            Some(Holds::Chunks) => match target.layout.read_chunk_key(data, &row.key) {
                Ok(chunks) if self.last_chunks == Some(chunks) => {}
                Ok(chunks) => {
                    self.chunk_ids += 1;
                    self.last_chunks = Some(chunks);
                }
                Err(_) => self.unreadable += 1,
            },
            Some(Holds::Pieces) => match piece_end(target, data, row) {
                Some(end) => self.pieces_end = self.pieces_end.max(end),
                None => self.unreadable += 1,
            },
            _ => {}
        }
    }

    /// The section of that number, if the key's type has it.
    fn section(&self, number: u64) -> Option<&'static SectionKind> {
        let mut sections = self.meta.value_type.kind().sections.iter();
        sections.find(|kind| kind.section as u64 == number)
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

    /// How many elements some groups have.
    fn groups(&self, groups: &[u8]) -> i64 {
        let counts = groups.iter().filter_map(|group| self.groups.get(group));
        counts.sum()
    }

    /// The expected value of the length counter. A value in pieces may be longer, because zeros may
    /// follow the pieces.
    fn expected_length(&self) -> i64 {
        let mut sections = self.meta.value_type.kind().sections.iter();
        let is_in_pieces = sections.any(|section| matches!(section.holds, Holds::Pieces));
        let length_max = i64::try_from(STRING_BYTES_MAX).unwrap_or(i64::MAX);
        match is_in_pieces {
            true if self.length <= length_max => self.length.max(self.pieces_end),
            true => self.pieces_end,
            false => self.elements,
        }
    }

    /// Compares.
    pub(super) fn wrong(&self) -> Wrong {
        let kind = self.meta.value_type.kind();
        let disagree = |is_wrong: fn(&Self, &SectionKind) -> bool| {
            let mut sections = kind.sections.iter();
            sections.any(|section| is_wrong(self, section))
        };
        let counters = kind.counters.iter().zip(&self.counters);
        Wrong {
            length: self.length != self.expected_length(),
            group_counters: { counters }
                .any(|(counter, count)| self.groups(counter.groups) != *count),
            indexes: disagree(|counts, section| match section.holds {
                Holds::Index(groups) => counts.rows(section.section) != counts.groups(groups),
                _ => false,
            }),
            twins: disagree(|counts, section| {
                matches!(section.holds, Holds::Twins)
                    && counts.rows(section.section) != counts.elements
            }),
            chunks: self.splits != self.chunk_ids,
            foreign_rows: self
                .rows
                .keys()
                .any(|number| self.section(*number).is_none()),
            unreadable: self.unreadable > 0,
        }
    }

    /// Rows that were read.
    fn row_count(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// End of a piece of a string. `None` if the row is not a piece.
fn piece_end(target: &DoctorTarget<'_>, data: Id, row: &KeyValue) -> Option<i64> {
    let number = target.layout.read_piece_key(data, &row.key).ok()?;
    let begin = number.checked_mul(PIECE_BYTES as u64)?;
    let end = i64::try_from(begin.checked_add(row.value.len() as u64)?).ok()?;
    let is_sound = row.value.len() <= PIECE_BYTES && end.unsigned_abs() <= STRING_BYTES_MAX as u64;
    is_sound.then_some(end)
}

/// Counts a key again and corrects its counters, in one transaction that conflicts with every
/// change of the key. Returns whether they are now correct. They are not if the key is too large,
/// or if its indexes disagree, because then the correct number is unknown.
pub(super) async fn repair(target: &DoctorTarget<'_>, key: &FoundKey) -> Result<bool, StoreError> {
    let rows_max = if !target.store.capabilities().bounds_transaction_time {
        u64::MAX
    } else {
        RECOUNT_ROWS_MAX
    };
    target
        .repair(async |transaction: &dyn Transaction| {
            let isolation = Isolation::Serializable;
            let counted = count(target, transaction, key, isolation, rows_max).await?;
            let Some(counts) = counted else {
                return Ok(false);
            };
            let wrong = counts.wrong();
            if wrong.twins || wrong.unreadable {
                return Ok(false);
            }
            // Elements that were popped for a server may return to an empty key.
            let presence = target.presence(&counts.meta, counts.elements);
            let is_removed = presence != Presence::Exists
                && !target.has_grants(transaction, counts.meta.data).await?;
            correct(target, transaction, key, &counts, is_removed);
            Ok(true)
        })
        .await
}

/// Writes the counts. A key that `is_removed` has no elements, and ceases to exist.
fn correct(
    target: &DoctorTarget<'_>,
    transaction: &dyn Transaction,
    key: &FoundKey,
    counts: &Counts,
    is_removed: bool,
) {
    let layout = &target.layout;
    let length_key = layout.length_key(&key.meta_key);
    if is_removed {
        transaction.clear(&key.meta_key);
        transaction.clear(&length_key);
        if let Some(at_ms) = counts.meta.expire_at_ms {
            transaction.clear(&layout.expiry_key(at_ms, key.namespace, &key.name));
        }
        target.discard_data(transaction, counts.meta.data);
        return;
    }
    let expected = counts.expected_length();
    if expected != counts.length {
        // Added, so that concurrent changes of the counter are kept.
        transaction.atomic_add(&length_key, length_delta(expected - counts.length));
    }
    let counters = counts.meta.value_type.kind().counters.iter();
    for (counter, stored) in counters.zip(&counts.counters) {
        let counted = counts.groups(counter.groups);
        if counted != *stored {
            let row = (counter.key)(layout, counts.meta.data);
            transaction.atomic_add(&row, counted - stored);
        }
    }
}
