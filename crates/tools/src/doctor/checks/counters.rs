//! Counters of keys against what the keys have: every row is looked at.

use futures_util::future::try_join_all;

use super::super::scan::{FoundKey, KeyPage};
use super::counts::{self, Wrong};
use super::key_check::KeyCheck;
use crate::doctor::report::{Finding, Level, Line, Outcome};
use crate::doctor::target::{Answer, DoctorTarget};
use quoin_base::size::counted;
use quoin_store::{Isolation, ReadTransaction, StoreError};

/// Keys whose elements it counts at once.
const KEYS_AT_ONCE: usize = 16;

#[derive(Default)]
pub(super) struct Counters {
    rows: u64,
    /// Too large to be counted at one moment.
    uncounted: u64,
    lengths: Finding,
    task_counters: Finding,
    indexes: Finding,
    chunks: Finding,
    foreign_rows: Finding,
    unreadable: Finding,
}

impl KeyCheck for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn look<'c>(&'c mut self, target: &'c DoctorTarget<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            for some in page.keys.chunks(KEYS_AT_ONCE) {
                let counts = some.iter().map(|key| count(target, key));
                for (key, counted) in some.iter().zip(try_join_all(counts).await?) {
                    match counted {
                        Counted::Done(wrong, rows) => {
                            self.rows += rows;
                            self.judge(target, key, wrong).await?;
                        }
                        Counted::Gone => {}
                        Counted::TooLarge => self.uncounted += 1,
                    }
                }
                target.progress.show("rows counted", self.rows);
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        let mut outcome = Outcome::new(format!("{} counted", counted(self.rows, "row", "rows")));
        if self.uncounted > 0 {
            outcome.note(
                Level::Ok,
                format!(
                    "{} too large to be counted at one moment, and not counted",
                    counted(self.uncounted, "key is", "keys are")
                ),
            );
        }
        let recount = "--deep --repair counts them anew";
        outcome
            .finding(
                Level::Fail,
                &self.lengths,
                ["key whose length is not the number of its elements or bytes", "keys whose length is not the number of their elements or bytes"],
                recount,
            )
            .finding(
                Level::Fail,
                &self.task_counters,
                ["task queue that counts its leased, delayed or dead tasks wrong", "task queues that count their leased, delayed or dead tasks wrong"],
                recount,
            )
            .finding(
                Level::Fail,
                &self.indexes,
                ["sorted set or task queue with entries that one index has and another has not", "sorted sets or task queues with entries that one index has and another has not"],
                "see the line of indexes",
            )
            .finding(
                Level::Fail,
                &self.chunks,
                ["key with parts of long values that belong to no value, or are missing", "keys with parts of long values that belong to no value, or are missing"],
                "reading a value whose parts are missing answers an error; tell the authors of \
                 Quoin",
            )
            .finding(
                Level::Warn,
                &self.foreign_rows,
                ["key with rows that its type does not have", "keys with rows that their type does not have"],
                "they take room and nothing else: DEL of the key removes them too",
            )
            .finding(
                Level::Fail,
                &self.unreadable,
                ["key with rows that cannot be read", "keys with rows that cannot be read"],
                "commands that meet them answer an error; tell the authors of Quoin",
            )
            .line(self.name())
    }
}

enum Counted {
    Done(Wrong, u64),
    Gone,
    TooLarge,
}

/// Counts, at one moment.
async fn count(target: &DoctorTarget<'_>, key: &FoundKey) -> Result<Counted, StoreError> {
    let counted = target
        .read_much(async |transaction: &dyn ReadTransaction| {
            counts::count(target, transaction, key, Isolation::Snapshot, u64::MAX).await
        })
        .await;
    match counted {
        Ok(Some(Some(counts))) => Ok(Counted::Done(counts.wrong(), counts.row_count())),
        Ok(Some(None)) => Ok(Counted::Gone),
        Ok(None) => Ok(Counted::TooLarge),
        Err(StoreError::Corrupt(_)) => {
            let wrong = Wrong {
                unreadable: true,
                ..Wrong::default()
            };
            Ok(Counted::Done(wrong, 0))
        }
        Err(error) => Err(error),
    }
}

impl Counters {
    async fn judge(
        &mut self,
        target: &DoctorTarget<'_>,
        key: &FoundKey,
        wrong: Wrong,
    ) -> Result<(), StoreError> {
        if wrong == Wrong::default() {
            return Ok(());
        }
        let is_repaired =
            (wrong.length || wrong.group_counters) && counts::repair(target, key).await?;
        let name = || target.name(key.namespace, &key.name, Some(&key.meta));
        for (is_wrong, finding) in [
            (wrong.length, &mut self.lengths),
            (wrong.group_counters, &mut self.task_counters),
        ] {
            if is_wrong {
                finding.add(name);
                if is_repaired {
                    finding.count_repaired();
                }
            }
        }
        for (is_wrong, finding) in [
            (wrong.indexes || wrong.twins, &mut self.indexes),
            (wrong.chunks, &mut self.chunks),
            (wrong.foreign_rows, &mut self.foreign_rows),
            (wrong.unreadable, &mut self.unreadable),
        ] {
            if is_wrong {
                finding.add(name);
            }
        }
        Ok(())
    }
}
