//! Rows that share one buffer.

use bytes::Bytes;

use super::KeyValue;

/// A row's key and value, borrowed from the engine.
pub type Row<'t> = (&'t [u8], &'t [u8]);

/// Copies rows into one buffer that they all share.
pub fn pack<'t>(rows: impl Iterator<Item = Row<'t>> + Clone) -> Vec<KeyValue> {
    let total_bytes = rows.clone().map(|(key, value)| key.len() + value.len());
    let mut buffer = Vec::with_capacity(total_bytes.sum());
    for (key, value) in rows.clone() {
        buffer.extend_from_slice(key);
        buffer.extend_from_slice(value);
    }
    let mut buffer = Bytes::from(buffer);
    let row = |(key, value): Row<'_>| KeyValue {
        key: buffer.split_to(key.len()),
        value: buffer.split_to(value.len()),
    };
    rows.map(row).collect()
}
