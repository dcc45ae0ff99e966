//! Reading ahead what a batch's commands will look at, all at once.
//!
//! On a cluster each read is a round trip, and commands read one row after the other: the
//! database's namespace, the key's metadata, then its data. A batch knows its commands before it
//! runs them, so it has all of those rows read side by side; commands then find them in the
//! transaction's cache. Where the data lies is remembered from the last time ([`Hints`]), so that
//! even the data is read together with the metadata. A hint that is wrong costs a read in vain and
//! nothing else: what counts is the metadata, which the command reads as ever.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::join_all;

use super::context::ReadContext;
use super::key::ClientKey;
use crate::layout::{Id, KeyName, Member, Meta, Signpost, ValueType, successor};
use crate::limits::{
    AHEAD_BYTES_MAX, AHEAD_HINTS_MAX, AHEAD_READS_AT_ONCE, AHEAD_ROWS_MAX, AHEAD_ROWS_UNKNOWN_MAX,
};
use crate::store::{Isolation, RangeQuery, StoreError};

/// Rows that tell of a key: its metadata and its length.
const META_ROWS: usize = 2;

/// What a command will look at in one of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Glance {
    /// The key's metadata only.
    Meta,
    /// Elements at one end.
    End {
        /// The type that the command expects.
        value_type: ValueType,
        /// The end with the last or highest elements.
        from_end: bool,
        /// How many it takes; a push, which takes none, looks at the outermost.
        count: usize,
        /// Its length too, which pushes answer.
        with_length: bool,
    },
    /// Members of a sorted set by name.
    Members(Vec<Bytes>),
}

/// All that the commands of a batch will look at, each once.
#[derive(Debug, Default)]
pub struct Glances {
    keys: BTreeMap<ClientKey, KeyGlances>,
}

#[derive(Debug, Default)]
struct KeyGlances {
    ends: Vec<EndGlances>,
    members: Vec<Bytes>,
    with_length: bool,
    /// The requests of other servers.
    with_requests: bool,
}

/// What commands look at at one end of a queue.
#[derive(Debug)]
struct EndGlances {
    value_type: ValueType,
    from_end: bool,
    /// How many elements they take.
    taken: usize,
    /// One looks at what is outermost then.
    looks_behind: bool,
}

impl EndGlances {
    fn rows(&self) -> usize {
        let behind = usize::from(self.looks_behind);
        self.taken.saturating_add(behind).max(1)
    }
}

impl Glances {
    /// Adds what a command will look at.
    pub fn add(&mut self, key: &ClientKey, glance: &Glance) {
        let glances = self.keys.entry(key.clone()).or_default();
        match glance {
            Glance::Meta => {}
            Glance::End {
                value_type,
                from_end,
                count,
                with_length,
            } => {
                glances.with_length |= with_length;
                glances.add_end(*value_type, *from_end, *count);
            }
            Glance::Members(members) => glances.members.extend(members.iter().cloned()),
        }
    }

    /// Adds what other servers may have asked for: their requests, and about `count` elements.
    pub fn add_requests(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        from_end: bool,
        count: usize,
    ) {
        let glances = self.keys.entry(key.clone()).or_default();
        glances.with_requests = true;
        glances.add_end(value_type, from_end, count);
    }

    /// Spares a key, whose elements will come from elsewhere.
    pub fn spare(&mut self, key: &ClientKey) {
        self.keys.remove(key);
    }
}

impl KeyGlances {
    /// Whether what is looked at in a queue of that type includes a signpost, and the metadata need
    /// not be read for anything else.
    fn meets_signpost(&self, value_type: ValueType) -> bool {
        let mut ends = self.ends.iter();
        ends.any(|end| {
            end.value_type == value_type && value_type.section_popped(end.from_end).is_some()
        })
    }

    fn add_end(&mut self, value_type: ValueType, from_end: bool, count: usize) {
        let looks_behind = count == 0;
        let mut ends = self.ends.iter_mut();
        match ends.find(|end| (end.value_type, end.from_end) == (value_type, from_end)) {
            Some(end) => {
                end.taken = end.taken.saturating_add(count);
                end.looks_behind |= looks_behind;
            }
            None => self.ends.push(EndGlances {
                value_type,
                from_end,
                taken: count,
                looks_behind,
            }),
        }
    }
}

/// Where a key's data was the last time.
#[derive(Debug, Clone, Copy)]
struct Hint {
    namespace: Id,
    data: Id,
    value_type: ValueType,
    /// About how large its rows are; 0 is not known.
    row_bytes: usize,
    /// A signpost was met there, which tells the metadata too.
    has_signposts: bool,
}

/// What was learned where a queue's data lies.
#[derive(Debug, Default)]
struct DataAhead {
    /// How large rows are, where any were read.
    row_bytes: Option<usize>,
    signpost: Option<Signpost>,
}

impl Hint {
    /// With what was learned.
    fn with(self, data: &DataAhead) -> Self {
        Self {
            row_bytes: data.row_bytes.unwrap_or(self.row_bytes),
            has_signposts: data.signpost.is_some() || self.has_signposts,
            ..self
        }
    }
}

/// What is remembered of keys between batches. Never trusted.
#[derive(Debug, Default)]
pub struct Hints {
    known: Mutex<HashMap<ClientKey, Hint>>,
}

impl Hints {
    fn known(&self) -> MutexGuard<'_, HashMap<ClientKey, Hint>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &ClientKey) -> Option<Hint> {
        self.known().get(key).copied()
    }

    fn set(&self, key: &ClientKey, hint: Option<Hint>) {
        let mut known = self.known();
        match hint {
            None => drop(known.remove(key)),
            Some(hint) => {
                // Forgetting all now and then is cheap: each key is learned with its next batch.
                if known.len() >= AHEAD_HINTS_MAX && !known.contains_key(key) {
                    known.clear();
                }
                known.insert(key.clone(), hint);
            }
        }
    }
}

impl ReadContext<'_> {
    /// Has rows read, side by side, that commands will look at. What fails here will fail where
    /// it is needed.
    pub async fn read_ahead(&self, glances: &Glances, hints: &Hints) {
        let databases: BTreeSet<u32> = glances.keys.keys().map(|key| key.database).collect();
        let namespaces = databases
            .into_iter()
            .map(|database| self.namespace_of(database));
        let hinted = glances
            .keys
            .iter()
            .filter_map(|(key, of_key)| Some((key, of_key, hints.get(key)?)))
            .map(async |(key, of_key, hint)| {
                Some((key, self.follow_hint(key, of_key, hint).await?))
            });
        let (_, followed) = futures_util::join!(join_all(namespaces), side_by_side(hinted));
        let mut found: HashMap<&ClientKey, Hint> = HashMap::new();
        for (key, hint) in followed.into_iter().flatten() {
            if self.namespace_of(key.database).await.ok() == Some(hint.namespace) {
                found.insert(key, hint);
            }
        }
        let others = glances
            .keys
            .iter()
            .filter(|(key, _)| !found.contains_key(key));
        let others = others.map(
            async |(key, of_key)| match self.find_out(key, of_key).await {
                Ok(learned) => hints.set(key, learned),
                Err(error) => tracing::trace!(%error, "nothing was read ahead"),
            },
        );
        side_by_side(others).await;
        for (key, hint) in found {
            hints.set(key, Some(hint));
        }
    }

    /// Reads everything at once, where it was the last time. `None` where the data is elsewhere by
    /// now.
    async fn follow_hint(&self, key: &ClientKey, glances: &KeyGlances, hint: Hint) -> Option<Hint> {
        let name = KeyName::new(&key.key);
        let data = self.read_data_ahead(glances, hint);
        let (meta, data) = if hint.has_signposts && glances.meets_signpost(hint.value_type) {
            let meta_key = self.layout().meta_key(hint.namespace, &name);
            let length = async {
                if glances.with_length {
                    self.length_at(&meta_key, Isolation::Snapshot).await?;
                }
                Ok::<(), StoreError>(())
            };
            let (data, ()) = futures_util::try_join!(data, length).ok()?;
            let signpost = data.signpost.as_ref()?;
            if signpost.meta_key != meta_key {
                return None;
            }
            self.transaction.cache_value(&meta_key, &signpost.meta);
            (Meta::decode(&signpost.meta).ok()?, data)
        } else {
            let meta = self.read_meta_ahead(hint.namespace, &name, glances);
            let (meta, data) = futures_util::try_join!(meta, data).ok()?;
            (meta?, data)
        };
        (meta.data == hint.data).then(|| hint.with(&data))
    }

    /// Reads the metadata, and then what it tells of.
    async fn find_out(
        &self,
        key: &ClientKey,
        glances: &KeyGlances,
    ) -> Result<Option<Hint>, StoreError> {
        let namespace = self.namespace_of(key.database).await?;
        let name = KeyName::new(&key.key);
        let Some(meta) = self.read_meta_ahead(namespace, &name, glances).await? else {
            return Ok(None);
        };
        let hint = Hint {
            namespace,
            data: meta.data,
            value_type: meta.value_type,
            row_bytes: 0,
            has_signposts: false,
        };
        let data = self.read_data_ahead(glances, hint).await?;
        Ok(Some(hint.with(&data)))
    }

    async fn read_meta_ahead(
        &self,
        namespace: Id,
        name: &KeyName,
        glances: &KeyGlances,
    ) -> Result<Option<Meta>, StoreError> {
        let meta_key = self.layout().meta_key(namespace, name);
        let meta = if glances.with_length {
            // Neighbours: one read for both.
            let rows = self.transaction.get_range(RangeQuery {
                begin: &meta_key,
                end: &successor(&self.layout().length_key(&meta_key)),
                limit: META_ROWS,
                reverse: false,
                isolation: Isolation::Snapshot,
            });
            let mut rows = rows.await?.into_iter();
            rows.find(|row| row.key == meta_key).map(|row| row.value)
        } else {
            self.transaction.get(&meta_key, Isolation::Snapshot).await?
        };
        Ok(meta.map(|value| Meta::decode(&value)).transpose()?)
    }

    async fn read_data_ahead(
        &self,
        glances: &KeyGlances,
        hint: Hint,
    ) -> Result<DataAhead, StoreError> {
        let rows_max = match hint.row_bytes {
            0 => AHEAD_ROWS_UNKNOWN_MAX,
            bytes => (AHEAD_BYTES_MAX / bytes).clamp(1, AHEAD_ROWS_MAX),
        };
        let is_wanted = |end: &&EndGlances| end.value_type == hint.value_type;
        let ends = glances.ends.iter().filter(is_wanted);
        let ends = ends.map(|end| self.read_end_ahead(hint.data, end, rows_max));
        let members = glances.members.iter().map(|member| async move {
            let row = self.layout().member_key(hint.data, &Member::new(member));
            self.transaction.get(&row, Isolation::Snapshot).await
        });
        let requests = async {
            match glances.with_requests {
                true => self.read_requests(hint.data).await.map(drop),
                false => Ok(()),
            }
        };
        let (ends, members, requests) =
            futures_util::join!(join_all(ends), join_all(members), requests);
        requests?;
        for read in members {
            read?;
        }
        let mut data = DataAhead::default();
        for end in ends {
            let end = end?;
            data.row_bytes = data.row_bytes.max(end.row_bytes);
            data.signpost = data.signpost.or(end.signpost);
        }
        Ok(data)
    }

    async fn read_end_ahead(
        &self,
        data: Id,
        end: &EndGlances,
        rows_max: usize,
    ) -> Result<DataAhead, StoreError> {
        let Some(section) = end.value_type.section_popped(end.from_end) else {
            return Ok(DataAhead::default());
        };
        let range = self
            .layout()
            .section_and_signpost(data, section, end.from_end);
        let rows = self
            .transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit: end.rows().min(rows_max).saturating_add(1),
                reverse: end.from_end,
                isolation: Isolation::Snapshot,
            })
            .await?;
        let signpost_key = self.layout().signpost_key(data, section, end.from_end);
        let (signpost, elements) = match rows.split_first() {
            Some((first, rest)) if first.key == signpost_key => {
                (Some(Signpost::decode(&first.value)?), rest)
            }
            _ => (None, rows.as_slice()),
        };
        let element_bytes = elements.iter().map(|row| row.key.len() + row.value.len());
        let row_bytes = element_bytes.sum::<usize>().checked_div(elements.len());
        Ok(DataAhead {
            row_bytes,
            signpost,
        })
    }
}

/// Runs futures side by side, a bounded number at a time.
async fn side_by_side<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures = futures.fuse();
    let mut outputs = Vec::new();
    loop {
        let some: Vec<F> = futures.by_ref().take(AHEAD_READS_AT_ONCE).collect();
        if some.is_empty() {
            return outputs;
        }
        outputs.extend(join_all(some).await);
    }
}

#[cfg(test)]
mod tests;
