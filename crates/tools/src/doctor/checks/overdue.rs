//! Task queues whose leases or delays have ended or whose schedules are due, and hashes whose
//! fields have expired, without a timer for them.

use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{
    Answer, DoctorTarget, FoundKey, KeyCheck, KeyPage, OVERDUE_MS, PAGE_ROWS, rows,
};
use quoin_base::size::counted;
use quoin_data::keyspace::kind::TypeKind;
use quoin_data::taskqueue::timers::TIMER_STEP_MS;
use quoin_layout::{Id, KeyRange, Layout, Timers, ValueType, successor};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

/// Rows of deadlines that ended by a time, see `ValueKind::deadlines`.
type Deadlines = &'static [fn(&Layout, Id, i64) -> KeyRange];

/// The words for keys of a type that has deadlines.
struct Words {
    value_type: ValueType,
    name: &'static str,
    /// For 1, and for other numbers.
    keys: [&'static str; 2],
    overdue: [&'static str; 2],
    after_overdue: &'static str,
    without_timer: [&'static str; 2],
}

static OF_TASKS: Words = Words {
    value_type: ValueType::TaskQueue,
    name: "task queues",
    keys: ["task queue", "task queues"],
    overdue: ["has leases,", "have leases,"],
    after_overdue: "delays or schedules whose wait ended more than a minute ago: a running server \
                    handles them",
    without_timer: [
        "of them without a timer, so that only a TASK.TAKE puts its tasks back, and its schedules add none",
        "of them without a timer, so that only a TASK.TAKE puts their tasks back, and their schedules add none",
    ],
};

static OF_FIELDS: Words = Words {
    value_type: ValueType::Hash,
    name: "expiring fields",
    keys: [
        "hash with fields that may expire",
        "hashes with fields that may expire",
    ],
    overdue: ["has fields", "have fields"],
    after_overdue: "that expired more than a minute ago: a running server removes these",
    without_timer: [
        "of them without a timer, so that its fields stay, though hidden",
        "of them without a timer, so that their fields stay, though hidden",
    ],
};

pub(super) struct Overdue {
    words: &'static Words,
    keys: u64,
    overdue: u64,
    is_offline: bool,
    without_timer: Finding,
}

impl Overdue {
    fn new(words: &'static Words) -> Self {
        Self {
            words,
            keys: 0,
            overdue: 0,
            is_offline: false,
            without_timer: Finding::default(),
        }
    }

    /// The check of task queues.
    pub(super) fn of_queues() -> Self {
        Self::new(&OF_TASKS)
    }

    /// The check of hashes with fields that expire.
    pub(super) fn of_hashes() -> Self {
        Self::new(&OF_FIELDS)
    }
}

impl KeyCheck for Overdue {
    fn name(&self) -> &'static str {
        self.words.name
    }

    fn check<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            self.is_offline = target.is_offline;
            for key in &page.keys {
                let meta = &key.meta;
                let is_meant = meta.value_type == self.words.value_type
                    && (meta.fields_expire || meta.value_type != ValueType::Hash);
                let deadlines = meta.value_type.kind().deadlines;
                if is_meant && !deadlines.is_empty() {
                    self.keys += 1;
                    self.check_key(target, key, deadlines).await?;
                }
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut outcome = Outcome::new(counted(self.keys, self.words.keys[0], self.words.keys[1]));
        if self.overdue > 0 {
            let level = if self.is_offline {
                Level::Ok
            } else {
                Level::Warn
            };
            outcome.note(
                level,
                format!(
                    "{} {}",
                    counted(self.overdue, self.words.overdue[0], self.words.overdue[1]),
                    self.words.after_overdue
                ),
            );
        }
        outcome
            .finding(
                Level::Fail,
                &self.without_timer,
                self.words.without_timer,
                "--repair sets the timers",
            )
            .line(self.name())
    }
}

impl Overdue {
    async fn check_key(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
        deadlines: Deadlines,
    ) -> Result<(), StoreError> {
        let now_ms = target.clock.now_ms();
        let overdue = target
            .read(async |transaction: &dyn ReadTransaction| {
                if !is_overdue(target, transaction, key, (deadlines, now_ms)).await? {
                    return Ok(None);
                }
                has_timer(target, transaction, key, now_ms).await.map(Some)
            })
            .await?;
        let Some(has_timer) = overdue else {
            return Ok(());
        };
        self.overdue += 1;
        if has_timer {
            return Ok(());
        }
        self.without_timer
            .add(|| target.name(key.namespace, &key.name, Some(&key.meta)));
        // An extra timer does no harm, so nothing needs to be read again.
        let step = TIMER_STEP_MS;
        let at_ms = now_ms.saturating_add(step - 1) / step * step;
        let timers = Timers::of(key.meta.value_type);
        let timer = target
            .layout
            .timer_key(timers, at_ms, key.namespace, &key.name);
        let is_repaired = target
            .repair(async |transaction: &dyn Transaction| {
                transaction.set(&timer, b"");
                Ok(true)
            })
            .await?;
        if is_repaired {
            self.without_timer.count_repaired();
        }
        Ok(())
    }
}

async fn is_overdue(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    (deadlines, now_ms): (Deadlines, i64),
) -> Result<bool, StoreError> {
    let ended_ms = now_ms.saturating_sub(OVERDUE_MS);
    for deadlines in deadlines {
        let range = deadlines(&target.layout, key.meta.data, ended_ms);
        let isolation = Isolation::Snapshot;
        let first = rows(transaction, &range.begin, &range.end, 1, isolation).await?;
        if !first.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the queue has a timer that is due, or about to be.
async fn has_timer(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let layout = &target.layout;
    let timers = Timers::of(key.meta.value_type);
    let mut range = layout.timers_by(timers, now_ms.saturating_add(TIMER_STEP_MS));
    loop {
        let limit = PAGE_ROWS;
        let page = rows(
            transaction,
            &range.begin,
            &range.end,
            limit,
            Isolation::Snapshot,
        )
        .await?;
        let is_there = page.iter().any(|row| {
            layout
                .read_timer_key(timers, &row.key)
                .is_ok_and(|(namespace, name)| namespace == key.namespace && name == key.name)
        });
        if is_there {
            return Ok(true);
        }
        match page.last() {
            Some(last) if page.len() >= limit => range.begin = successor(&last.key),
            _ => return Ok(false),
        }
    }
}
