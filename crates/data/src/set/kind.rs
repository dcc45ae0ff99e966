//! The descriptor of sets, OBJECT ENCODING, SORT, DUMP and RESTORE.

use bytes::Bytes;

use crate::error::CommandError;
use crate::fields::restorable;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::kind::{
    ElementFlow, InlineKind, Restorable, SectionKind, Serialization, Slice, ValueKind,
    element_or_empty,
};
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, FieldRow, Section};
use quoin_rdb::{Payload, SMALL_SET_NUMBERS_MAX, SetMembers, SetWriter, small_set};
use quoin_store::StoreError;

use super::{Set, SetType, are_numbers, entry};

/// The descriptor of sets.
pub static KIND: ValueKind = ValueKind {
    name: "set",
    encoding: |context, key| Box::pin(async move { Set::open(context, key).encoding().await }),
    exists_when_empty: false,
    inline: Some(InlineKind {
        length: |inline| FieldRow::Set.count_inline(inline),
    }),
    is_waited_for: false,
    flow: ElementFlow::Nothing,
    sections: &[
        SectionKind::elements(Section::SetMembers, element_or_empty),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    on_put: None,
    slice: Some(|context, key, slice| {
        Box::pin(async move { Set::open(context, key).slice(slice).await })
    }),
    named_section: Some(Section::SetMembers),
    figures: Some(|context, key| Box::pin(context.ready_figures(key, Vec::new()))),
    deadlines: &[],
    serialization: Some(Serialization {
        reads: |payload| SetMembers::reads(payload.rdb_type()),
        dump: |context, key| {
            Box::pin(async move { Set::open(context, key).dump().await.map(Some) })
        },
        read,
    }),
    import: Some(Import {
        counting: b"SCARD",
        reading: Reading::Iteration(b"SSCAN"),
        reading_whole: Some(b"SMEMBERS"),
        element_words: 1,
        elements_in: <[_]>::len,
        elements_are_bytes: false,
        adding: b"SADD",
        adds_reversed: false,
        is_own: false,
        may_be_empty: false,
        payload,
    }),
};

impl Set<'_, '_> {
    async fn encoding(&self) -> Result<&'static str, StoreError> {
        match self.compact().await? {
            Some(members) if are_numbers(&members) => Ok("intset"),
            Some(_) => Ok("listpack"),
            None => Ok("hashtable"),
        }
    }

    /// Some members in storage order, for SORT. As in Redis, DESC does not reverse that order.
    async fn slice(&self, slice: Slice) -> Result<Vec<Bytes>, StoreError> {
        let members = self.all().await?.into_iter();
        let skipped = usize::try_from(slice.begin).unwrap_or(0);
        let count = usize::try_from(slice.end - slice.begin).unwrap_or(0);
        let names = members.map(|member| member.name);
        Ok(names.skip(skipped).take(count).collect())
    }

    async fn dump(&self) -> Result<Bytes, CommandError> {
        let length = self.counted_length().await?;
        if length <= SMALL_SET_NUMBERS_MAX as u64 {
            let members = self.all().await?;
            if let Some(payload) = small_set(members.iter().map(|member| &member.name)) {
                return Ok(payload);
            }
        }
        let mut writer = SetWriter::new(length);
        let write = |member: &Entry| {
            writer.push(&member.name);
            writer.size_bytes()
        };
        self.dump_each(length, write).await?;
        Ok(writer.finish())
    }
}

fn read(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let members = SetMembers::new(payload)?;
    restorable::<SetType>(context, members.map(|member| member.map(entry)))
}

/// Members as a payload.
fn payload(members: Vec<Vec<u8>>) -> Option<Bytes> {
    let members: Vec<Bytes> = members.into_iter().map(Bytes::from).collect();
    small_set(members.iter()).or_else(|| {
        let mut writer = SetWriter::new(members.len() as u64);
        for member in &members {
            writer.push(member);
        }
        Some(writer.finish())
    })
}
