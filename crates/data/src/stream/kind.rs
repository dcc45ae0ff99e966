//! The descriptor of streams.

use crate::keyspace::kind::{
    Entries, EntryCheck, EntryFault, SectionKind, Serialization, ValueKind, plain_element,
};
use quoin_layout::{Section, StreamHead};
use quoin_rdb::StreamReader;
use quoin_store::StoreError;

use super::dumping::restorable;
use super::group::checks;

/// The descriptor of streams.
pub static KIND: ValueKind = ValueKind {
    name: "stream",
    encoding: |_, _| Box::pin(async { Ok("stream") }),
    // It remembers its last id, and its consumer groups.
    exists_when_empty: true,
    body: None,
    is_waited_for: true,
    sections: &[
        SectionKind::elements(Section::StreamEntries, plain_element)
            .checked(EntryCheck::new(&ABOVE_LAST, |entries| {
                Box::pin(are_up_to_last(entries))
            })),
        SectionKind::other(Section::StreamHead),
        SectionKind::other(Section::StreamGroups),
        SectionKind::other(Section::StreamPending).checked(checks::PENDING),
        SectionKind::other(Section::StreamConsumerPending).checked(checks::CONSUMER_PENDING),
        SectionKind::other(Section::StreamConsumers).checked(checks::CONSUMERS),
        SectionKind::other(Section::StreamPendingCounts).checked(checks::COUNTS),
        SectionKind::other(Section::StreamIdle).checked(checks::IDLE),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    // The timers that the stream had are under its old name.
    on_put: Some(|context, key| context.set_timer(key, context.now_ms)),
    slice: None,
    serialization: Some(Serialization {
        reads: |payload| StreamReader::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(context.stream_dump(key)),
        read: restorable,
    }),
};

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

/// Whether ids were given before the stream's last.
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
