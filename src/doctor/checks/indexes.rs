//! Entries that one index of a sorted set or task queue has and another has not.
//!
//! Each entry is looked up where it must be too, page by page, a page at one moment. So keys of
//! any size can be looked at, whoever changes them meanwhile.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::super::walk::{FoundKey, KeyPage};
use super::KeyCheck;
use crate::doctor::report::{Finding, Level, Line, Outcome, shown};
use crate::doctor::subject::{Answer, Subject, rows};
use crate::layout::{
    Id, MemberEntry, OrderRow, Section, TaskRegistry, TaskRow, TaskState, ValueType, successor,
};
use crate::limits::DOCTOR_READS_AT_ONCE;
use crate::store::{Isolation, KeyValue, ReadTransaction, StoreError, Transaction};

#[derive(Default)]
pub(super) struct Indexes {
    entries: u64,
    lost_scores: Finding,
    lost_places: Finding,
    stray_places: Finding,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A member without its row in the order of scores.
    LostScore,
    /// A task that stands nowhere.
    LostPlace,
    /// A place at which there is no task, or one that stands elsewhere.
    StrayPlace,
}

impl KeyCheck for Indexes {
    fn name(&self) -> &'static str {
        "indexes"
    }

    fn look<'c>(&'c mut self, subject: &'c Subject<'_>, page: &'c KeyPage) -> Answer<'c, ()> {
        Box::pin(async move {
            for key in &page.keys {
                let sections: &[Section] = match key.meta.value_type {
                    ValueType::List | ValueType::PriorityQueue => &[],
                    ValueType::SortedSet => &[Section::Members],
                    ValueType::TaskQueue => &[
                        Section::Tasks,
                        Section::TaskOrder,
                        Section::TaskDue,
                        Section::TaskDead,
                    ],
                };
                for section in sections {
                    self.look_at(subject, key, *section).await?;
                }
            }
            Ok(())
        })
    }

    fn line(&self) -> Line {
        Outcome::new(format!("{} entries looked up", self.entries))
            .finding(
                Level::Fail,
                &self.lost_scores,
                "members that the order of scores does not have",
                "ZREM and ZADD of these members put them right",
            )
            .finding(
                Level::Fail,
                &self.lost_places,
                "tasks that nobody would get",
                "TASK.GET shows them; TASK.CANCEL and TASK.ADD put them right",
            )
            .finding(
                Level::Fail,
                &self.stray_places,
                "places of tasks that are not there",
                "--deep --repair removes them",
            )
            .line(self.name())
    }
}

impl Indexes {
    async fn look_at(
        &mut self,
        subject: &Subject<'_>,
        key: &FoundKey,
        section: Section,
    ) -> Result<(), StoreError> {
        let data = key.meta.data;
        let range = subject.layout.section(data, section);
        let mut begin = range.begin;
        loop {
            let (page, faults) = subject
                .read(async |transaction: &dyn ReadTransaction| {
                    let isolation = Isolation::Snapshot;
                    let limit = DOCTOR_READS_AT_ONCE;
                    let page = rows(transaction, &begin, &range.end, limit, isolation).await?;
                    let registry = registry(subject, transaction, data, section).await?;
                    let looks = page.iter().map(|row| {
                        fault(
                            subject,
                            transaction,
                            (data, section, &registry),
                            row,
                            isolation,
                        )
                    });
                    let faults = try_join_all(looks).await?;
                    Ok((page, faults))
                })
                .await?;
            for (row, fault) in page.iter().zip(faults) {
                self.entries += 1;
                self.judge(subject, key, (section, row), fault).await?;
            }
            subject.progress.show("entries looked up", self.entries);
            match page.last() {
                Some(last) if page.len() >= DOCTOR_READS_AT_ONCE => begin = successor(&last.key),
                _ => return Ok(()),
            }
        }
    }

    async fn judge(
        &mut self,
        subject: &Subject<'_>,
        key: &FoundKey,
        (section, row): (Section, &KeyValue),
        fault: Fault,
    ) -> Result<(), StoreError> {
        let finding = match fault {
            Fault::None => return Ok(()),
            Fault::LostScore => &mut self.lost_scores,
            Fault::LostPlace => &mut self.lost_places,
            Fault::StrayPlace => &mut self.stray_places,
        };
        finding.add(|| {
            let name = subject.name(key.namespace, &key.name, Some(&key.meta));
            match (fault, subject.layout.read_task_key(key.meta.data, &row.key)) {
                (Fault::LostPlace, Ok(id)) => format!("{} of {name}", shown(&id)),
                _ => name,
            }
        });
        if fault != Fault::StrayPlace {
            return Ok(());
        }
        let data = key.meta.data;
        let is_repaired = subject
            .repair(async |transaction: &dyn Transaction| {
                let isolation = Isolation::Serializable;
                let Some(value) = transaction.get(&row.key, isolation).await? else {
                    return Ok(true);
                };
                let now = KeyValue {
                    key: row.key.clone(),
                    value,
                };
                let registry = registry(subject, transaction, data, section).await?;
                let place = (data, section, &registry);
                if self::fault(subject, transaction, place, &now, isolation).await? == fault {
                    transaction.clear(&row.key);
                }
                Ok(true)
            })
            .await?;
        if is_repaired {
            finding.count_repaired();
        }
        Ok(())
    }
}

/// What the queue knows of resources, where rows of the section cannot be read without.
async fn registry(
    subject: &Subject<'_>,
    transaction: &dyn ReadTransaction,
    data: Id,
    section: Section,
) -> Result<TaskRegistry, StoreError> {
    if section != Section::TaskOrder {
        return Ok(TaskRegistry::default());
    }
    // Things are only ever added to it.
    let row = subject.layout.task_registry_key(data);
    let value = transaction.get(&row, Isolation::Snapshot).await?;
    TaskRegistry::decode(value.as_ref())
}

/// Looks an entry up where it must be too. What cannot be read the count of rows tells of.
async fn fault(
    subject: &Subject<'_>,
    transaction: &dyn ReadTransaction,
    (data, section, registry): (Id, Section, &TaskRegistry),
    row: &KeyValue,
    isolation: Isolation,
) -> Result<Fault, StoreError> {
    let layout = &subject.layout;
    match section {
        Section::Members => {
            let (Ok((_, inline)), Ok(entry)) = (
                layout.read_member_key(data, &row.key),
                MemberEntry::decode(&row.value),
            ) else {
                return Ok(Fault::None);
            };
            let score_key = match (&inline, &entry.long) {
                (Some(member), _) => layout.score_key(data, entry.score, member, None),
                (None, Some(place)) => {
                    layout.score_key(data, entry.score, &place.prefix, Some(&place.label))
                }
                (None, None) => return Ok(Fault::LostScore),
            };
            let found = transaction.get(&score_key, isolation).await?;
            Ok(match found {
                Some(_) => Fault::None,
                None => Fault::LostScore,
            })
        }
        Section::Tasks => {
            let (Ok(id), Ok(task)) = (
                layout.read_task_key(data, &row.key),
                TaskRow::decode(&row.value),
            ) else {
                return Ok(Fault::None);
            };
            let place = transaction
                .get(&place_key(subject, data, &task), isolation)
                .await?;
            let names_it = place.is_some_and(|value| match task.state {
                TaskState::Ready => OrderRow::decode(task.amounts.len(), &value)
                    .is_ok_and(|order| order.id == id && order.amounts == task.amounts),
                _ => value == id,
            });
            Ok(if names_it {
                Fault::None
            } else {
                Fault::LostPlace
            })
        }
        _ => {
            let Some(id) = placed_id(subject, data, section, registry, row) else {
                return Ok(Fault::None);
            };
            let task = transaction
                .get(&layout.task_key(data, &id), isolation)
                .await?;
            let stands_here = match task.map(|value| TaskRow::decode(&value)) {
                None => false,
                Some(Ok(task)) => place_key(subject, data, &task) == row.key,
                Some(Err(_)) => true,
            };
            Ok(if stands_here {
                Fault::None
            } else {
                Fault::StrayPlace
            })
        }
    }
}

/// Where a task of its state stands.
fn place_key(subject: &Subject<'_>, data: Id, task: &TaskRow) -> Vec<u8> {
    let layout = &subject.layout;
    match task.state {
        TaskState::Ready => {
            let mut key = layout.task_order_prefix(data, task.class);
            key.extend_from_slice(&task.place.encode());
            key
        }
        TaskState::Leased | TaskState::Delayed => {
            layout.task_due_key(data, task.at_ms, &task.place)
        }
        TaskState::Dead => layout.task_dead_key(data, task.at_ms, &task.place),
    }
}

/// The task that a row by place names.
fn placed_id(
    subject: &Subject<'_>,
    data: Id,
    section: Section,
    registry: &TaskRegistry,
    row: &KeyValue,
) -> Option<Bytes> {
    if section != Section::TaskOrder {
        return Some(row.value.clone());
    }
    let class = subject.layout.read_task_order_class(data, &row.key).ok()?;
    let resources = registry.classes.get(class)?.mask.count_ones() as usize;
    Some(OrderRow::decode(resources, &row.value).ok()?.id)
}
