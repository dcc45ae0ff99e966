//! Checks of blocks for `quoin doctor`.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::keyspace::kind::{Entries, EntryCheck, EntryFault};
use quoin_layout::{KeyRange, decode_counter, successor};
use quoin_store::{KeyValue, RangeQuery, StoreError};

/// Finds blocks whose count differs from their elements.
pub const COUNTS: EntryCheck = EntryCheck::new(&FAULT, |entries| {
    let checks = entries.rows.iter().map(move |row| is_sound(entries, row));
    Box::pin(try_join_all(checks))
})
// Each entry is a block whose elements are all counted.
.at_once(2);

/// Finds marks without a count.
pub const MARKS: EntryCheck = EntryCheck::new(&STRAY_MARK, |entries| {
    let checks = entries.rows.iter().map(move |row| has_count(entries, row));
    Box::pin(try_join_all(checks))
});

static FAULT: EntryFault = EntryFault {
    text: [
        "block with another number of elements than is counted",
        "blocks with another number of elements than is counted",
    ],
    advice: "ranks and indexes in these keys are wrong; a COPY of the key is right, and RENAME puts it in its place",
    is_removable: false,
    entry_name: None,
};

static STRAY_MARK: EntryFault = EntryFault {
    text: [
        "end of a block that is not counted",
        "ends of blocks that are not counted",
    ],
    advice: "they do no harm; --repair removes them",
    is_removable: true,
    entry_name: None,
};

async fn has_count(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let Ok((level, end)) = layout.read_rank_mark_key(data, &row.key) else {
        return Ok(false);
    };
    let count = layout.rank_count_key(data, level, &end);
    let count = entries.transaction.get(&count, entries.isolation).await?;
    Ok(count.is_some())
}

/// How many rows are read together. Long elements may make each of them large.
const ROWS_PER_READ: usize = 128;

async fn is_sound(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries {
        layout, kind, data, ..
    } = entries;
    let (Ok((level, end)), Ok(count), Some(section)) = (
        layout.read_rank_count_key(data, &row.key),
        decode_counter(Some(&row.value)),
        kind.ranked_section(),
    ) else {
        return Ok(false);
    };
    let mark = layout.rank_mark_key(data, level, &end);
    let mark = entries.transaction.get(&mark, entries.isolation).await?;
    let begin = previous_end(entries, level, row).await?;
    let found = match level {
        1 => {
            let range = KeyRange {
                begin: layout.rows_from(data, section, &begin),
                end: layout.rows_from(data, section, &end),
            };
            let elements_in = |row: &KeyValue| {
                let elements = kind.elements_in(section, row);
                Ok(i64::try_from(elements).unwrap_or(i64::MAX))
            };
            sum(entries, range, elements_in).await?
        }
        _ => {
            let range = KeyRange {
                begin: successor(&layout.rank_count_key(data, level - 1, &begin)),
                end: successor(&layout.rank_count_key(data, level - 1, &end)),
            };
            sum(entries, range, |row| Ok(decode_counter(Some(&row.value))?)).await?
        }
    };
    Ok(found == count && mark.is_some())
}

/// Where the block before this one ends. Empty if this is the first of its level.
async fn previous_end(
    entries: Entries<'_>,
    level: u8,
    row: &KeyValue,
) -> Result<Bytes, StoreError> {
    let counts = entries.layout.rank_counts(entries.data, level);
    let query = RangeQuery {
        begin: &counts.begin,
        end: &row.key,
        limit: 1,
        reverse: true,
        isolation: entries.isolation,
    };
    match entries.transaction.get_range(query).await?.first() {
        Some(row) => Ok(entries
            .layout
            .read_rank_count_key(entries.data, &row.key)?
            .1),
        None => Ok(Bytes::new()),
    }
}

/// The sum of `of` over all rows of a range.
async fn sum(
    entries: Entries<'_>,
    mut range: KeyRange,
    of: impl Fn(&KeyValue) -> Result<i64, StoreError>,
) -> Result<i64, StoreError> {
    let mut sum = 0;
    loop {
        let query = RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: ROWS_PER_READ,
            reverse: false,
            isolation: entries.isolation,
        };
        let rows = entries.transaction.get_range(query).await?;
        for row in &rows {
            sum += of(row)?;
        }
        match rows.last() {
            Some(last) if rows.len() >= ROWS_PER_READ => range.begin = successor(&last.key),
            _ => return Ok(sum),
        }
    }
}
