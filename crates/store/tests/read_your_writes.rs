//! Own reads and writes of a transaction, compared with the embedded store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use quoin_base::random::{Random, SeededRandom};
use quoin_store::faults::OptimisticStore;
use quoin_store::read_your_writes::cache::OwnedQuery;
use quoin_store::read_your_writes::{BaseTransaction, ReadYourWrites};
use quoin_store::rules::{added, key_after, lowered};
use quoin_store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, Savepoint, Store, StoreError, StoreFuture,
    Transaction,
};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Waits for a result that is ready after some polls.
fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..100 {
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(output) = polled {
            return output;
        }
    }
    panic!("no answer");
}

fn random_key(random: &SeededRandom) -> Vec<u8> {
    // Few keys, some of which are prefixes of others.
    let mut key = vec![b'a' + random.below(6) as u8];
    for _ in 0..random.below(3) {
        key.push(random.below(3) as u8);
    }
    key
}

fn random_value(random: &SeededRandom) -> Vec<u8> {
    vec![random.next_u64() as u8; random.below(12) as usize]
}

enum Step {
    Set(Vec<u8>, Vec<u8>),
    Clear(Vec<u8>),
    ClearRange(Vec<u8>, Vec<u8>),
    Add(Vec<u8>, i64),
    Min(Vec<u8>, u64),
    Conflict(Vec<u8>, Vec<u8>),
    Get(Vec<u8>, Isolation),
    Range(OwnedQuery),
    /// Reads and clears rows from one end of a range, as a pop does.
    Pop(OwnedQuery),
    /// The same in the section of elements, whose keys are never set twice. Elements that the
    /// transaction itself has put there need not conflict.
    Take(OwnedQuery),
}

/// The section of elements.
const SECTION: (&[u8], &[u8]) = (b"u", b"v");

fn element_key(random: &SeededRandom) -> Vec<u8> {
    [SECTION.0, &random.next_u64().to_be_bytes()].concat()
}

fn random_step(random: &SeededRandom) -> Step {
    let (key, second) = (random_key(random), random_key(random));
    let isolation = [Isolation::Snapshot, Isolation::Serializable][random.below(2) as usize];
    let query = OwnedQuery::new(&RangeQuery {
        begin: &key,
        end: &second,
        limit: 1 + random.below(5) as usize,
        reverse: random.below(2) == 0,
        isolation,
    });
    let elements = OwnedQuery::new(&RangeQuery {
        begin: SECTION.0,
        end: SECTION.1,
        limit: 1 + random.below(3) as usize,
        reverse: random.below(2) == 0,
        isolation: Isolation::Snapshot,
    });
    match random.below(36) {
        0..=2 => Step::Set(key, random_value(random)),
        3..=4 => Step::Clear(key),
        5 => Step::ClearRange(key, second),
        6..=8 => Step::Add(key, random.below(9) as i64 - 4),
        9..=10 => Step::Min(key, random.next_u64()),
        11 => Step::Conflict(key, second),
        12..=14 => Step::Get(key, isolation),
        15..=18 => Step::Pop(query),
        19..=22 => Step::Set(element_key(random), random_value(random)),
        23..=26 => Step::Take(elements),
        _ => Step::Range(query),
    }
}

fn rows_of(map: &Map, query: &RangeQuery<'_>) -> Rows {
    let inside = map
        .iter()
        .filter(|(key, _)| key.as_slice() >= query.begin && key.as_slice() < query.end)
        .map(|(key, value)| (key.clone(), value.clone()));
    if query.reverse {
        inside.rev().take(query.limit).collect()
    } else {
        inside.take(query.limit).collect()
    }
}

/// Performs a step on a map. Returns what it reads.
fn apply(step: &Step, map: &mut Map) -> Rows {
    match step {
        Step::Set(key, value) => drop(map.insert(key.clone(), value.clone())),
        Step::Clear(key) => drop(map.remove(key)),
        Step::ClearRange(begin, end) => map.retain(|key, _| key < begin || key >= end),
        Step::Add(key, delta) => {
            let sum = added(map.get(key).map(Vec::as_slice), *delta);
            map.insert(key.clone(), sum.to_vec());
        }
        Step::Min(key, operand) => {
            let least = lowered(map.get(key).map(Vec::as_slice), *operand);
            map.insert(key.clone(), least.to_vec());
        }
        Step::Conflict(..) => {}
        Step::Get(key, _) => {
            let value = map.get(key).map(|value| (key.clone(), value.clone()));
            return value.into_iter().collect();
        }
        Step::Range(query) => return rows_of(map, &query.query()),
        Step::Pop(query) | Step::Take(query) => {
            let rows = rows_of(map, &query.query());
            for (key, _) in &rows {
                map.remove(key);
            }
            return rows;
        }
    }
    Rows::new()
}

/// Performs a step in a transaction. Returns what it reads.
fn run(step: &Step, transaction: &dyn Transaction) -> Rows {
    match step {
        Step::Set(key, value) => transaction.set(key, value),
        Step::Clear(key) => transaction.clear(key),
        Step::ClearRange(begin, end) => transaction.clear_range(begin, end),
        Step::Add(key, delta) => transaction.atomic_add(key, *delta),
        Step::Min(key, operand) => transaction.atomic_min(key, *operand),
        Step::Conflict(begin, end) => transaction.add_read_conflict_range(begin, end),
        Step::Get(key, isolation) => {
            let value = now(transaction.get(key, *isolation)).unwrap();
            let row = value.map(|value| (key.clone(), value.to_vec()));
            return row.into_iter().collect();
        }
        Step::Range(query) | Step::Pop(query) | Step::Take(query) => {
            let rows = now(transaction.get_range(query.query())).unwrap();
            let rows = rows
                .into_iter()
                .map(|row| (row.key.to_vec(), row.value.to_vec()));
            let rows: Rows = rows.collect();
            if let (Step::Take(query), Some((last, _))) = (step, rows.last()) {
                let taken = match query.query().reverse {
                    true => (last.clone(), SECTION.1.to_vec()),
                    false => (SECTION.0.to_vec(), key_after(last)),
                };
                transaction.add_conflict_unless_own(SECTION, (&taken.0, &taken.1));
            }
            if matches!(step, Step::Pop(_) | Step::Take(_)) {
                for (key, _) in &rows {
                    transaction.clear(key);
                }
            }
            return rows;
        }
    }
    Rows::new()
}

/// The expected content of a transaction, now and at the open savepoints.
struct Model<M> {
    now: M,
    open: Vec<(Savepoint, M)>,
}

impl<M: Clone> Model<M> {
    fn new(now: M) -> Self {
        let open = Vec::new();
        Self { now, open }
    }

    /// Opens or ends a savepoint, or does nothing.
    fn move_savepoints(&mut self, transaction: &dyn Transaction, random: &SeededRandom) {
        match random.below(8) {
            0 => self.open.push((transaction.savepoint(), self.now.clone())),
            1 => {
                if let Some((savepoint, before)) = self.open.pop() {
                    transaction.rollback(savepoint);
                    self.now = before;
                }
            }
            2 => {
                if let Some((savepoint, _)) = self.open.pop() {
                    transaction.release(savepoint);
                }
            }
            _ => {}
        }
    }
}

fn is_write(step: &Step) -> bool {
    let is_read = matches!(step, Step::Conflict(..) | Step::Get(..) | Step::Range(_));
    !is_read
}

fn open(folder: &tempfile::TempDir) -> EmbeddedStore {
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        map_bytes: 16 << 20,
        ..EmbeddedOptions::default()
    };
    EmbeddedStore::open(folder.path(), options).unwrap()
}

/// Replaces all rows with some random ones.
fn fill(store: &dyn Store, random: &SeededRandom) -> Map {
    let mut map = Map::new();
    let transaction = store.begin_write().unwrap();
    transaction.clear_range(b"", &[0xff]);
    for _ in 0..random.below(40) {
        let (key, value) = (random_key(random), random_value(random));
        transaction.set(&key, &value);
        map.insert(key, value);
    }
    if random.below(3) == 0 {
        let (key, value) = (element_key(random), random_value(random));
        transaction.set(&key, &value);
        map.insert(key, value);
    }
    now(transaction.commit()).unwrap();
    map
}

fn all_rows(store: &dyn Store) -> Map {
    let rows = now(store.begin_read().unwrap().get_range(RangeQuery {
        begin: b"",
        end: &[0xff],
        limit: usize::MAX >> 1,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    let rows = rows.unwrap().into_iter();
    rows.map(|row| (row.key.to_vec(), row.value.to_vec()))
        .collect()
}

#[test]
fn reads_and_the_commit_are_those_of_a_map_whatever_was_read_and_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = OptimisticStore::new(open(&folder));
    for seed in 0..300 {
        let random = SeededRandom::new(seed);
        let mut model = Model::new(fill(&store, &random));
        let transaction = store.begin_write().unwrap();
        for number in 0..150 {
            model.move_savepoints(transaction.as_ref(), &random);
            let step = random_step(&random);
            let before = transaction.mutation_count();
            let read = run(&step, transaction.as_ref());
            let was_written = transaction.mutation_count() != before;
            // A pop that finds nothing writes nothing.
            if !matches!(step, Step::Pop(_) | Step::Take(_)) {
                assert_eq!(was_written, is_write(&step), "seed {seed} step {number}");
            }
            let expected = apply(&step, &mut model.now);
            assert_eq!(read, expected, "seed {seed} step {number}");
        }
        now(transaction.commit()).unwrap();
        assert_eq!(all_rows(&store), model.now, "seed {seed}");
    }
}

/// Whether a step of one transaction must conflict with a write of another to `key`.
fn names(step: &Step, key: &[u8]) -> bool {
    matches!(step, Step::Conflict(begin, end) if begin.as_slice() <= key && key < end.as_slice())
}

fn is_serializable(step: &Step) -> bool {
    match step {
        Step::Get(_, isolation) => *isolation == Isolation::Serializable,
        Step::Range(query) | Step::Pop(query) => query.query().isolation == Isolation::Serializable,
        _ => false,
    }
}

#[test]
fn beside_another_writer_it_conflicts_or_does_just_what_it_was_asked_for() {
    let (mut conflicts, mut commits) = (0, 0);
    let folder = tempfile::tempdir().unwrap();
    let store = OptimisticStore::new(open(&folder));
    for seed in 0..3000 {
        let random = SeededRandom::new(seed);
        let alone = fill(&store, &random);
        let mut beside = alone.clone();
        let first = store.begin_write().unwrap();
        let set = match random.below(3) {
            0 => element_key(&random),
            _ => random_key(&random),
        };
        let value = random_value(&random);
        let second = store.begin_write().unwrap();
        second.set(&set, &value);
        now(second.commit()).unwrap();
        beside.insert(set.clone(), value);
        let after_second = beside.clone();
        // Undone reads conflict too.
        let mut must_conflict = false;
        let mut model = Model::new((alone, beside));
        for _ in 0..1 + random.below(12) {
            model.move_savepoints(first.as_ref(), &random);
            let (alone, beside) = &mut model.now;
            let mut step = random_step(&random);
            let read = run(&step, first.as_ref());
            assert_eq!(read, apply(&step, alone), "seed {seed}");
            must_conflict |= names(&step, &set);
            if is_serializable(&step) {
                must_conflict |= read != apply(&step, beside);
            } else if matches!(step, Step::Pop(_) | Step::Take(_)) {
                // It clears what it has read, whatever was added since.
                for (key, _) in read {
                    step = Step::Clear(key);
                    apply(&step, beside);
                }
            } else {
                apply(&step, beside);
            }
        }
        if first.mutation_count() == 0 {
            // Without a write nothing can conflict.
            continue;
        }
        match now(first.commit()) {
            Ok(()) => {
                commits += 1;
                assert!(!must_conflict, "seed {seed}");
                assert_eq!(all_rows(&store), model.now.1, "seed {seed}");
            }
            Err(StoreError::Conflict) => {
                conflicts += 1;
                assert_eq!(all_rows(&store), after_second, "seed {seed}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(conflicts > 300 && commits > 300, "{conflicts} {commits}");
}

/// Rows that never change, and a record of what it receives.
struct Recorder {
    rows: Vec<KeyValue>,
    given: Rc<RefCell<Vec<String>>>,
    reads: Rc<Cell<usize>>,
}

impl Recorder {
    fn of(keys: &[&'static str]) -> Self {
        let rows = keys.iter().map(|key| KeyValue {
            key: Bytes::from(*key),
            value: Bytes::new(),
        });
        Self {
            rows: rows.collect(),
            given: Rc::default(),
            reads: Rc::default(),
        }
    }

    fn note(&self, what: &str, keys: &[&[u8]]) {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| String::from_utf8_lossy(key))
            .collect();
        let line = format!("{what} {}", keys.join(" "));
        self.given.borrow_mut().push(line);
    }
}

impl BaseTransaction for Recorder {
    fn get<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Option<Bytes>> {
        self.reads.set(self.reads.get() + 1);
        let row = self.rows.iter().find(|row| row.key == key);
        StoreFuture::ready(Ok(row.map(|row| row.value.clone())))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        assert!(!query.reverse);
        self.reads.set(self.reads.get() + 1);
        let rows = self.rows.iter();
        let inside = rows.filter(|row| *row.key >= *query.begin && *row.key < *query.end);
        StoreFuture::ready(Ok(inside.take(query.limit).cloned().collect()))
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.note("set", &[key, value]);
    }

    fn clear(&self, key: &[u8]) {
        self.note("clear", &[key]);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.note("clear", &[begin, end]);
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.note("add", &[key, delta.to_string().as_bytes()]);
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.note("min", &[key, value.to_string().as_bytes()]);
    }

    fn append(&self, prefix: &[u8], _values: &[Bytes]) {
        self.note("append", &[prefix]);
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        self.note("conflict", &[begin, end]);
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        StoreFuture::ready(Ok(()))
    }
}

/// What the underlying transaction receives when `work` runs, if `keys` have rows.
fn handed_over(keys: &[&'static str], work: impl Fn(&dyn Transaction)) -> Vec<String> {
    let recorder = Recorder::of(keys);
    let given = Rc::clone(&recorder.given);
    let transaction = ReadYourWrites::new(Box::new(recorder));
    work(&transaction);
    assert_eq!(given.borrow().len(), 0, "nothing before the commit");
    now(Box::new(transaction).commit()).unwrap();
    given.take()
}

fn pop(transaction: &dyn Transaction, has_conflict: bool) {
    let rows = now(transaction.get_range(RangeQuery {
        begin: b"a",
        end: b"z",
        limit: 1,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    let key = rows.unwrap().remove(0).key;
    if has_conflict {
        transaction.add_read_conflict_range(b"a", &key_after(&key));
    }
    transaction.clear(&key);
    transaction.atomic_add(b"length", -1);
}

#[test]
fn pops_of_a_batch_are_one_conflict_one_clear_and_one_addition() {
    let given = handed_over(&["b", "c", "d", "e"], |transaction| {
        for _ in 0..3 {
            pop(transaction, true);
        }
    });
    assert_eq!(given, ["conflict a d\0", "clear b d\0", "add length -3"]);
}

#[test]
fn clears_without_a_conflict_between_them_stay_apart() {
    let given = handed_over(&["b", "c"], |transaction| {
        pop(transaction, false);
        pop(transaction, false);
    });
    assert_eq!(given, ["clear b", "clear c", "add length -2"]);
}

#[test]
fn clears_do_not_take_a_row_between_them_with_them() {
    let given = handed_over(&["b", "c", "d"], |transaction| {
        pop(transaction, true);
        transaction.add_read_conflict_range(b"a", b"z");
        transaction.clear(b"d");
    });
    assert_eq!(
        given,
        ["conflict a z", "clear b", "clear d", "add length -1"]
    );
}

#[test]
fn clears_do_not_take_what_was_not_read_between_them_with_them() {
    let given = handed_over(&["b"], |transaction| {
        transaction.add_read_conflict_range(b"a", b"z");
        transaction.clear(b"b");
        transaction.clear(b"d");
    });
    assert_eq!(given, ["conflict a z", "clear b", "clear d"]);
}

#[test]
fn writes_to_one_key_are_one() {
    let given = handed_over(&[], |transaction| {
        for number in 0..4 {
            transaction.set(b"set", number.to_string().as_bytes());
            transaction.atomic_add(b"sum", number);
            transaction.atomic_min(b"least", 7 - number as u64);
        }
        transaction.set(b"gone", b"");
        transaction.clear(b"gone");
    });
    assert_eq!(
        given,
        ["clear gone", "min least 4", "set set 3", "add sum 6"]
    );
}

#[test]
fn operations_of_two_kinds_on_one_key_keep_their_order() {
    let given = handed_over(&[], |transaction| {
        transaction.atomic_add(b"key", 1);
        transaction.atomic_min(b"key", 5);
        transaction.atomic_add(b"key", 2);
        transaction.atomic_add(b"key", 3);
    });
    assert_eq!(given, ["add key 1", "min key 5", "add key 5"]);
}

#[test]
fn an_element_that_was_put_and_popped_at_once_is_not_cleared_either() {
    let given = handed_over(&[], |transaction| {
        let section: (&[u8], &[u8]) = (b"a", b"z");
        now(transaction.get_range(RangeQuery {
            begin: section.0,
            end: section.1,
            limit: 1,
            reverse: false,
            isolation: Isolation::Snapshot,
        }))
        .unwrap();
        transaction.set(b"m", b"");
        assert!(!transaction.add_conflict_unless_own(section, (section.0, b"m\0")));
        transaction.clear(b"m");
        // Not of that kind.
        transaction.clear(b"n");
    });
    assert_eq!(given, ["clear n"]);
}

#[test]
fn a_key_that_was_read_in_a_range_is_not_read_again() {
    let recorder = Recorder::of(&["b"]);
    let (reads, given) = (Rc::clone(&recorder.reads), Rc::clone(&recorder.given));
    let transaction = ReadYourWrites::new(Box::new(recorder));
    now(transaction.get_range(RangeQuery {
        begin: b"a",
        end: b"c",
        limit: 2,
        reverse: false,
        isolation: Isolation::Snapshot,
    }))
    .unwrap();
    let value = |key: &[u8]| now(transaction.get(key, Isolation::Serializable)).unwrap();
    assert_eq!((value(b"a"), value(b"b")), (None, Some(Bytes::new())));
    assert_eq!(reads.get(), 1);
    assert_eq!(value(b"c"), None);
    assert_eq!(reads.get(), 2);
    // It conflicts on them all the same.
    transaction.set(b"d", b"");
    now(Box::new(transaction).commit()).unwrap();
    let conflicts = ["conflict a a\0", "conflict b b\0", "conflict c c\0"];
    assert_eq!(given.take()[..3], conflicts);
}

#[test]
fn a_range_that_begins_where_one_that_was_read_ends_is_read_with_what_follows() {
    const KEYS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let recorder = Recorder::of(&KEYS);
    let reads = Rc::clone(&recorder.reads);
    let transaction = ReadYourWrites::new(Box::new(recorder));
    let mut begin = b"a".to_vec();
    for key in KEYS {
        let query = RangeQuery {
            begin: &begin,
            end: b"z",
            limit: 1,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        let rows = now(transaction.get_range(query)).unwrap();
        assert_eq!(rows[0].key, key);
        begin = key_after(&rows[0].key);
    }
    // 1, 4 and 16 rows.
    assert_eq!(reads.get(), 3);
}

#[test]
fn what_was_only_read_hands_nothing_over() {
    let given = handed_over(&["b"], |transaction| {
        now(transaction.get(b"b", Isolation::Serializable)).unwrap();
    });
    assert!(given.is_empty(), "{given:?}");
}

#[test]
fn the_size_is_that_of_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = OptimisticStore::new(open(&folder));
    let transaction = store.begin_write().unwrap();
    for _ in 0..100 {
        transaction.atomic_add(b"counter", 1);
        transaction.set(b"key", &[0; 1000]);
        transaction.add_read_conflict_range(b"a", b"b");
    }
    let once = transaction.size_bytes();
    assert!((1000..1300).contains(&once), "{once}");
    transaction.clear_range(b"a", b"z");
    assert!(transaction.size_bytes() < 200);
}

/// Runs a transaction that puts an element into a queue and pops it, concurrently with another that
/// puts one there.
fn put_and_pop_beside_another(
    before: &[&str],
    prepare: impl Fn(&dyn Transaction),
) -> Result<(), StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let store = OptimisticStore::new(open(&folder));
    let transaction = store.begin_write().unwrap();
    for key in before {
        transaction.set(key.as_bytes(), b"");
    }
    now(transaction.commit()).unwrap();
    let all = |isolation| RangeQuery {
        begin: b"a",
        end: b"z",
        limit: 1,
        reverse: false,
        isolation,
    };
    let first = store.begin_write().unwrap();
    prepare(first.as_ref());
    // Like a push that looks for the last element.
    now(first.get_range(all(Isolation::Snapshot))).unwrap();
    first.set(b"m", b"");
    let popped = now(first.get_range(all(Isolation::Snapshot))).unwrap();
    let key = popped[0].key.clone();
    first.add_conflict_unless_own((b"a", b"z"), (b"a", &key_after(&key)));
    first.clear(&key);
    let second = store.begin_write().unwrap();
    second.set(b"b", b"");
    now(second.commit()).unwrap();
    now(first.commit())
}

#[test]
fn what_was_put_into_an_empty_queue_and_popped_conflicts_with_none() {
    put_and_pop_beside_another(&[], |_| {}).unwrap();
}

#[test]
fn what_others_have_put_there_before_conflicts_when_it_is_popped() {
    let outcome = put_and_pop_beside_another(&["d"], |_| {});
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
    // Even if this transaction has cleared it.
    let outcome = put_and_pop_beside_another(&["d"], |first| first.clear(b"d"));
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
}

#[test]
fn a_transaction_that_changes_several_keys_at_one_moment_conflicts_on_its_own_too() {
    let outcome = put_and_pop_beside_another(&[], |first| first.conflict_on_own_rows());
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
}

#[test]
fn what_is_popped_of_a_push_conflicts_unless_the_rest_is_popped_too() {
    let left_over = |first: &dyn Transaction| {
        first.set(b"n", b"");
    };
    let outcome = put_and_pop_beside_another(&[], left_over);
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
    let folder = tempfile::tempdir().unwrap();
    let store = OptimisticStore::new(open(&folder));
    let first = store.begin_write().unwrap();
    let section: (&[u8], &[u8]) = (b"a", b"z");
    now(first.get_range(RangeQuery {
        begin: section.0,
        end: section.1,
        limit: 1,
        reverse: false,
        isolation: Isolation::Snapshot,
    }))
    .unwrap();
    first.set(b"m", b"");
    first.set(b"n", b"");
    for key in [b"m", b"n"] {
        first.add_conflict_unless_own(section, (b"a", &key_after(key)));
        first.clear(key);
    }
    // Followed by another push.
    first.set(b"o", b"");
    let second = store.begin_write().unwrap();
    second.set(b"b", b"");
    now(second.commit()).unwrap();
    now(first.commit()).unwrap();
}

/// Puts elements into a section that was empty.
fn put(transaction: &dyn Transaction, keys: &[&[u8]]) {
    now(transaction.get_range(RangeQuery {
        begin: b"a",
        end: b"z",
        limit: 1,
        reverse: false,
        isolation: Isolation::Snapshot,
    }))
    .unwrap();
    for key in keys {
        transaction.set(key, b"");
    }
}

/// Takes an element that the transaction has put first into the section.
fn take(transaction: &dyn Transaction, key: &[u8]) {
    assert!(!transaction.add_conflict_unless_own((b"a", b"z"), (b"a", &key_after(key))));
    transaction.clear(key);
}

#[test]
fn an_element_that_is_left_again_after_a_rollback_conflicts() {
    let given = handed_over(&[], |transaction| {
        put(transaction, &[b"m", b"n"]);
        take(transaction, b"m");
        let savepoint = transaction.savepoint();
        // Nothing is left, so the first need not conflict either.
        take(transaction, b"n");
        transaction.rollback(savepoint);
    });
    assert_eq!(given, ["conflict a m\0", "set n "]);
}

#[test]
fn what_was_taken_and_undone_conflicts_unless_all_is_taken() {
    let undone = |transaction: &dyn Transaction| {
        put(transaction, &[b"m", b"n"]);
        let savepoint = transaction.savepoint();
        take(transaction, b"m");
        transaction.rollback(savepoint);
    };
    let given = handed_over(&[], undone);
    assert_eq!(given, ["conflict a m\0", "set m ", "set n "]);
    let given = handed_over(&[], |transaction| {
        undone(transaction);
        put(transaction, &[]);
        take(transaction, b"m");
        take(transaction, b"n");
        transaction.set(b"kept", b"");
    });
    assert_eq!(given, ["set kept "]);
}

#[test]
fn a_clear_is_needed_where_what_spared_it_was_undone() {
    let given = handed_over(&[], |transaction| {
        put(transaction, &[b"m"]);
        let savepoint = transaction.savepoint();
        take(transaction, b"m");
        transaction.rollback(savepoint);
        transaction.clear(b"c");
    });
    assert_eq!(given, ["clear c", "set m "]);
}
