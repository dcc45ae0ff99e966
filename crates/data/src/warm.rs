//! Warming: rows that the next commands will read are fetched into the processor's cache together.
//!
//! If rows are in memory, a command spends most of its time waiting for memory: for the row of a
//! key's metadata, then for the rows that it refers to. The commands of a batch are known in
//! advance, so the store can wait for the rows of several commands at once. Correctness does not
//! depend on it.

use bytes::Bytes;

use crate::command::call::Invocation;
use crate::command::plan::Plan;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::TypeKind;
use crate::prefetch::Prefetch;
use crate::unit::AnyUnit;
use quoin_layout::{Layout, Member};
use quoin_store::SoonRead;

/// How many commands are warmed together. Their rows fit into the cache of a core.
pub const WARMED_COMMANDS: usize = 32;
/// Most keys of a command to warm.
const KEYS_MAX: usize = 32;
/// Most members or fields of a command to warm.
const MEMBERS_MAX: usize = 16;

/// Warms what some commands will read. They must run next, in this order.
pub async fn warm<'i>(unit: AnyUnit<'_>, invocations: impl Iterator<Item = &'i Invocation>) {
    let mut soon = Vec::new();
    // The planned reads of keys, in addition to their metadata.
    let mut planned: Vec<(KeyAhead<'_>, Prefetch)> = Vec::new();
    let mut last: Option<KeyAhead<'_>> = None;
    unit.read_context(0).forget_ahead();
    for invocation in invocations {
        let (row, arguments) = (invocation.row, invocation.arguments.as_slice());
        let plan = row.plan.and_then(|plan| plan(arguments));
        let (each, of_all) = plan.map(reads_of).unwrap_or_default();
        let mut each = each.into_iter();
        for name in row.keys_in(arguments).take(KEYS_MAX) {
            let key = KeyAhead {
                database: invocation.database,
                name,
            };
            // If clients share a key, most of its rows are already in the cache.
            if last != Some(key) {
                let context = unit.read_context(key.database);
                let Ok(meta_key) = context.locate_ahead(name).await else {
                    return;
                };
                soon.push(SoonRead::Row(meta_key));
                last = Some(key);
            }
            let read = each.next().or_else(|| of_all.clone());
            planned.extend(read.map(|read| (key, read)));
        }
    }
    let transaction = unit.read_context(0).transaction;
    if soon.len() > 1 {
        transaction.warm(&soon);
    }
    soon.clear();
    let mut found: Option<(KeyAhead<'_>, Option<OpenKey>)> = None;
    for (key, read) in planned {
        if found.as_ref().is_none_or(|(last, _)| *last != key) {
            let context = unit.read_context(key.database);
            // An unreadable row is found out by the command.
            found = Some((key, context.find_ahead(key.name).await.ok().flatten()));
        } else if !matches!(read, Prefetch::Members { .. }) {
            continue;
        }
        if let Some((_, Some(open))) = &found {
            let layout = unit.read_context(key.database).layout();
            add_rows(layout, open, &read, &mut soon);
        }
    }
    if soon.len() > 1 {
        transaction.warm(&soon);
    }
}

/// A key that a command names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeyAhead<'a> {
    database: u32,
    name: &'a Bytes,
}

/// The reads of each key in turn, or of all keys.
fn reads_of(plan: Plan) -> (Vec<Prefetch>, Option<Prefetch>) {
    match plan {
        Plan::Read(reads) => (reads, None),
        Plan::Each(read) => (Vec::new(), Some(read)),
    }
}

/// Adds the rows that a key's metadata refers to.
fn add_rows(layout: &Layout, key: &OpenKey, read: &Prefetch, soon: &mut Vec<SoonRead>) {
    let (meta, data) = (&key.meta, key.data());
    if meta.inline.is_some() {
        return;
    }
    match read {
        Prefetch::End {
            value_type,
            from_end,
            ..
        } if *value_type == meta.value_type => {
            let Some(section) = value_type.section_popped(*from_end) else {
                return;
            };
            let prefix = layout.section_prefix(data, section);
            soon.push(match from_end {
                false => SoonRead::First(prefix),
                true => SoonRead::Last(prefix),
            });
            soon.push(SoonRead::Row(layout.length_key(&key.meta_key)));
        }
        Prefetch::Members { value_type, names } if *value_type == meta.value_type => {
            let Some(section) = value_type.kind().named_section else {
                return;
            };
            let names = names.iter().take(MEMBERS_MAX);
            soon.extend(
                names.map(|name| {
                    SoonRead::Row(layout.hashed_key(data, section, &Member::new(name)))
                }),
            );
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use quoin_engine::testing::Bench;
    use quoin_resp::reply::Reply;
    use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, StoreFuture};

    use super::*;
    use crate::command::call::{Mode, call_once};
    use crate::table;
    use crate::testing::environment;
    use crate::unit::ReadUnit;
    use crate::unit::host::Origin;

    /// Records what is warmed and what is read.
    struct Noting<'t> {
        inner: &'t dyn ReadTransaction,
        warmed: RefCell<Vec<SoonRead>>,
        rows: RefCell<Vec<Vec<u8>>>,
        ranges: RefCell<Vec<(Vec<u8>, Vec<u8>)>>,
    }

    impl Noting<'_> {
        /// The number of reads with and without warming before them.
        fn counts(&self) -> (usize, usize) {
            let warmed = self.warmed.borrow();
            let has_row = |key: &Vec<u8>| warmed.contains(&SoonRead::Row(key.clone()));
            let has_range = |(begin, end): &(Vec<u8>, Vec<u8>)| {
                warmed.iter().any(|one| match one {
                    SoonRead::Row(_) => false,
                    SoonRead::First(prefix) => begin.starts_with(prefix),
                    SoonRead::Last(prefix) => end > prefix && begin.starts_with(prefix),
                })
            };
            let (rows, ranges) = (self.rows.borrow(), self.ranges.borrow());
            let rows_warmed = rows.iter().filter(|key| has_row(key)).count();
            let ranges_warmed = ranges.iter().filter(|range| has_range(range)).count();
            let warmed = rows_warmed + ranges_warmed;
            (warmed, rows.len() + ranges.len() - warmed)
        }
    }

    impl ReadTransaction for Noting<'_> {
        fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
            self.rows.borrow_mut().push(key.to_vec());
            self.inner.get(key, isolation)
        }

        fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
            let range = (query.begin.to_vec(), query.end.to_vec());
            self.ranges.borrow_mut().push(range);
            self.inner.get_range(query)
        }

        fn cache_value(&self, key: &[u8], value: &Bytes) {
            self.inner.cache_value(key, value);
        }

        fn warm(&self, soon: &[SoonRead]) {
            self.warmed.borrow_mut().extend_from_slice(soon);
        }
    }

    fn invocation(line: &str) -> Invocation {
        let words = line.split(' ').map(str::to_owned).map(Bytes::from);
        let arguments: Vec<Bytes> = words.collect();
        Invocation {
            row: table::find(&arguments[0]).unwrap(),
            arguments,
            database: 0,
            origin: Origin::SERVER,
        }
    }

    /// Warms some commands and runs those that read. Returns how many of their reads were warmed,
    /// and how many were not.
    fn run(bench: &Bench, lines: &[&str]) -> (usize, usize) {
        let transaction = bench.store.begin_read().unwrap();
        let noting = Noting {
            inner: &*transaction,
            warmed: RefCell::default(),
            rows: RefCell::default(),
            ranges: RefCell::default(),
        };
        let environment = environment(bench);
        let unit = ReadUnit::new(&noting, &environment, None);
        let unit = AnyUnit::Read(&unit);
        let invocations: Vec<Invocation> = lines.iter().map(|line| invocation(line)).collect();
        bench.block_on(async {
            warm(unit, invocations.iter()).await;
            noting.rows.borrow_mut().clear();
            for one in &invocations {
                let replied: Result<_, StoreError> = call_once(unit, one, Mode::default())
                    .await
                    .map_err(|_| StoreError::Conflict);
                assert!(!matches!(replied.unwrap(), Reply::Error(_)));
            }
        });
        noting.counts()
    }

    fn filled() -> Bench {
        let bench = Bench::embedded();
        let long = "x".repeat(600);
        for key in ["a", "b"] {
            bench.run(&format!("SET string-{key} {long}"));
            bench.run(&format!(
                "HSET hash-{key} one {long} two {long} three {long}"
            ));
            bench.run(&format!("RPUSH list-{key} {long} {long} {long}"));
        }
        bench
    }

    #[test]
    fn what_commands_read_has_been_warmed() {
        let bench = filled();
        for (lines, reads) in [
            (["GET string-a", "GET string-b"], 2),
            (["HGET hash-a one", "HMGET hash-b one two"], 5),
            (["HGET hash-a none", "HGET hash-b none"], 4),
        ] {
            assert_eq!(run(&bench, &lines), (reads, 0), "{lines:?}");
        }
    }

    #[test]
    fn clients_of_one_key_have_its_metadata_warmed_once() {
        let bench = filled();
        let lines = ["HGET hash-a one", "HGET hash-a two", "HGET hash-a three"];
        // The three fields. The metadata alone is not worth it.
        assert_eq!(run(&bench, &lines), (3, 3));
    }
}
