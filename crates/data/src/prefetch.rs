//! Prefetching: reads the rows that a batch's commands will need, all at once.
//!
//! On a cluster each read is a round trip, and a command reads one row after the other: the database's namespace, the
//! key's metadata, then its data. A batch knows its commands in advance, so it reads all these rows concurrently. The
//! commands then find them in the transaction's cache. The [`LocationCache`] remembers where a key's data was, so that
//! the data can be read together with the metadata. A wrong location only costs a useless read, because the command
//! reads the metadata anyway.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::join_all;

use crate::keyspace::key::ClientKey;
use crate::keyspace::kind::TypeKind;
use crate::unit::context::ReadContext;
use quoin_layout::{
    Id, KeyName, Member, Meta, MetaCopy, Section, StreamGroup, StreamId, ValueType, successor,
};
use quoin_store::{Isolation, RangeQuery, StoreError};

/// Maximum number of members, fields or stream entries to prefetch for one command.
const PREFETCHED_MEMBERS_MAX: usize = 64;

/// Most keys to prefetch concurrently.
const KEYS_AT_ONCE: usize = 512;
/// Maximum number of rows to prefetch from one queue.
const ROWS_MAX: usize = 8_192;
/// Maximum number of rows to prefetch from one queue while the size of its rows is unknown.
const ROWS_OF_UNKNOWN_SIZE_MAX: usize = 16;
/// Maximum bytes to prefetch from one queue, estimated from the previous size of its rows.
const BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of keys whose location a server remembers.
const LOCATIONS_MAX: usize = 65_536;
/// Number of rows that describe a key: its metadata and its length.
const META_ROWS: usize = 2;

/// What a command will read from one of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prefetch {
    /// Only the key's metadata.
    Meta,
    /// Elements at one end of a queue.
    End {
        /// The type that the command expects.
        value_type: ValueType,
        /// The end with the last or highest elements.
        from_end: bool,
        /// How many elements it takes. A push takes none and reads the outermost element.
        count: usize,
        /// Whether it also reads the key's length, which pushes return.
        with_length: bool,
    },
    /// Members or fields by name.
    Members {
        /// The type that the command expects.
        value_type: ValueType,
        /// Their names.
        names: Vec<Bytes>,
    },
    /// Rows that a stream has only once.
    Stream {
        /// Whether the stream's head is read.
        head: bool,
        /// What is read about a consumer group.
        group: Option<GroupPrefetch>,
    },
}

/// What a command reads about a consumer group, in addition to the group's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPrefetch {
    /// The group's name.
    pub name: Bytes,
    /// The row of this consumer.
    pub consumer: Option<Bytes>,
    /// These entries' pending rows.
    pub pending: Vec<StreamId>,
}

impl Prefetch {
    /// Prefetches the first [`PREFETCHED_MEMBERS_MAX`] of these members or fields.
    pub fn members<'n>(value_type: ValueType, names: impl IntoIterator<Item = &'n Bytes>) -> Self {
        let names = names.into_iter().take(PREFETCHED_MEMBERS_MAX);
        Prefetch::Members {
            value_type,
            names: names.cloned().collect(),
        }
    }
}

/// Everything that the commands of a batch will read, without duplicate rows.
#[derive(Debug, Default)]
pub struct PrefetchPlan {
    /// By key.
    pub keys: BTreeMap<ClientKey, KeyPlan>,
}

/// What the commands will read from one key.
#[derive(Debug, Default)]
pub struct KeyPlan {
    /// Rows at the ends of a queue.
    pub ends: Vec<EndPlan>,
    members: Vec<(ValueType, Bytes)>,
    stream_head: bool,
    /// By name.
    stream_groups: BTreeMap<Bytes, GroupPlan>,
    with_length: bool,
}

/// What commands read about a consumer group.
#[derive(Debug, Default)]
struct GroupPlan {
    consumers: BTreeSet<Bytes>,
    pending: BTreeSet<StreamId>,
}

/// What commands read at one end of a queue.
#[derive(Debug)]
pub struct EndPlan {
    value_type: ValueType,
    from_end: bool,
    /// How many elements they take.
    taken: usize,
    /// Whether any of them reads the outermost remaining element.
    reads_beyond: bool,
}

impl EndPlan {
    /// Number of rows to read, given the approximate number of elements per row.
    pub fn rows(&self, elements_per_row: usize) -> usize {
        let beyond = usize::from(self.reads_beyond);
        // Some elements of the first row may already be popped.
        let partly = usize::from(elements_per_row > 1 && self.taken > 0);
        let rows = self.taken.div_ceil(elements_per_row.max(1)) + partly;
        rows.saturating_add(beyond).max(1)
    }
}

impl PrefetchPlan {
    /// Adds what a command will read.
    pub fn add(&mut self, key: &ClientKey, prefetch: &Prefetch) {
        let plan = self.keys.entry(key.clone()).or_default();
        match prefetch {
            Prefetch::Meta => {}
            Prefetch::End {
                value_type,
                from_end,
                count,
                with_length,
            } => {
                plan.with_length |= with_length;
                plan.add_end(*value_type, *from_end, *count);
            }
            Prefetch::Members { value_type, names } => {
                let names = names.iter().map(|name| (*value_type, name.clone()));
                plan.members.extend(names);
            }
            Prefetch::Stream { head, group } => {
                plan.stream_head |= head;
                if let Some(group) = group {
                    let of_group = plan.stream_groups.entry(group.name.clone()).or_default();
                    of_group.consumers.extend(group.consumer.clone());
                    let pending = group.pending.iter().take(PREFETCHED_MEMBERS_MAX);
                    of_group.pending.extend(pending.copied());
                }
            }
        }
    }

    /// Adds what a command will read from each of its keys.
    pub fn add_all(&mut self, reads: &[(ClientKey, Prefetch)]) {
        for (key, prefetch) in reads {
            self.add(key, prefetch);
        }
    }
}

impl KeyPlan {
    /// Whether anything besides the key's own rows is read.
    fn reads_data(&self) -> bool {
        let reads_stream = self.stream_head || !self.stream_groups.is_empty();
        !self.ends.is_empty() || !self.members.is_empty() || reads_stream
    }

    /// Whether the rows to read from a queue of this type include a metadata copy, so that the metadata need not be
    /// read separately.
    fn meets_meta_copy(&self, value_type: ValueType) -> bool {
        let mut ends = self.ends.iter();
        ends.any(|end| {
            end.value_type == value_type && value_type.section_popped(end.from_end).is_some()
        })
    }

    fn add_end(&mut self, value_type: ValueType, from_end: bool, count: usize) {
        let reads_beyond = count == 0;
        let mut ends = self.ends.iter_mut();
        match ends.find(|end| (end.value_type, end.from_end) == (value_type, from_end)) {
            Some(end) => {
                end.taken = end.taken.saturating_add(count);
                end.reads_beyond |= reads_beyond;
            }
            None => self.ends.push(EndPlan {
                value_type,
                from_end,
                taken: count,
                reads_beyond,
            }),
        }
    }
}

/// Where a key's data was last time.
#[derive(Debug, Clone, Copy)]
pub struct Location {
    namespace: Id,
    data: Id,
    value_type: ValueType,
    /// Approximate size of a row. 0 means unknown.
    row_bytes: usize,
    /// Approximate number of elements per row. 0 means unknown.
    elements_per_row: usize,
    /// There was a metadata copy, which makes reading the metadata unnecessary.
    has_meta_copies: bool,
    /// The value was in rows, not in the metadata.
    has_rows: bool,
}

/// The probable location of a key.
#[derive(Debug, Clone, Copy)]
enum Guess {
    /// The key's location last time.
    Location(Location),
    /// The namespace of its database last time.
    Namespace(Id),
}

/// What was learned about a queue while reading it.
#[derive(Debug, Default)]
struct PrefetchedData {
    /// Size of its rows, if any were read.
    row_bytes: Option<usize>,
    /// Number of elements per row.
    elements_per_row: Option<usize>,
    copy: Option<MetaCopy>,
}

impl Location {
    /// Adds what was learned at this location.
    fn with(self, data: &PrefetchedData) -> Self {
        Self {
            row_bytes: data.row_bytes.unwrap_or(self.row_bytes),
            elements_per_row: data.elements_per_row.unwrap_or(self.elements_per_row),
            has_meta_copies: data.copy.is_some() || self.has_meta_copies,
            ..self
        }
    }
}

/// Where the data of keys was when a batch last read it. Always verified against the metadata.
#[derive(Debug, Default)]
pub struct LocationCache {
    known: Mutex<Known>,
}

/// What a [`LocationCache`] knows.
#[derive(Debug, Default)]
pub struct Known {
    /// Namespaces of databases.
    namespaces: HashMap<u32, Id>,
    /// Locations of keys' data.
    pub keys: HashMap<ClientKey, Location>,
}

impl LocationCache {
    /// The current content.
    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, key: &ClientKey, location: Option<Location>) {
        let known = &mut self.known().keys;
        match location {
            None => drop(known.remove(key)),
            Some(location) => {
                // Dropping everything is cheap: the next batch of each key learns its location again.
                if known.len() >= LOCATIONS_MAX && !known.contains_key(key) {
                    known.clear();
                }
                known.insert(key.clone(), location);
            }
        }
    }

    /// The probable location of a key, if known.
    fn guess(&self, key: &ClientKey) -> Option<Guess> {
        let known = self.known();
        let location = known.keys.get(key).copied().map(Guess::Location);
        let namespace = known.namespaces.get(&key.database).copied();
        location.or(namespace.map(Guess::Namespace))
    }

    /// Bounded by the number of databases.
    fn set_namespace(&self, database: u32, namespace: Id) {
        self.known().namespaces.insert(database, namespace);
    }
}

impl ReadContext<'_> {
    /// Concurrently reads the rows that commands will need. If a read fails here, it fails again when a command needs
    /// it.
    pub async fn prefetch(&self, plan: &PrefetchPlan, locations: &LocationCache) {
        let databases: BTreeSet<u32> = plan.keys.keys().map(|key| key.database).collect();
        let namespaces = databases.into_iter().map(async |database| {
            let namespace = self.namespace_of(database).await.ok()?;
            locations.set_namespace(database, namespace);
            Some((database, namespace))
        });
        let guesses = { plan.keys.iter() }.map(|(key, of_key)| {
            let guess = locations.guess(key);
            async move { Some((key, self.follow_guess(key, of_key, guess?).await?)) }
        });
        let (namespaces, followed) =
            futures_util::join!(join_all(namespaces), side_by_side(guesses));
        let namespaces: HashMap<u32, Id> = namespaces.into_iter().flatten().collect();
        let mut learned: HashMap<&ClientKey, Option<Location>> = HashMap::new();
        for (key, (namespace, location)) in followed.into_iter().flatten() {
            if namespaces.get(&key.database) == Some(&namespace) {
                learned.insert(key, location);
            }
        }
        let others = plan.keys.iter().filter_map(|(key, of_key)| {
            let is_left = !learned.contains_key(key);
            is_left.then_some((key, of_key, *namespaces.get(&key.database)?))
        });
        let others = others.map(async |(key, of_key, namespace)| {
            Some((key, self.find_out(key, of_key, namespace).await?))
        });
        learned.extend(side_by_side(others).await.into_iter().flatten());
        for (key, location) in learned {
            // The metadata alone is found without a location.
            if plan.keys.get(key).is_some_and(KeyPlan::reads_data) {
                locations.set(key, location);
            }
        }
    }

    /// Reads the planned rows at the probable location of a key. Returns the namespace of that location and what was
    /// learned there; `None` if the data has moved.
    async fn follow_guess(
        &self,
        key: &ClientKey,
        plan: &KeyPlan,
        guess: Guess,
    ) -> Option<(Id, Option<Location>)> {
        match guess {
            Guess::Location(location) => {
                let found = self.follow_location(key, plan, location).await?;
                Some((found.namespace, Some(found)))
            }
            Guess::Namespace(namespace) => {
                Some((namespace, self.find_out(key, plan, namespace).await?))
            }
        }
    }

    /// Reads metadata and data at once, the data at its previous location. `None` if it has moved.
    async fn follow_location(
        &self,
        key: &ClientKey,
        plan: &KeyPlan,
        location: Location,
    ) -> Option<Location> {
        let name = KeyName::new(&key.key);
        let data = self.prefetch_data(plan, location);
        let (meta, data) = if location.has_meta_copies && plan.meets_meta_copy(location.value_type)
        {
            let meta_key = self.layout().meta_key(location.namespace, &name);
            let length = async {
                if plan.with_length {
                    self.length_at(&meta_key, Isolation::Snapshot).await?;
                }
                Ok::<(), StoreError>(())
            };
            let (data, ()) = futures_util::try_join!(data, length).ok()?;
            let copy = data.copy.as_ref()?;
            if copy.meta_key != meta_key {
                return None;
            }
            self.transaction.cache_value(&meta_key, &copy.meta);
            (Meta::decode(&copy.meta).ok()?, data)
        } else {
            let meta = self.prefetch_meta(location.namespace, &name, plan);
            let (meta, data) = futures_util::try_join!(meta, data).ok()?;
            (meta?, data)
        };
        let is_there = meta.data == location.data && meta.inline.is_none() == location.has_rows;
        is_there.then(|| location.with(&data))
    }

    /// Reads the metadata, then the data that it refers to. `None` if that fails.
    async fn find_out(
        &self,
        key: &ClientKey,
        plan: &KeyPlan,
        namespace: Id,
    ) -> Option<Option<Location>> {
        match self.try_find_out(key, plan, namespace).await {
            Ok(learned) => Some(learned),
            Err(error) => {
                tracing::trace!(%error, "nothing was prefetched");
                None
            }
        }
    }

    async fn try_find_out(
        &self,
        key: &ClientKey,
        plan: &KeyPlan,
        namespace: Id,
    ) -> Result<Option<Location>, StoreError> {
        let name = KeyName::new(&key.key);
        let Some(meta) = self.prefetch_meta(namespace, &name, plan).await? else {
            return Ok(None);
        };
        let location = Location {
            namespace,
            data: meta.data,
            value_type: meta.value_type,
            row_bytes: 0,
            elements_per_row: 0,
            has_meta_copies: false,
            has_rows: meta.inline.is_none(),
        };
        let data = self.prefetch_data(plan, location).await?;
        Ok(Some(location.with(&data)))
    }

    async fn prefetch_meta(
        &self,
        namespace: Id,
        name: &KeyName,
        plan: &KeyPlan,
    ) -> Result<Option<Meta>, StoreError> {
        let meta_key = self.layout().meta_key(namespace, name);
        let meta = if plan.with_length {
            // Adjacent rows, so one read returns both.
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

    async fn prefetch_data(
        &self,
        plan: &KeyPlan,
        location: Location,
    ) -> Result<PrefetchedData, StoreError> {
        let rows_max = match location.row_bytes {
            0 => ROWS_OF_UNKNOWN_SIZE_MAX,
            bytes => (BYTES_MAX / bytes).clamp(1, ROWS_MAX),
        };
        let is_wanted = |end: &&EndPlan| end.value_type == location.value_type;
        let ends = plan.ends.iter().filter(is_wanted);
        let ends = ends.map(|end| {
            let rows = end.rows(location.elements_per_row).min(rows_max);
            self.prefetch_end(location.data, end, rows)
        });
        let section = (location.value_type.kind().named_section).filter(|_| location.has_rows);
        let members = plan.members.iter().filter_map(|(value_type, name)| {
            let section = section.filter(|_| *value_type == location.value_type)?;
            let row = self
                .layout()
                .hashed_key(location.data, section, &Member::new(name));
            Some(async move { self.transaction.get(&row, Isolation::Snapshot).await })
        });
        let stream = self.prefetch_stream(plan, location);
        let (ends, members, stream) =
            futures_util::join!(join_all(ends), join_all(members), stream);
        stream?;
        for read in members {
            read?;
        }
        let mut data = PrefetchedData::default();
        for end in ends {
            let end = end?;
            data.row_bytes = data.row_bytes.max(end.row_bytes);
            data.elements_per_row = data.elements_per_row.or(end.elements_per_row);
            data.copy = data.copy.or(end.copy);
        }
        Ok(data)
    }

    async fn prefetch_stream(&self, plan: &KeyPlan, location: Location) -> Result<(), StoreError> {
        let mut sections = location.value_type.kind().sections.iter();
        if !sections.any(|kind| kind.section == Section::StreamHead) {
            return Ok(());
        }
        let data = location.data;
        let head = async {
            match plan.stream_head {
                true => self.prefetch_row(self.layout().stream_head_key(data)).await,
                false => Ok(None),
            }
        };
        let groups = plan.stream_groups.iter();
        let groups = groups.map(|(name, group)| self.prefetch_group(data, name, group));
        let (head, groups) = futures_util::join!(head, join_all(groups));
        head?;
        groups.into_iter().collect()
    }

    /// Reads a group's row, then the rows under the id found in it.
    async fn prefetch_group(
        &self,
        data: Id,
        name: &Bytes,
        plan: &GroupPlan,
    ) -> Result<(), StoreError> {
        let layout = self.layout();
        let row = self
            .prefetch_row(layout.stream_group_key(data, name))
            .await?;
        let Some(row) = row else {
            return Ok(());
        };
        let group = StreamGroup::decode(&row)?.id;
        let consumers = plan.consumers.iter();
        let consumers = consumers.map(|name| layout.stream_consumer_key(data, group, name));
        let pending = plan.pending.iter();
        let pending = pending.map(|id| layout.stream_pending_key(data, group, *id));
        let rows = consumers.chain(pending).map(|row| self.prefetch_row(row));
        for read in side_by_side(rows).await {
            read?;
        }
        Ok(())
    }

    async fn prefetch_row(&self, row: Vec<u8>) -> Result<Option<Bytes>, StoreError> {
        self.transaction.get(&row, Isolation::Snapshot).await
    }

    async fn prefetch_end(
        &self,
        data: Id,
        end: &EndPlan,
        rows: usize,
    ) -> Result<PrefetchedData, StoreError> {
        let Some(section) = end.value_type.section_popped(end.from_end) else {
            return Ok(PrefetchedData::default());
        };
        let range = self
            .layout()
            .section_and_meta_copy(data, section, end.from_end);
        let rows = self
            .transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit: rows.saturating_add(1),
                reverse: end.from_end,
                isolation: Isolation::Snapshot,
            })
            .await?;
        let meta_copy_key = self.layout().meta_copy_key(data, section, end.from_end);
        let (copy, elements) = match rows.split_first() {
            Some((first, rest)) if first.key == meta_copy_key => {
                (Some(MetaCopy::decode(&first.value)?), rest)
            }
            _ => (None, rows.as_slice()),
        };
        let element_bytes = elements.iter().map(|row| row.key.len() + row.value.len());
        let row_bytes = element_bytes.sum::<usize>().checked_div(elements.len());
        let kind = end.value_type.kind();
        let counts = elements.iter().map(|row| kind.elements_in(section, row));
        let elements_per_row = counts.sum::<usize>().checked_div(elements.len());
        Ok(PrefetchedData {
            row_bytes,
            elements_per_row,
            copy,
        })
    }
}

/// Awaits futures concurrently, a bounded number at a time.
async fn side_by_side<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures = futures.fuse();
    let mut outputs = Vec::new();
    loop {
        let some: Vec<F> = futures.by_ref().take(KEYS_AT_ONCE).collect();
        if some.is_empty() {
            return outputs;
        }
        outputs.extend(join_all(some).await);
    }
}

#[cfg(test)]
mod tests;
