//! Task queues whose leases or delays have ended without anybody having been told to look.

use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{
    Answer, DoctorTarget, FoundKey, KeyCheck, KeyPage, OVERDUE_MS, PAGE_ROWS, rows,
};
use quoin_base::size::counted;
use quoin_data::keyspace::kind::TypeKind;
use quoin_data::taskqueue::timers::TIMER_STEP_MS;
use quoin_layout::{Id, KeyRange, Layout, successor};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

/// Rows of deadlines that ended by a time, see `ValueKind::deadlines`.
type Deadlines = fn(&Layout, Id, i64) -> KeyRange;

#[derive(Default)]
pub(super) struct Tasks {
    queues: u64,
    overdue: u64,
    is_offline: bool,
    without_timer: Finding,
}

impl KeyCheck for Tasks {
    fn name(&self) -> &'static str {
        "task queues"
    }

    fn look<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            self.is_offline = target.is_offline;
            for key in &page.keys {
                if let Some(deadlines) = key.meta.value_type.kind().deadlines {
                    self.queues += 1;
                    self.look_at(target, key, deadlines).await?;
                }
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut outcome = Outcome::new(counted(self.queues, "task queue", "task queues"));
        if self.overdue > 0 {
            let level = if self.is_offline {
                Level::Ok
            } else {
                Level::Warn
            };
            outcome.note(
                level,
                format!(
                    "{} or delays that ended more than a minute ago: a running server puts these \
                     tasks back",
                    counted(self.overdue, "has leases", "have leases")
                ),
            );
        }
        outcome
            .finding(
                Level::Fail,
                &self.without_timer,
                [
                    "of them without an alarm, so that only a TASK.TAKE puts its tasks back",
                    "of them without an alarm, so that only a TASK.TAKE puts their tasks back",
                ],
                "--repair sets the alarms",
            )
            .line(self.name())
    }
}

impl Tasks {
    async fn look_at(
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
        // One timer too many does no harm, so nothing needs to be read again.
        let step = TIMER_STEP_MS;
        let at_ms = now_ms.saturating_add(step - 1) / step * step;
        let timer = target.layout.timer_key(at_ms, key.namespace, &key.name);
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
    let range = deadlines(&target.layout, key.meta.data, ended_ms);
    let first = rows(
        transaction,
        &range.begin,
        &range.end,
        1,
        Isolation::Snapshot,
    )
    .await?;
    Ok(!first.is_empty())
}

/// Whether one of the timers that are due, or about to be, is the queue's.
async fn has_timer(
    target: &DoctorTarget<'_>,
    transaction: &dyn ReadTransaction,
    key: &FoundKey,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let layout = &target.layout;
    let mut range = layout.timers_by(now_ms.saturating_add(TIMER_STEP_MS));
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
                .read_timer_key(&row.key)
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
