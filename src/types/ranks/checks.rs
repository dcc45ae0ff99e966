//! What `quoin doctor` looks up of blocks.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::layout::{KeyRange, decode_counter, successor};
use crate::store::{KeyValue, RangeQuery, StoreError};
use crate::types::kind::{Entries, EntryCheck, EntryFault};

/// Counts of blocks that are not those of their members.
pub const COUNTS: EntryCheck = EntryCheck {
    fault: &FAULT,
    are_sound: |entries| {
        let looks = entries.rows.iter().map(move |row| is_sound(entries, row));
        Box::pin(try_join_all(looks))
    },
    // Each entry is a block, whose members are counted.
    entries_at_once: 2,
    recount: None,
};

static FAULT: EntryFault = EntryFault {
    text: "blocks of sorted sets with another number of members than is counted",
    advice: "ranks in these sets are wrong; a COPY of the set is right, and RENAME puts it in its place",
    is_removable: false,
    entry_name: None,
};

/// Members that are read together. Long ones may make each of them large.
const ROWS_PER_READ: usize = 128;

async fn is_sound(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let (Ok((level, end)), Ok(count)) = (
        layout.read_rank_count_key(data, &row.key),
        decode_counter(Some(&row.value)),
    ) else {
        return Ok(false);
    };
    let mark = layout.rank_mark_key(data, level, &end);
    let mark = entries.transaction.get(&mark, entries.isolation).await?;
    let begin = previous_end(entries, level, row).await?;
    let found = match level {
        1 => {
            let range = KeyRange {
                begin: layout.scores_from(data, &begin),
                end: layout.scores_from(data, &end),
            };
            sum(entries, range, |_| Ok(1)).await?
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

/// Where the block before this one ends; nothing if it is the first of its level.
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

/// What all rows of a range stand for together.
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
