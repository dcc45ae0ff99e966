//! A unit of work: one attempt to execute commands in one transaction of the store, with everything that the attempt
//! changes. All of it can be rolled back to a savepoint.

pub mod context;
pub mod first_nodes;
pub mod flows;
pub mod host;
pub mod ids;
pub mod known;
pub mod latest_known;
pub mod read_window;
pub mod signals;
pub mod size_budget;
pub mod spans;
pub mod startup;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bytes::Bytes;

use quoin_base::limits::FULL_DISK_COMMAND_BYTES_MAX;
use quoin_base::stopwatch::BusyLimit;
use quoin_store::{Growth, ReadTransaction, Transaction};

use crate::rows::ranks::RankChangesSavepoint;
use crate::unit::context::{Environment, NamespaceCache, ReadContext, WriteContext};
use crate::unit::host::{Change, Origin};
use crate::unit::latest_known::Known;
use crate::unit::signals::{Signals, SignalsSavepoint};

/// Approximate number of bytes that counting a member in its block adds to a transaction.
const RANK_CHANGE_BYTES: usize = 300;

/// The state shared by commands that only read: a snapshot of the store and the time.
pub struct ReadUnit<'t> {
    transaction: &'t dyn ReadTransaction,
    /// The state shared by all transactions.
    pub environment: &'t Environment,
    /// The time at which the commands are executed, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    namespaces: NamespaceCache,
    /// On whose behalf the current command is executed.
    origin: Cell<Origin>,
    /// Keys read by clients that track them.
    reads: RefCell<Vec<Change>>,
    script_limit: Cell<Option<BusyLimit>>,
}

impl<'t> ReadUnit<'t> {
    /// A unit that reads `transaction`. Its time is now. `known` is what was known before `transaction` began.
    pub fn new(
        transaction: &'t dyn ReadTransaction,
        environment: &'t Environment,
        known: Option<Arc<Known>>,
    ) -> Self {
        Self {
            transaction,
            environment,
            now_ms: environment.clock.now_ms(),
            namespaces: NamespaceCache::knowing(environment.latest_known.unchanged(known)),
            origin: Cell::default(),
            reads: RefCell::default(),
            script_limit: Cell::default(),
        }
    }

    /// Sets a limit. A script that keeps the thread busy for longer is aborted, as if it had never started.
    pub fn limit_scripts(&self, limit: Option<BusyLimit>) {
        self.script_limit.set(limit);
    }

    /// Takes the reads of clients that track keys.
    pub fn take_reads(&self) -> Vec<Change> {
        self.reads.take()
    }

    /// The view for a command of a client of `database`.
    pub fn context(&self, database: u32) -> ReadContext<'_> {
        ReadContext::new(
            self.transaction,
            self.environment,
            &self.namespaces,
            self.now_ms,
            database,
        )
    }
}

/// A unit for commands that can use either a snapshot or a transaction.
#[derive(Clone, Copy)]
pub enum AnyUnit<'c> {
    /// A transaction.
    Write(&'c Unit<'c>),
    /// A snapshot.
    Read(&'c ReadUnit<'c>),
}

impl<'c> AnyUnit<'c> {
    /// The state shared by all transactions.
    pub fn environment(self) -> &'c Environment {
        match self {
            AnyUnit::Write(unit) => unit.environment(),
            AnyUnit::Read(unit) => unit.environment,
        }
    }

    /// The number of the client on whose behalf the current command is executed; 0 for none.
    pub fn client(self) -> u64 {
        match self {
            AnyUnit::Write(unit) => unit.signals.origin().client,
            AnyUnit::Read(unit) => unit.origin.get().client,
        }
    }

    /// Whether the store accepts more data. On a snapshot nothing is added.
    pub fn growth(self) -> Growth {
        match self {
            AnyUnit::Write(unit) => unit.transaction.growth(),
            AnyUnit::Read(_) => Growth::Free,
        }
    }

    /// The time limit for a script, if there is one.
    pub fn script_limit(self) -> Option<BusyLimit> {
        match self {
            AnyUnit::Write(unit) => unit.read.script_limit.get(),
            AnyUnit::Read(unit) => unit.script_limit.get(),
        }
    }

    /// Whether the keys that the current command reads are to be remembered.
    pub fn tracks(self) -> bool {
        match self {
            AnyUnit::Write(unit) => unit.signals.origin().tracks,
            AnyUnit::Read(unit) => unit.origin.get().tracks,
        }
    }

    /// Whether the current command may reach other servers on the store too.
    pub fn repeats(self) -> bool {
        match self {
            AnyUnit::Write(unit) => unit.signals.origin().repeats,
            AnyUnit::Read(unit) => unit.origin.get().repeats,
        }
    }

    /// Records that the current command has read a key to be remembered.
    pub fn note_read(self, key: Bytes) {
        match self {
            AnyUnit::Write(unit) => {
                let client = unit.signals.origin().client;
                unit.signals.change(Change::Read { key, client });
            }
            AnyUnit::Read(unit) => {
                let client = unit.origin.get().client;
                unit.reads.borrow_mut().push(Change::Read { key, client });
            }
        }
    }

    /// Sets the client on whose behalf the next command is executed.
    pub fn set_origin(self, origin: Origin) {
        match self {
            AnyUnit::Write(unit) => unit.signals.set_origin(origin),
            AnyUnit::Read(unit) => unit.origin.set(origin),
        }
    }

    /// The view for a client of `database`. In a transaction its reads may conflict.
    pub fn read_context(self, database: u32) -> ReadContext<'c> {
        self.context(database, true)
    }

    /// The view for a client of `database`. In a transaction its reads take part in conflict detection only if
    /// `is_strict`.
    pub fn context(self, database: u32, is_strict: bool) -> ReadContext<'c> {
        match self {
            AnyUnit::Write(unit) if is_strict => unit.read_context(database).strict(),
            AnyUnit::Write(unit) => unit.read_context(database),
            AnyUnit::Read(unit) => unit.context(database),
        }
    }
}

/// One attempt to execute commands in a transaction.
pub struct Unit<'t> {
    read: ReadUnit<'t>,
    /// The transaction.
    pub transaction: &'t dyn Transaction,
    /// What to tell others after the commit.
    pub signals: Signals,
    rollbacks: Cell<u64>,
}

/// A state of a unit of work that can be restored.
#[must_use]
pub struct Savepoint {
    transaction: quoin_store::Savepoint,
    signals: SignalsSavepoint,
    rank_changes: RankChangesSavepoint,
    grown_bytes: i64,
    bounds_growth: bool,
}

impl Savepoint {
    /// If set, the commands that follow may add only what a full disk allows, while the disk is full
    /// ([`Unit::has_outgrown`]).
    pub fn bounding_growth(self, bounds_growth: bool) -> Self {
        Self {
            bounds_growth,
            ..self
        }
    }
}

impl<'t> Unit<'t> {
    /// A new unit without changes.
    pub fn new(transaction: &'t dyn Transaction, environment: &'t Environment) -> Self {
        Self {
            read: ReadUnit::new(transaction, environment, environment.latest_known.get()),
            transaction,
            signals: Signals::default(),
            rollbacks: Cell::new(0),
        }
    }

    /// The state shared by all transactions.
    pub fn environment(&self) -> &'t Environment {
        self.read.environment
    }

    /// [`ReadUnit::limit_scripts`].
    pub fn limit_scripts(&self, limit: Option<BusyLimit>) {
        self.read.limit_scripts(limit);
    }

    /// The view for a command of a client of `database` that reads.
    pub fn read_context(&self, database: u32) -> ReadContext<'_> {
        self.read.context(database)
    }

    /// The view for a command of a client of `database` that writes.
    pub fn write_context(&self, database: u32) -> WriteContext<'_> {
        WriteContext::new(
            self.transaction,
            self.read.environment,
            &self.read.namespaces,
            &self.signals,
            self.read.now_ms,
            database,
        )
    }

    /// Creates a savepoint. Savepoints nest: the innermost ends first, with [`Self::rollback`] or [`Self::release`].
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            transaction: self.transaction.savepoint(),
            signals: self.signals.savepoint(),
            rank_changes: self.read.namespaces.rank_changes.savepoint(),
            grown_bytes: self.transaction.grown_bytes(),
            bounds_growth: false,
        }
    }

    /// Undoes everything since the savepoint. Reads since then can still cause conflicts, because the reply may depend
    /// on them.
    pub fn rollback(&self, savepoint: Savepoint) {
        let mutations = self.transaction.mutation_count();
        self.transaction.rollback(savepoint.transaction);
        if self.transaction.mutation_count() != mutations {
            self.rollbacks.set(self.rollbacks.get() + 1);
        }
        self.signals.rollback(savepoint.signals);
        let rank_changes = &self.read.namespaces.rank_changes;
        rank_changes.rollback(savepoint.rank_changes);
        self.read.namespaces.forget();
    }

    /// What is known at the end of the transaction, if it is news and nobody else writes. The caller must make
    /// [`Environment::latest_known`] forget the old values before the commit, and set these after it, before another
    /// transaction begins.
    pub fn take_known(&self) -> Option<Known> {
        match self.environment().capabilities.has_other_writers {
            false => self.read.namespaces.take_news(),
            true => None,
        }
    }

    /// Whether the changes since the savepoint are more than a full disk allows: they add data, and more than the small
    /// amount that a consumer records about what it takes. False if the savepoint does not bound growth.
    pub fn has_outgrown(&self, savepoint: &Savepoint) -> bool {
        if !savepoint.bounds_growth || self.transaction.growth() != Growth::DiskFull {
            return false;
        }
        let all = self.transaction.grown_bytes();
        let grown = all.saturating_sub(savepoint.grown_bytes);
        grown > FULL_DISK_COMMAND_BYTES_MAX || (grown > 0 && all > self.transaction.spare_bytes())
    }

    /// How often writes were undone.
    pub fn rollbacks(&self) -> u64 {
        self.rollbacks.get()
    }

    /// Keeps the changes since the savepoint.
    pub fn release(&self, savepoint: Savepoint) {
        self.transaction.release(savepoint.transaction);
    }

    /// Bytes of the transaction, including the messages that it will carry to other servers.
    pub fn size_bytes(&self) -> usize {
        let message_bytes = match self.environment().capabilities.has_other_writers {
            false => 0,
            true => self.signals.message_bytes(),
        };
        let counts = self.read.namespaces.rank_changes.uncounted();
        let count_bytes = counts.saturating_mul(RANK_CHANGE_BYTES);
        let other_bytes = message_bytes.saturating_add(count_bytes);
        self.transaction.size_bytes().saturating_add(other_bytes)
    }

    /// Whether the store would refuse the transaction because of its size.
    pub fn is_too_large(&self) -> bool {
        self.size_bytes() > self.environment().capabilities.transaction_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use quoin_data::command::call;
    use quoin_data::command::call::Mode;
    use quoin_data::keyspace::key::ClientKey;
    use quoin_data::unit::host::Change;
    use quoin_data::unit::signals::{Message, Ready};
    use quoin_data::unit::*;
    use quoin_engine::testing::{Bench, invocation, words_of};
    use quoin_resp::reply::Reply;

    fn on_both_stores(test: impl Fn(&Bench, &Unit<'_>)) {
        for bench in [Bench::embedded(), Bench::cluster_like()] {
            bench.run("RPUSH l a");
            let transaction = bench.store.begin_write().unwrap();
            let unit = Unit::new(&*transaction, bench.executor.environment());
            test(&bench, &unit);
        }
    }

    fn run(bench: &Bench, unit: &Unit<'_>, line: &str) -> Reply {
        let invocation = invocation(0, &words_of(line));
        bench
            .block_on(call(unit, &invocation, Mode::default()))
            .unwrap()
    }

    #[test]
    fn a_rollback_undoes_what_commands_wrote_and_nothing_before() {
        on_both_stores(|bench, unit| {
            run(bench, unit, "RPUSH l b");
            let savepoint = unit.savepoint();
            run(bench, unit, "RPUSH l c");
            run(bench, unit, "LPOP l");
            run(bench, unit, "RENAME l other");
            unit.rollback(savepoint);
            assert_eq!(run(bench, unit, "LLEN l"), Reply::Integer(2));
            assert_eq!(run(bench, unit, "EXISTS other"), Reply::Integer(0));
            assert_eq!(run(bench, unit, "LINDEX l 0"), Reply::Bulk("a".into()));
        });
    }

    #[test]
    fn a_rollback_undoes_a_change_of_what_databases_show() {
        on_both_stores(|bench, unit| {
            let savepoint = unit.savepoint();
            run(bench, unit, "SWAPDB 0 1");
            assert_eq!(run(bench, unit, "EXISTS l"), Reply::Integer(0));
            unit.rollback(savepoint);
            assert_eq!(run(bench, unit, "EXISTS l"), Reply::Integer(1));
        });
    }

    #[test]
    fn a_rollback_undoes_what_others_were_to_learn() {
        on_both_stores(|bench, unit| {
            run(bench, unit, "RPUSH first a");
            run(bench, unit, "PUBLISH channel first");
            let outer = unit.savepoint();
            run(bench, unit, "RPUSH second a");
            let inner = unit.savepoint();
            run(bench, unit, "PUBLISH channel second");
            run(bench, unit, "SWAPDB 0 1");
            unit.release(inner);
            unit.rollback(outer);
            let messages: Vec<Bytes> = unit
                .signals
                .take_messages()
                .into_iter()
                .map(|one| one.payload)
                .collect();
            assert_eq!(messages, ["first"]);
            let bytes = "channelfirst".len() + size_of::<Message>();
            assert_eq!(unit.signals.message_bytes(), bytes);
            let key = |key: &'static str| ClientKey {
                database: 0,
                key: Bytes::from_static(key.as_bytes()),
            };
            let changes = unit.signals.changes();
            let touched: Vec<_> = changes.iter().filter_map(Change::watched_key).collect();
            assert_eq!(touched, [&key("first")]);
            let ready = unit.signals.take_ready();
            assert!(
                matches!(&ready[..], [Ready::Key(ready, _)] if *ready == key("first")),
                "{ready:?}"
            );
            assert!(unit.signals.take_exchanged().is_empty());
        });
    }

    #[test]
    fn a_rollback_undoes_which_tasks_became_ready() {
        on_both_stores(|bench, unit| {
            run(bench, unit, "TASK.ADD q 1 first");
            let savepoint = unit.savepoint();
            run(bench, unit, "TASK.ADD q 1 second");
            run(bench, unit, "TASK.TAKE q COUNT 2");
            unit.rollback(savepoint);
            let ready = unit.signals.take_ready();
            let [Ready::Items { locations, .. }] = &ready[..] else {
                panic!("{ready:?}");
            };
            assert_eq!(locations.len(), 1);
            assert!(unit.signals.is_item_there(&locations[0]));
        });
    }

    #[test]
    fn rollbacks_that_undo_something_are_counted() {
        on_both_stores(|bench, unit| {
            let savepoint = unit.savepoint();
            run(bench, unit, "LLEN l");
            unit.rollback(savepoint);
            assert_eq!(unit.rollbacks(), 0);
            let savepoint = unit.savepoint();
            run(bench, unit, "RPUSH l b");
            unit.rollback(savepoint);
            assert_eq!(unit.rollbacks(), 1);
        });
    }
}
