//! Walking all keys of all databases, and of none.

use bytes::Bytes;

use crate::doctor::target::PAGE_ROWS;
use quoin_layout::{Id, KeyName, KeysRow, Layout, Meta, Space, decode_length, successor};
use quoin_store::{Isolation, ReadTransaction, StoreError};

use super::target::rows;

/// A key, whether it exists for clients or not.
#[derive(Debug, Clone)]
pub(super) struct FoundKey {
    pub(super) namespace: Id,
    pub(super) name: KeyName,
    pub(super) meta_key: Bytes,
    pub(super) meta: Meta,
    /// `None` where the counter cannot be read.
    pub(super) length: Option<i64>,
}

/// What lies together in the space of keys.
#[derive(Debug, Default)]
pub(super) struct KeyPage {
    pub(super) keys: Vec<FoundKey>,
    /// Keys of lengths beside which there is no metadata.
    pub(super) stray_lengths: Vec<Bytes>,
    /// Keys of rows that cannot be read.
    pub(super) unreadable: Vec<Bytes>,
}

/// The first page of keys.
pub(super) fn first(layout: &Layout) -> Vec<u8> {
    layout.rows_of(Space::Keys).begin
}

/// Reads a page from `begin` on, and answers where to go on. Metadata and length of one key are
/// never parted.
pub(super) async fn page(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    begin: &[u8],
) -> Result<(KeyPage, Option<Vec<u8>>), StoreError> {
    let end = layout.rows_of(Space::Keys).end;
    let mut rows = rows(transaction, begin, &end, PAGE_ROWS, Isolation::Snapshot).await?;
    let mut next = None;
    if rows.len() >= PAGE_ROWS
        && let Some(last) = rows.pop()
    {
        next = Some(match layout.read_namespaced_key(&last.key) {
            // Its length may follow.
            Ok((_, KeysRow::Meta(_))) => last.key.to_vec(),
            _ => {
                let behind = successor(&last.key);
                rows.push(last);
                behind
            }
        });
    }
    let mut page = KeyPage::default();
    for row in rows {
        match layout.read_namespaced_key(&row.key) {
            Ok((namespace, KeysRow::Meta(name))) => match Meta::decode(&row.value) {
                Ok(meta) => page.keys.push(FoundKey {
                    namespace,
                    name,
                    meta_key: row.key,
                    meta,
                    length: Some(0),
                }),
                Err(_) => page.unreadable.push(row.key),
            },
            Ok((namespace, KeysRow::Length(name))) => match page.keys.last_mut() {
                Some(key) if key.namespace == namespace && key.name == name => {
                    key.length = decode_length(Some(&row.value)).ok();
                }
                _ if is_beside(&row.key, page.unreadable.last()) => {}
                _ => page.stray_lengths.push(row.key),
            },
            Err(_) => page.unreadable.push(row.key),
        }
    }
    Ok((page, next))
}

/// Whether this is the length of a key whose metadata cannot be read.
fn is_beside(length_key: &[u8], unreadable: Option<&Bytes>) -> bool {
    unreadable.is_some_and(|meta_key| length_key.starts_with(meta_key))
}
