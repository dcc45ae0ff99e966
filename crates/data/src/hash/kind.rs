//! The descriptor of hashes, OBJECT ENCODING, DUMP and RESTORE.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::fields::restorable;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::kind::{
    ElementFlow, ElementRow, Entries, EntryCheck, EntryFault, InlineKind, Restorable, SectionKind,
    Serialization, ValueKind,
};
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, FieldRow, FieldValue, Layout, Section};
use quoin_rdb::{
    HashField, HashFields, HashWriter, Payload, SMALL_HASH_FIELDS_MAX, small_expiring_hash,
    small_hash,
};
use quoin_store::{KeyValue, StoreError};

use super::{Hash, HashType};

/// The descriptor of hashes.
pub static KIND: ValueKind = ValueKind {
    name: "hash",
    encoding: |context, key| Box::pin(async move { Hash::open(context, key).encoding().await }),
    exists_when_empty: false,
    inline: Some(InlineKind {
        length: |inline| FieldRow::Hash.count_inline(inline),
    }),
    is_waited_for: false,
    flow: ElementFlow::Nothing,
    sections: &[
        SectionKind::elements(Section::Fields, |row| {
            let row = FieldValue::decode(row)?;
            Ok(ElementRow {
                value: Some(row.stored),
                group: u8::from(row.expire_at_ms.is_some()),
                count: 1,
            })
        })
        .checked(EntryCheck::new(&LOST_EXPIRY, |entries| {
            let checks = entries
                .rows
                .iter()
                .map(move |row| has_expiry_row(entries, row));
            Box::pin(try_join_all(checks))
        })),
        SectionKind::index(Section::FieldExpiries, &[EXPIRING]).checked(EntryCheck::new(
            &STRAY_EXPIRY,
            |entries| {
                let checks = entries
                    .rows
                    .iter()
                    .map(move |row| is_of_field(entries, row));
                Box::pin(try_join_all(checks))
            },
        )),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    // Its timers are under its old name.
    on_put: Some(|context, key| {
        if key.meta.fields_expire {
            context.set_timer(key, context.now_ms);
        }
    }),
    slice: None,
    named_section: Some(Section::Fields),
    figures: Some(|context, key| Box::pin(context.ready_figures(key, Vec::new()))),
    deadlines: &[Layout::field_expiries_by],
    serialization: Some(Serialization {
        reads: |payload| HashFields::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(async move { Hash::open(context, key).dump().await }),
        read,
    }),
    import: Some(Import {
        counting: b"HLEN",
        reading: Reading::Iteration(b"HSCAN"),
        reading_whole: Some(b"HGETALL"),
        element_words: 2,
        elements_in: |words| words.len() / 2,
        elements_are_bytes: false,
        adding: b"HSET",
        adds_reversed: false,
        is_own: false,
        may_be_empty: false,
        payload,
    }),
};

impl Hash<'_, '_> {
    async fn encoding(&self) -> Result<&'static str, StoreError> {
        Ok(match self.compact().await? {
            Some(_) if self.key.meta.fields_expire => "listpackex",
            Some(_) => "listpack",
            None => "hashtable",
        })
    }

    async fn dump(&self) -> Result<Option<Bytes>, CommandError> {
        if self.key.meta.fields_expire {
            return self.dump_expiring().await;
        }
        let length = self.counted_length().await?;
        if length <= SMALL_HASH_FIELDS_MAX as u64 {
            let fields = self.all().await?;
            let parts = fields.iter().map(|field| (&field.name, &field.value));
            if let Some(payload) = small_hash(parts) {
                return Ok(Some(payload));
            }
        }
        let mut writer = HashWriter::new(length);
        let write = |field: &Entry| {
            writer.push(&field.name, &field.value, None);
            writer.size_bytes()
        };
        self.dump_each(length, write).await?;
        Ok(Some(writer.finish()))
    }

    /// [`Self::dump`] of a hash whose fields may expire. Leaves expired fields out.
    async fn dump_expiring(&self) -> Result<Option<Bytes>, CommandError> {
        let (mut length, mut first_ms) = (0, None);
        let mut pages = self.pages()?;
        while let Some(page) = pages.next().await? {
            length += page.len() as u64;
            let expiries = page.iter().filter_map(|field| field.expire_at_ms);
            first_ms = expiries.chain(first_ms).min();
        }
        if length == 0 {
            return Ok(None);
        }
        if length <= SMALL_HASH_FIELDS_MAX as u64 {
            let fields = self.all().await?.into_iter();
            let fields = fields.map(|field| HashField {
                name: field.name,
                value: field.value,
                expire_at_ms: field.expire_at_ms,
            });
            let fields: Vec<HashField> = fields.collect();
            let small = match first_ms {
                Some(_) => small_expiring_hash(fields),
                None => small_hash(fields.iter().map(|field| (&field.name, &field.value))),
            };
            if small.is_some() {
                return Ok(small);
            }
        }
        let mut writer = match first_ms {
            Some(first_ms) => HashWriter::expiring(length, first_ms),
            None => HashWriter::new(length),
        };
        let write = |field: &Entry| {
            writer.push(&field.name, &field.value, field.expire_at_ms);
            writer.size_bytes()
        };
        self.dump_each(length, write).await?;
        Ok(Some(writer.finish()))
    }
}

/// The group of fields that expire.
const EXPIRING: u8 = 1;

static LOST_EXPIRY: EntryFault = EntryFault {
    text: [
        "field that is not removed when it expires",
        "fields that are not removed when they expire",
    ],
    advice: "HPERSIST and HEXPIRE put them right; HDEL removes those whose time is over",
    is_removable: false,
    entry_name: None,
};

static STRAY_EXPIRY: EntryFault = EntryFault {
    text: [
        "expiry of a field that does not have it",
        "expiries of fields that do not have them",
    ],
    advice: "--deep --repair removes them",
    is_removable: true,
    entry_name: None,
};

/// Whether a field that expires is found by its expiry.
async fn has_expiry_row(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Ok(FieldValue {
        expire_at_ms: Some(at_ms),
        ..
    }) = FieldValue::decode(&row.value)
    else {
        return Ok(true);
    };
    let expiry = { entries.layout }.field_expiry_key(entries.data, at_ms, &row.key)?;
    let found = entries.transaction.get(&expiry, entries.isolation).await?;
    Ok(found.is_some())
}

/// Whether the field of a row by expiry expires then.
async fn is_of_field(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Ok((at_ms, field)) = { entries.layout }.read_field_expiry_key(entries.data, &row.key)
    else {
        return Ok(true);
    };
    let field = entries.transaction.get(&field, entries.isolation).await?;
    Ok(field.is_some_and(|field| {
        FieldValue::decode(&field).is_ok_and(|field| field.expire_at_ms == Some(at_ms))
    }))
}

fn read(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let fields = HashFields::new(payload)?;
    let entry = |field: HashField| Entry {
        name: field.name,
        value: field.value,
        expire_at_ms: field.expire_at_ms,
    };
    let entries = fields.map(|field| field.map(entry));
    restorable::<HashType>(context, entries)
}

/// Fields and values as a payload.
fn payload(words: Vec<Vec<u8>>) -> Option<Bytes> {
    let words: Vec<Bytes> = words.into_iter().map(Bytes::from).collect();
    let (pairs, odd) = words.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let fields = pairs.iter().map(|[field, value]| (field, value));
    small_hash(fields.clone()).or_else(|| {
        let mut writer = HashWriter::new(pairs.len() as u64);
        for (field, value) in fields {
            writer.push(field, value, None);
        }
        Some(writer.finish())
    })
}
