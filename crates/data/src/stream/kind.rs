//! The descriptor of streams.

use bytes::Bytes;

use crate::keyspace::figures::StateFigures;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{ElementFlow, SectionKind, Serialization, ValueKind, plain_element};
use crate::unit::context::ReadContext;
use quoin_layout::{Section, StreamId};
use quoin_rdb::StreamReader;
use quoin_store::{Isolation, StoreError};

use super::dumping::restorable;
use super::{Stream, doctor};

/// The descriptor of streams.
pub static KIND: ValueKind = ValueKind {
    name: "stream",
    encoding: |_, _| Box::pin(async { Ok("stream") }),
    // It keeps its last id and its consumer groups.
    exists_when_empty: true,
    inline: None,
    is_waited_for: true,
    flow: ElementFlow::Additions,
    sections: &[
        SectionKind::elements(Section::StreamEntries, plain_element).checked(doctor::ENTRIES),
        SectionKind::other(Section::StreamHead),
        SectionKind::other(Section::StreamGroups),
        SectionKind::other(Section::StreamPending).checked(doctor::PENDING),
        SectionKind::other(Section::StreamConsumerPending).checked(doctor::CONSUMER_PENDING),
        SectionKind::other(Section::StreamConsumers).checked(doctor::CONSUMERS),
        SectionKind::other(Section::StreamPendingCounts).checked(doctor::COUNTS),
        SectionKind::other(Section::StreamIdle).checked(doctor::IDLE),
        SectionKind::other(Section::StreamProducers),
        SectionKind::other(Section::StreamProduced).checked(doctor::PRODUCED),
        SectionKind::other(Section::StreamProducedOrder).checked(doctor::PRODUCED_ORDER),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    // Its timers are under its old name.
    on_put: Some(|context, key| context.set_timer(key, context.now_ms)),
    slice: None,
    named_section: None,
    figures: Some(|context, key| Box::pin(figures(context, key))),
    deadlines: &[],
    serialization: Some(Serialization {
        reads: |payload| StreamReader::reads(payload.rdb_type()),
        dump: |context, key| {
            Box::pin(async move { Stream::open(context, key).dump().await.map(Some) })
        },
        read: restorable,
    }),
    // Apart from the entries, no other command reads everything that a stream stores.
    import: Some(Import {
        counting: b"XLEN",
        reading: Reading::Dump,
        reading_whole: Some(b"DUMP"),
        element_words: 1,
        elements_in: <[_]>::len,
        elements_are_bytes: false,
        adding: b"RESTORE",
        adds_reversed: false,
        is_own: false,
        may_be_empty: false,
        payload: |mut words| words.pop().map(Bytes::from),
    }),
};

/// The time in the id of the first entry.
async fn figures(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Vec<StateFigures>, StoreError> {
    let range = (context.layout()).stream_entries(key.data(), StreamId::MIN, StreamId::MAX);
    let first = context
        .outermost(&range, false, Isolation::Snapshot)
        .await?;
    let mut figures = context.ready_figures(key, Vec::new()).await?;
    if let Some(row) = first {
        let id = (context.layout()).read_stream_entry_key(key.data(), &row.key)?;
        for state in &mut figures {
            state.since_ms = i64::try_from(id.ms).ok();
        }
    }
    Ok(figures)
}
