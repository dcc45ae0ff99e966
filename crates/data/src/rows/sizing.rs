//! How much room a key takes in the store.

use bytes::Bytes;

use crate::keyspace::kind::TypeKind;
use quoin_layout::string::PIECE_BYTES;
use quoin_layout::{DecodeError, KeyRange, StoredValue};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{Holds, SectionKind};
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

/// Bytes of the length counter in a row of its own.
const COUNTER_BYTES: usize = 8;

impl ReadContext<'_> {
    /// About how many bytes of keys and values a key takes in the store: exact where the value
    /// has at most `samples` elements, else reckoned from the first so many. What the store
    /// itself needs for its pages comes on top.
    pub async fn stored_bytes(&self, key: &OpenKey, samples: usize) -> Result<u64, StoreError> {
        let layout = self.layout();
        let meta_bytes = key.meta_key.len() + key.meta.encode().len();
        let expiry_bytes = key.meta.expire_at_ms.map_or(0, |at_ms| {
            layout.expiry_key(at_ms, key.namespace, &key.name).len()
        });
        if key.meta.body.is_some() {
            return Ok((meta_bytes + expiry_bytes) as u64);
        }
        let length_bytes = layout.length_key(&key.meta_key).len() + COUNTER_BYTES;
        let length = self.length(key, Isolation::Snapshot).await?;
        let length = u64::try_from(length).unwrap_or(0);
        let mut bytes = (meta_bytes + length_bytes + expiry_bytes) as u64;
        let sections = key.meta.value_type.kind().sections.iter();
        for section in sections.filter(|section| section.is_measured) {
            bytes += self.section_bytes(key, section, length, samples).await?;
        }
        Ok(bytes)
    }

    async fn section_bytes(
        &self,
        key: &OpenKey,
        kind: &SectionKind,
        length: u64,
        samples: usize,
    ) -> Result<u64, StoreError> {
        let prefix = self.layout().section_prefix(key.data(), kind.section);
        let range = KeyRange::children(&prefix);
        let mut pages = Pages::new(self, range, false, samples);
        // Of rows that hold several elements these are counted.
        let mut seen = 0_usize;
        let mut bytes_seen = 0_u64;
        'samples: while let Some(rows) = pages.next().await? {
            for row in &rows {
                if seen >= samples {
                    break 'samples;
                }
                let (count, bytes) = row_bytes(row, kind)?;
                seen += count;
                bytes_seen += bytes;
            }
        }
        if seen < samples {
            return Ok(bytes_seen);
        }
        let all = match kind.holds {
            // At most: there may be fewer pieces.
            Holds::Pieces => length.div_ceil(PIECE_BYTES as u64),
            _ => length,
        };
        let total = u128::from(bytes_seen) * u128::from(all) / seen as u128;
        Ok(u64::try_from(total).unwrap_or(u64::MAX))
    }
}

/// How many elements a row holds, and its bytes, with the chunks that its value is split into (except
/// for their keys).
fn row_bytes(row: &KeyValue, kind: &SectionKind) -> Result<(usize, u64), DecodeError> {
    let own_bytes = (row.key.len() + row.value.len()) as u64;
    let (count, value) = match kind.holds {
        Holds::Elements(read) => {
            let element = read(&row.value)?;
            (element.count, element.value)
        }
        _ => (1, None),
    };
    let split_bytes = value.as_ref().map(split_bytes).transpose()?;
    Ok((count, own_bytes + split_bytes.unwrap_or(0)))
}

/// Bytes of a value that are not in its row.
fn split_bytes(value: &Bytes) -> Result<u64, DecodeError> {
    match StoredValue::decode(value)? {
        StoredValue::Plain(_) => Ok(0),
        StoredValue::Split { length, .. } => Ok(length),
    }
}
