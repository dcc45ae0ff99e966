//! The descriptor of lists: OBJECT ENCODING, DUMP, RESTORE, SORT, returned elements, and what
//! doctor checks.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::figures::StateFigures;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{
    ElementFlow, QueueKind, Restorable, SectionKind, Serialization, Slice, ValueKind,
};
use crate::rows::ranks;
use crate::rows::runs::element_row;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{KeyRange, Section, ValueType};
use quoin_rdb::{DumpError, ListElements, ListWriter, Payload};
use quoin_store::{Isolation, StoreError};

use super::{End, List, ListMut};

/// Elements of one read for OBJECT ENCODING.
const ENCODING_PAGE_ELEMENTS: i64 = 128;
/// Bytes of the longest list that is one listpack in Redis (`list-max-listpack-size -2`).
const LISTPACK_BYTES_MAX: usize = 8 * 1_024;
/// Bytes of the shortest element of a listpack.
const LISTPACK_ELEMENT_BYTES_MIN: usize = 2;

/// The descriptor of lists.
pub static KIND: ValueKind = ValueKind {
    name: "list",
    encoding: |context, key| Box::pin(async { List::open(context, key).encoding().await }),
    exists_when_empty: false,
    inline: None,
    is_waited_for: true,
    flow: ElementFlow::ByLength,
    sections: &[
        SectionKind::elements(Section::Elements, element_row),
        SectionKind::CHUNKS,
        SectionKind::ranks(Section::RankCounts).checked(ranks::COUNTS),
        SectionKind::ranks(Section::RankMarks).checked(ranks::MARKS),
    ],
    counters: &[],
    queue: Some(QueueKind {
        sections: [Some(Section::Elements); 2],
        rank_length: None,
        put_back: |context, key, elements, from_end| {
            Box::pin(async move {
                let list = ListMut::open(context, key);
                Ok(list.put_back(&elements, End::new(from_end)).await?)
            })
        },
    }),
    on_put: None,
    slice: Some(|context, key, slice| {
        Box::pin(async move { List::open(context, key).slice(slice).await })
    }),
    named_section: None,
    figures: Some(|context, key| Box::pin(figures(context, key))),
    deadlines: &[],
    serialization: Some(Serialization {
        reads: |payload| ListElements::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(async { List::open(context, key).dump().await.map(Some) }),
        read: restorable,
    }),
    import: Some(Import {
        counting: b"LLEN",
        reading: Reading::Ranks(b"LRANGE", &[]),
        reading_whole: None,
        element_words: 1,
        elements_in: <[_]>::len,
        elements_are_bytes: false,
        adding: b"RPUSH",
        adds_reversed: false,
        is_own: false,
        may_be_empty: false,
        payload,
    }),
};

impl List<'_, '_> {
    /// The encoding that Redis would use.
    async fn encoding(&self) -> Result<&'static str, StoreError> {
        let length = self.length().await?;
        let most = LISTPACK_BYTES_MAX / LISTPACK_ELEMENT_BYTES_MIN;
        if usize::try_from(length).is_ok_and(|length| length > most) {
            return Ok("quicklist");
        }
        let (mut begin, mut bytes) = (0, 0);
        while begin < length {
            let page = self
                .range(begin, begin + ENCODING_PAGE_ELEMENTS - 1)
                .await?;
            if page.is_empty() {
                break;
            }
            begin += ENCODING_PAGE_ELEMENTS;
            let sizes = page
                .iter()
                .map(|one| one.len() + LISTPACK_ELEMENT_BYTES_MIN);
            bytes += sizes.sum::<usize>();
            if bytes > LISTPACK_BYTES_MAX {
                return Ok("quicklist");
            }
        }
        Ok("listpack")
    }

    /// Some elements for SORT.
    async fn slice(&self, slice: Slice) -> Result<Vec<Bytes>, StoreError> {
        let Slice {
            begin,
            end,
            length,
            descending,
        } = slice;
        if !descending {
            return self.range(begin, end - 1).await;
        }
        let mut elements = self.range(length - end, length - begin - 1).await?;
        elements.reverse();
        Ok(elements)
    }

    async fn dump(&self) -> Result<Bytes, CommandError> {
        let mut rows = self.elements_rows(End::Left);
        let mut writer = ListWriter::new();
        while let Some(page) = rows.next(usize::MAX).await? {
            for (_, value) in page.iter().flat_map(|row| row.elements(false)) {
                writer.push(&self.context.load_stored(self.key.data(), value).await?);
                check_size(writer.size_bytes())?;
            }
        }
        Ok(writer.finish())
    }
}

fn restorable(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let elements = ListElements::new(payload)?;
    let mut budget = context.size_budget();
    let mut is_empty = true;
    // Only checks the elements. The write unpacks them again, so that they are not all in memory.
    for element in elements.clone() {
        budget.take_element(element?.len())?;
        is_empty = false;
    }
    if is_empty {
        return Err(DumpError::Format.into());
    }
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(restore(context, name, elements, expire_at_ms))
    }))
}

async fn restore(
    context: &WriteContext<'_>,
    name: &Bytes,
    mut elements: ListElements,
    expire_at_ms: Option<i64>,
) -> Result<(), CommandError> {
    let key = context.create(name, ValueType::List, expire_at_ms).await?;
    let list = ListMut::open(context, &key);
    loop {
        let page: Result<Vec<Bytes>, _> = elements.by_ref().take(RANGE_PAGE_ROWS).collect();
        let page = page?;
        if page.is_empty() {
            return Ok(());
        }
        list.push(&page, End::Right).await?;
        if context.transaction.size_bytes() > context.environment.capabilities.transaction_bytes_max
        {
            return Ok(());
        }
    }
}

/// Elements as a payload.
fn payload(elements: Vec<Vec<u8>>) -> Option<Bytes> {
    let mut writer = ListWriter::new();
    for element in &elements {
        writer.push(element);
    }
    Some(writer.finish())
}

/// The ends of the list.
async fn figures(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Vec<StateFigures>, StoreError> {
    let prefix = context.layout().elements_prefix(key.data());
    let range = KeyRange::children(&prefix);
    let span = match context
        .outermost(&range, false, Isolation::Snapshot)
        .await?
    {
        Some(first) => context.span(&prefix, &first).await?,
        None => None,
    };
    context.ready_figures(key, span.into_iter().collect()).await
}
