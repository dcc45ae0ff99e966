//! What `quoin doctor` checks in the rows of streams and their groups.

use std::collections::HashSet;

use futures_util::future::{try_join, try_join_all};

use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::stream_producer::decode_produced_order;
use quoin_layout::{
    DecodeError, Id, KeyRange, Layout, ProducedEntry, StreamGroup, StreamHead, StreamId,
    StreamPending, StreamProducer, decode_counter, encode_counter, successor,
};
use quoin_store::{KeyValue, RangeQuery, StoreError, Transaction};

use crate::keyspace::kind::{Entries, EntryCheck, EntryFault};

/// Entries above the last id of their stream.
pub(super) const ENTRIES: EntryCheck =
    EntryCheck::new(&ABOVE_LAST, |entries| Box::pin(are_up_to_last(entries)));

/// Pending entries that are missing among those of their consumer.
pub(super) const PENDING: EntryCheck = EntryCheck::new(&PENDING_FAULT, |entries| {
    Box::pin(are_with_consumer(entries))
});

/// Pending entries of a consumer that are missing in the group.
pub(super) const CONSUMER_PENDING: EntryCheck =
    EntryCheck::new(&CONSUMER_PENDING_FAULT, |entries| {
        Box::pin(have_pending(
            entries,
            Layout::read_stream_consumer_pending_key,
            |pending, consumer| pending.consumer == Some(consumer),
        ))
    })
    .recounted(|entries, transaction| Box::pin(recount_groups(entries, transaction)));

/// Consumers of groups that are gone.
pub(super) const CONSUMERS: EntryCheck =
    EntryCheck::new(&CONSUMERS_FAULT, |entries| Box::pin(have_group(entries)));

/// Counters of pending entries.
pub(super) const COUNTS: EntryCheck =
    EntryCheck::new(&COUNTS_FAULT, |entries| Box::pin(are_right(entries)))
        .recounted(|entries, transaction| Box::pin(recount(entries, transaction)));

/// Rows by time of entries that are not pending since then.
pub(super) const IDLE: EntryCheck = EntryCheck::new(&IDLE_FAULT, |entries| {
    Box::pin(have_pending(
        entries,
        Layout::read_stream_idle_key,
        |pending, at_ms| pending.delivered_at_ms == at_ms,
    ))
});

/// Records of producers' entries whose row by number is missing.
pub(super) const PRODUCED: EntryCheck =
    EntryCheck::new(&PRODUCED_FAULT, |entries| Box::pin(have_number(entries)));

/// Rows of producers' entries by number that do not match their record or producer.
pub(super) const PRODUCED_ORDER: EntryCheck = EntryCheck::new(&PRODUCED_ORDER_FAULT, |entries| {
    Box::pin(have_record(entries))
});

static ABOVE_LAST: EntryFault = EntryFault {
    text: [
        "entry of a stream above the last id of its stream",
        "entries of streams above the last id of their stream",
    ],
    advice: "XADD may be refused there; XSETID with the id of the last entry puts it right",
    is_removable: false,
    entry_name: Some(|layout, data, key| {
        let id = layout.read_stream_entry_key(data, key)?;
        Ok(id.to_string().into_bytes())
    }),
};

static PENDING_FAULT: EntryFault = EntryFault {
    text: [
        "pending entry of a stream that its consumer does not have",
        "pending entries of streams that their consumer does not have",
    ],
    advice: "XCLAIM gives them to another consumer, which then has them",
    is_removable: false,
    entry_name: Some(|layout, data, key| {
        let (_, id) = layout.read_stream_pending_key(data, key)?;
        Ok(id.to_string().into_bytes())
    }),
};

static CONSUMER_PENDING_FAULT: EntryFault = EntryFault {
    text: [
        "entry that a consumer of a stream has, but that is not pending",
        "entries that a consumer of a stream has, but that are not pending",
    ],
    advice: "--repair removes them from those of the consumer, and counts again",
    is_removable: true,
    entry_name: Some(|layout, data, key| {
        let (.., id) = layout.read_stream_consumer_pending_key(data, key)?;
        Ok(id.to_string().into_bytes())
    }),
};

static IDLE_FAULT: EntryFault = EntryFault {
    text: [
        "row by time of an entry of a stream that is not pending since then",
        "rows by time of entries of streams that are not pending since then",
    ],
    advice: "they do no harm; --repair removes them",
    is_removable: true,
    entry_name: None,
};

static CONSUMERS_FAULT: EntryFault = EntryFault {
    text: [
        "consumer of a stream whose group is gone",
        "consumers of streams whose group is gone",
    ],
    advice: "--repair removes them",
    is_removable: true,
    entry_name: None,
};

static PRODUCED_FAULT: EntryFault = EntryFault {
    text: [
        "record of a producer's entry of a stream that has no number",
        "records of producers' entries of streams that have no number",
    ],
    advice: "it is forgotten only with all of its producer; --repair removes it, and the producer may add \
             the entry again",
    is_removable: true,
    entry_name: None,
};

static PRODUCED_ORDER_FAULT: EntryFault = EntryFault {
    text: [
        "number of a producer's entry of a stream that has no such record",
        "numbers of producers' entries of streams that have no such record",
    ],
    advice: "the producer may add the entry again; --repair removes them",
    is_removable: true,
    entry_name: None,
};

static COUNTS_FAULT: EntryFault = EntryFault {
    text: [
        "counter of pending entries of a stream that is wrong",
        "counters of pending entries of streams that are wrong",
    ],
    advice: "XPENDING and XINFO show wrong numbers; --repair counts again",
    is_removable: true,
    entry_name: None,
};

async fn are_up_to_last(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    let head = layout.stream_head_key(data);
    let head = entries.transaction.get(&head, entries.isolation).await?;
    let head = StreamHead::decode(head.as_ref());
    let rows = entries.rows.iter();
    let ids = rows.map(|row| layout.read_stream_entry_key(data, &row.key));
    let is_above = |id| matches!(&head, Ok(head) if id > head.last);
    Ok(ids.map(|id| !id.is_ok_and(is_above)).collect())
}

async fn are_with_consumer(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    let looked_up = entries.rows.iter().map(async |row| {
        let Ok((group, id)) = layout.read_stream_pending_key(data, &row.key) else {
            return Ok(true);
        };
        let Ok(pending) = StreamPending::decode(&row.value) else {
            return Ok(true);
        };
        let Some(consumer) = pending.consumer else {
            return Ok(true);
        };
        let twin = layout.stream_consumer_pending_key(data, group, consumer, id);
        let twin = entries.transaction.get(&twin, entries.isolation).await?;
        Ok::<_, StoreError>(twin.is_some())
    });
    try_join_all(looked_up).await
}

/// Reads a row's key: the group, what the pending entry must have, and its id.
type ReadKey<T> = fn(&Layout, Id, &[u8]) -> Result<(Id, T, StreamId), DecodeError>;

/// Whether a pending entry agrees with each row.
async fn have_pending<T>(
    entries: Entries<'_>,
    read: ReadKey<T>,
    agrees: fn(&StreamPending, T) -> bool,
) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    let looked_up = entries.rows.iter().map(async |row| {
        let Ok((group, expected, id)) = read(layout, data, &row.key) else {
            return Ok(true);
        };
        let pending = layout.stream_pending_key(data, group, id);
        let pending = entries.transaction.get(&pending, entries.isolation).await?;
        let pending = pending.map(|row| StreamPending::decode(&row));
        Ok::<_, StoreError>(match pending {
            None => false,
            Some(Ok(pending)) => agrees(&pending, expected),
            // The other check reports it.
            Some(Err(_)) => true,
        })
    });
    try_join_all(looked_up).await
}

/// Counts the pending entries of the groups and consumers of removed rows.
async fn recount_groups(
    entries: Entries<'_>,
    transaction: &dyn Transaction,
) -> Result<(), StoreError> {
    let Entries { layout, data, .. } = entries;
    for row in entries.rows {
        let Ok((group, consumer, _)) = layout.read_stream_consumer_pending_key(data, &row.key)
        else {
            continue;
        };
        for counted in [None, Some(consumer)] {
            let counter = layout.stream_pending_count_key(data, group, counted);
            set_count(entries, transaction, group, counted, &counter).await?;
        }
    }
    Ok(())
}

/// Recomputes counters after entries were removed.
async fn recount(entries: Entries<'_>, transaction: &dyn Transaction) -> Result<(), StoreError> {
    let Entries { layout, data, .. } = entries;
    for row in entries.rows {
        if let Ok((group, counted)) = layout.read_stream_pending_count_key(data, &row.key) {
            set_count(entries, transaction, group, counted, &row.key).await?;
        }
    }
    Ok(())
}

async fn set_count(
    entries: Entries<'_>,
    transaction: &dyn Transaction,
    group: Id,
    counted: Option<Id>,
    counter: &[u8],
) -> Result<(), StoreError> {
    match count(entries, group, counted).await? {
        0 => transaction.clear(counter),
        count => transaction.set(counter, &encode_counter(count)),
    }
    Ok(())
}

async fn have_number(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    let looked_up = entries.rows.iter().map(async |row| {
        let key = layout.read_produced_entry_key(data, &row.key);
        let (Ok((producer, entry)), Ok(record)) = (key, ProducedEntry::decode(&row.value)) else {
            return Ok(true);
        };
        let order = layout.produced_order_key(data, &producer, record.number);
        let order = entries.transaction.get(&order, entries.isolation).await?;
        let order = order.map(|row| decode_produced_order(&row));
        Ok::<_, StoreError>(match order {
            None => false,
            Some(Ok((_, named))) => named == entry,
            // The other check reports it.
            Some(Err(_)) => true,
        })
    });
    try_join_all(looked_up).await
}

async fn have_record(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    let looked_up = entries.rows.iter().map(async |row| {
        let Ok((producer, number)) = layout.read_produced_order_key(data, &row.key) else {
            return Ok(true);
        };
        let Ok((_, entry)) = decode_produced_order(&row.value) else {
            return Ok(false);
        };
        let (record, producer) = (
            layout.produced_entry_key(data, &producer, &entry),
            layout.producer_key(data, &producer),
        );
        let (record, producer) = try_join(
            entries.transaction.get(&record, entries.isolation),
            entries.transaction.get(&producer, entries.isolation),
        )
        .await?;
        let record = record.and_then(|row| ProducedEntry::decode(&row).ok());
        let producer = producer.and_then(|row| StreamProducer::decode(&row).ok());
        let is_recorded = record.is_some_and(|record| record.number == number);
        let is_remembered =
            |producer: StreamProducer| (producer.first..producer.next).contains(&number);
        Ok::<_, StoreError>(is_recorded && producer.is_some_and(is_remembered))
    });
    try_join_all(looked_up).await
}

async fn have_group(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    if entries.rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut groups = HashSet::new();
    let mut has_all = true;
    each_row(entries, layout.stream_groups(data), |row| {
        match StreamGroup::decode(&row.value) {
            Ok(group) => drop(groups.insert(group.id)),
            // Its id is unknown, so any consumer may be of this group.
            Err(_) => has_all = false,
        }
    })
    .await?;
    let group_of = |row: &KeyValue| layout.read_stream_consumer_key(data, &row.key);
    let is_sound = |row| match group_of(row) {
        Ok((group, _)) => !has_all || groups.contains(&group),
        Err(_) => true,
    };
    Ok(entries.rows.iter().map(is_sound).collect())
}

async fn are_right(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let mut are_right = Vec::with_capacity(entries.rows.len());
    for row in entries.rows {
        let counted = entries
            .layout
            .read_stream_pending_count_key(entries.data, &row.key);
        let stored = decode_counter(Some(&row.value));
        are_right.push(match (counted, stored) {
            (Ok((group, consumer)), Ok(stored)) => count(entries, group, consumer).await? == stored,
            _ => true,
        });
    }
    Ok(are_right)
}

async fn count(entries: Entries<'_>, group: Id, consumer: Option<Id>) -> Result<i64, StoreError> {
    let (layout, data) = (entries.layout, entries.data);
    let (first, last) = (StreamId::MIN, StreamId::MAX);
    let range = match consumer {
        None => layout.stream_pending(data, group, first, last),
        Some(consumer) => layout.stream_consumer_pending(data, group, consumer, first, last),
    };
    let mut count = 0;
    each_row(entries, range, |_| count += 1).await?;
    Ok(count)
}

async fn each_row(
    entries: Entries<'_>,
    mut range: KeyRange,
    mut visit: impl FnMut(&KeyValue),
) -> Result<(), StoreError> {
    loop {
        let query = RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: RANGE_PAGE_ROWS,
            reverse: false,
            isolation: entries.isolation,
        };
        let rows = entries.transaction.get_range(query).await?;
        rows.iter().for_each(&mut visit);
        match rows.last() {
            Some(last) if rows.len() >= RANGE_PAGE_ROWS => range.begin = successor(&last.key),
            _ => return Ok(()),
        }
    }
}
