//! Scanning a database's keys in storage order, that is by the hash of their names.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::keyspace::kind::TypeKind;
use quoin_base::glob::{Case, Glob};
use quoin_layout::{DecodeError, Id, KeysRow, Meta, ValueType, decode_length};
use quoin_store::{KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::keyspace::presence::Presence;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

/// A key found by a scan, whether or not it exists for clients.
#[derive(Debug, Clone)]
pub struct ScannedKey {
    /// The key.
    pub key: OpenKey,
    /// Its number of elements, if it has a length counter.
    pub length: i64,
    /// Its length counter as stored.
    pub counter: Option<Bytes>,
}

impl ScannedKey {
    /// The key's full name.
    ///
    /// # Errors
    /// `Corrupt` if a long name is missing.
    pub fn name(&self) -> Result<&Bytes, DecodeError> {
        self.key.meta.full_name(&self.key.name)
    }
}

/// Iterates over all keys of a namespace, starting at a hash.
pub struct KeyScan<'c, 't> {
    context: &'c ReadContext<'t>,
    namespace: Id,
    pages: Pages<'c, 't>,
    rows: VecDeque<KeyValue>,
}

impl<'c, 't> KeyScan<'c, 't> {
    /// A scan that starts at `hash`. `expected_keys` limits the size of the first read (0: unknown).
    pub fn new(
        context: &'c ReadContext<'t>,
        namespace: Id,
        hash: u64,
        expected_keys: usize,
    ) -> Self {
        let range = context.layout().keys_from(namespace, hash);
        // Metadata and length of each key.
        let expected_rows = expected_keys.saturating_mul(2);
        Self {
            context,
            namespace,
            pages: Pages::new(context, range, false, expected_rows),
            rows: VecDeque::new(),
        }
    }

    /// Excludes the scan from conflict detection.
    pub fn with_snapshot_reads(mut self) -> Self {
        self.pages = self.pages.with_snapshot_reads();
        self
    }

    /// The next key; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<ScannedKey>, StoreError> {
        while let Some(row) = self.next_row().await? {
            let KeysRow::Meta(name) = self.context.layout().read_keys_row(&row.key)? else {
                // A length without its key is meaningless.
                continue;
            };
            let meta = Meta::decode(&row.value)?;
            let counter = self.counter_of(&row.key).await?;
            return Ok(Some(ScannedKey {
                key: OpenKey {
                    database: None,
                    namespace: self.namespace,
                    name,
                    meta_key: row.key.to_vec(),
                    meta,
                },
                length: decode_length(counter.as_ref())?,
                counter,
            }));
        }
        Ok(None)
    }

    /// The next key that exists for clients.
    pub async fn next_visible(&mut self) -> Result<Option<ScannedKey>, StoreError> {
        while let Some(found) = self.next().await? {
            if self.context.is_visible(&found) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The length counter of a metadata row. It is the next row, if it exists.
    async fn counter_of(&mut self, meta_key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.fill().await?;
        let length_key = self.context.layout().length_key(meta_key);
        if self.rows.front().is_none_or(|row| row.key != length_key) {
            return Ok(None);
        }
        Ok(self.rows.pop_front().map(|row| row.value))
    }

    async fn next_row(&mut self) -> Result<Option<KeyValue>, StoreError> {
        self.fill().await?;
        Ok(self.rows.pop_front())
    }

    async fn fill(&mut self) -> Result<(), StoreError> {
        if self.rows.is_empty()
            && let Some(rows) = self.pages.next().await?
        {
            self.rows = rows.into();
        }
        Ok(())
    }
}

/// The types that SCAN returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeFilter {
    /// All.
    Any,
    /// This one.
    Only(ValueType),
    /// No type: Quoin does not have the requested type.
    Nothing,
}

impl TypeFilter {
    /// The filter for SCAN's TYPE argument.
    pub fn named(name: &[u8]) -> Self {
        ValueType::ALL
            .iter()
            .copied()
            .find(|value_type| name.eq_ignore_ascii_case(value_type.name().as_bytes()))
            .map_or(TypeFilter::Nothing, TypeFilter::Only)
    }

    fn accepts(self, value_type: ValueType) -> bool {
        match self {
            TypeFilter::Any => true,
            TypeFilter::Only(only) => only == value_type,
            TypeFilter::Nothing => false,
        }
    }
}

/// The query of a SCAN.
#[derive(Debug, Clone)]
pub struct ScanQuery {
    /// The cursor to continue from; 0 is the beginning.
    pub cursor: u64,
    /// Number of keys to examine.
    pub count: usize,
    /// Pattern of the names to return; `None` matches all.
    pub pattern: Option<Glob>,
    /// Types to return.
    pub types: TypeFilter,
}

/// A glob pattern for names; `None` for `*`, which here matches all names. As a glob it would not match the empty name.
pub fn name_pattern(pattern: &[u8]) -> Option<Glob> {
    (pattern != b"*").then(|| Glob::new(pattern, Case::Sensitive))
}

fn is_match(pattern: Option<&Glob>, name: &[u8]) -> bool {
    pattern.is_none_or(|pattern| pattern.matches(name))
}

impl ReadContext<'_> {
    /// Whether a key exists for clients.
    pub fn is_visible(&self, found: &ScannedKey) -> bool {
        let meta = &found.key.meta;
        !self.is_expired(meta) && self.presence(meta, found.length) != Presence::Retained
    }

    /// One step of SCAN: names, and the next cursor; 0 at the end.
    ///
    /// The cursor is the hash after the last key examined, and keys with the same hash are never split between steps.
    /// So a key that exists throughout the scan is returned exactly once, whatever else is added or removed, and no
    /// server keeps any state.
    pub async fn scan_keys(&self, query: &ScanQuery) -> Result<(u64, Vec<Bytes>), StoreError> {
        let namespace = self.namespace().await?;
        let mut scan = KeyScan::new(self, namespace, query.cursor, query.count.saturating_add(1));
        let mut names = Vec::new();
        let mut examined = 0_usize;
        let mut last_hash = 0;
        while let Some(found) = scan.next().await? {
            let hash = found.key.name.hash();
            if examined >= query.count && hash != last_hash {
                return Ok((last_hash + 1, names));
            }
            examined += 1;
            last_hash = hash;
            if query.types.accepts(found.key.meta.value_type)
                && self.is_visible(&found)
                && is_match(query.pattern.as_ref(), found.name()?)
            {
                names.push(found.name()?.clone());
            }
        }
        Ok((0, names))
    }

    /// The names of all keys that match.
    pub async fn matching_keys(&self, pattern: Option<&Glob>) -> Result<Vec<Bytes>, StoreError> {
        let mut scan = KeyScan::new(self, self.namespace().await?, 0, 0);
        let mut names = Vec::new();
        while let Some(found) = scan.next_visible().await? {
            if is_match(pattern, found.name()?) {
                names.push(found.name()?.clone());
            }
        }
        Ok(names)
    }

    /// The number of keys in the database, and how many of them have an expiry. Counts the keys, because a counter
    /// would make all transactions that create keys write to one row.
    pub async fn count_keys(&self) -> Result<(i64, i64), StoreError> {
        let mut scan = KeyScan::new(self, self.namespace().await?, 0, 0);
        let mut keys = 0;
        let mut expiring = 0;
        while let Some(found) = scan.next_visible().await? {
            keys += 1;
            expiring += i64::from(found.key.meta.expire_at_ms.is_some());
        }
        Ok((keys, expiring))
    }

    /// The name of an arbitrary key: the first one from a random hash on. Keys after a wide gap are returned more often
    /// than others.
    pub async fn random_key(&self) -> Result<Option<Bytes>, StoreError> {
        let namespace = self.namespace().await?;
        let start = self
            .environment
            .random
            .below(1 << quoin_layout::name::HASH_BITS);
        for hash in [start, 0] {
            let mut scan = KeyScan::new(self, namespace, hash, RANDOM_KEY_FIRST_KEYS);
            if let Some(found) = scan.next_visible().await? {
                return Ok(Some(found.name()?.clone()));
            }
        }
        Ok(None)
    }
}

/// Keys that RANDOMKEY reads first. Usually the first one exists.
const RANDOM_KEY_FIRST_KEYS: usize = 4;
