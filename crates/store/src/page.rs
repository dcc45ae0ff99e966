//! Rows that share one buffer.

use bytes::Bytes;

use super::KeyValue;

/// A row's key and value, borrowed from the engine.
pub type Row<'t> = (&'t [u8], &'t [u8]);

/// Copies rows into one buffer that they all share.
pub fn pack(rows: &[Row<'_>]) -> Vec<KeyValue> {
    let total_bytes = rows
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let mut buffer = Vec::with_capacity(total_bytes);
    for (key, value) in rows {
        buffer.extend_from_slice(key);
        buffer.extend_from_slice(value);
    }
    let mut buffer = Bytes::from(buffer);
    rows.iter()
        .map(|(key, value)| KeyValue {
            key: buffer.split_to(key.len()),
            value: buffer.split_to(value.len()),
        })
        .collect()
}
