//! The descriptor of task queues.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::keyspace::figures::StateFigures;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{
    ElementFlow, ElementRow, Entries, EntryCheck, EntryFault, GroupCounter, SectionKind,
    Serialization, ValueKind,
};
use crate::unit::context::ReadContext;
use quoin_layout::{
    Layout, OrderRow, Section, TaskCounter, TaskEnding, TaskKept, TaskRegistry, TaskRow,
    TaskSchedule, TaskState,
};
use quoin_rdb::{OwnType, elements_in_chunks};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::TaskQueue;
use super::dumping::restorable;
use super::states::{group_lease_row, place_row};

const READY: u8 = TaskState::Ready as u8;
const LEASED: u8 = TaskState::Leased as u8;
const DELAYED: u8 = TaskState::Delayed as u8;
const DEAD: u8 = TaskState::Dead as u8;
const WAITING: u8 = TaskState::Waiting as u8;
/// Leased tasks of groups. [`LEASED`] are the others.
const LEASED_OF_GROUP: u8 = 16;

/// The descriptor of task queues. The groups of elements are the states of tasks.
pub static KIND: ValueKind = ValueKind {
    name: "taskqueue",
    encoding: |_, _| Box::pin(async { Ok("indexed-rows") }),
    exists_when_empty: false,
    inline: None,
    is_waited_for: true,
    flow: ElementFlow::ByLength,
    sections: &[
        SectionKind::elements(Section::Tasks, |row| {
            let task = TaskRow::decode(row)?;
            let is_of_group = task.state == TaskState::Leased && task.notes.group.is_some();
            Ok(ElementRow {
                value: Some(task.payload),
                group: match is_of_group {
                    true => LEASED_OF_GROUP,
                    false => task.state as u8,
                },
                count: 1,
            })
        })
        .checked(EntryCheck::new(&LOST_PLACE, |entries| {
            let checks = entries.rows.iter().map(move |row| has_place(entries, row));
            Box::pin(try_join_all(checks))
        })),
        // The index above the order is much smaller than the order.
        SectionKind::index(Section::TaskOrder, &[READY])
            .measured()
            .checked(EntryCheck::new(&STRAY_PLACE, |entries| {
                Box::pin(are_of_ready_tasks(entries))
            })),
        SectionKind::index(Section::TaskDue, &[LEASED, LEASED_OF_GROUP, DELAYED]).checked(BY_ID),
        SectionKind::index(Section::TaskGroupLeases, &[LEASED_OF_GROUP]).checked(BY_ID),
        SectionKind::index(Section::TaskDead, &[DEAD]).checked(BY_ID),
        SectionKind::index(Section::TaskWaiting, &[WAITING]).checked(BY_ID),
        SectionKind::other(Section::TaskAwaited).checked(EntryCheck::new(&LOST_WAIT, |entries| {
            let checks = entries.rows.iter().map(move |row| is_awaited(entries, row));
            Box::pin(try_join_all(checks))
        })),
        SectionKind::other(Section::TaskDependants).checked(EntryCheck::new(
            &STRAY_WAIT,
            |entries| {
                let checks = entries.rows.iter().map(move |row| is_wait(entries, row));
                Box::pin(try_join_all(checks))
            },
        )),
        SectionKind::other(Section::TaskNodes),
        SectionKind::other(Section::TaskQueue),
        SectionKind::other(Section::TaskMaintenance),
        SectionKind::other(Section::TaskKept)
            .measured()
            .checked(EntryCheck::new(&LOST_END, |entries| {
                let checks = entries.rows.iter().map(move |row| has_end(entries, row));
                Box::pin(try_join_all(checks))
            })),
        SectionKind::other(Section::TaskSchedules)
            .measured()
            .checked(EntryCheck::new(&LOST_SCHEDULE, |entries| {
                let checks = entries.rows.iter().map(move |row| has_moment(entries, row));
                Box::pin(try_join_all(checks))
            })),
        SectionKind::other(Section::TaskEnds).checked(EntryCheck::new(&STRAY_END, |entries| {
            let checks = entries.rows.iter().map(move |row| is_end(entries, row));
            Box::pin(try_join_all(checks))
        })),
        SectionKind::CHUNKS,
    ],
    counters: &[
        GroupCounter {
            groups: &[LEASED, LEASED_OF_GROUP],
            key: |layout, data| layout.task_counter_key(data, TaskCounter::Leased),
        },
        GroupCounter {
            groups: &[DELAYED],
            key: |layout, data| layout.task_counter_key(data, TaskCounter::Delayed),
        },
        GroupCounter {
            groups: &[DEAD],
            key: |layout, data| layout.task_counter_key(data, TaskCounter::Dead),
        },
        GroupCounter {
            groups: &[WAITING],
            key: |layout, data| layout.task_counter_key(data, TaskCounter::Waiting),
        },
        GroupCounter {
            groups: &[LEASED_OF_GROUP],
            key: |layout, data| layout.task_counter_key(data, TaskCounter::LeasedOfGroups),
        },
    ],
    // Tasks are not popped from an end.
    queue: None,
    // The queue's previous timers name its old key.
    on_put: Some(|context, key| context.set_timer(key, context.now_ms)),
    slice: None,
    named_section: None,
    figures: Some(|context, key| Box::pin(figures(context, key))),
    deadlines: &[Layout::task_due_by, Layout::task_ends_by],
    serialization: Some(Serialization {
        reads: |payload| payload.own_type() == Some(OwnType::TaskQueue),
        dump: |context, key| {
            Box::pin(async move { TaskQueue::open(context, key).dump().await.map(Some) })
        },
        read: restorable,
    }),
    import: Some(Import {
        counting: b"TASK.LEN",
        reading: Reading::Iteration(b"TASK.SCANDUMP"),
        reading_whole: Some(b"DUMP"),
        element_words: 1,
        elements_in: elements_in_chunks,
        elements_are_bytes: false,
        adding: b"TASK.LOADCHUNK",
        adds_reversed: false,
        is_own: true,
        may_be_empty: true,
        payload: |mut words| words.pop().map(Bytes::from),
    }),
};

static LOST_PLACE: EntryFault = EntryFault {
    text: ["task that nobody would get", "tasks that nobody would get"],
    advice: "TASK.GET shows them; TASK.CANCEL and TASK.ADD put them right",
    is_removable: false,
    entry_name: Some(Layout::read_task_key),
};

static STRAY_PLACE: EntryFault = EntryFault {
    text: [
        "place of a task that does not exist",
        "places of tasks that do not exist",
    ],
    advice: "--deep --repair removes them",
    is_removable: true,
    entry_name: None,
};

static LOST_END: EntryFault = EntryFault {
    text: [
        "token or result that would be kept for ever",
        "tokens or results that would be kept for ever",
    ],
    advice: "--deep --repair removes them",
    is_removable: true,
    entry_name: None,
};

static LOST_SCHEDULE: EntryFault = EntryFault {
    text: [
        "schedule that would never add a task",
        "schedules that would never add a task",
    ],
    advice: "TASK.PAUSE and TASK.RESUME with SCHEDULE put them right",
    is_removable: false,
    entry_name: Some(Layout::read_task_schedule_key),
};

static STRAY_END: EntryFault = EntryFault {
    text: [
        "end of something that a task queue does not have",
        "ends of things that a task queue does not have",
    ],
    advice: "--deep --repair removes them",
    is_removable: true,
    entry_name: None,
};

static LOST_WAIT: EntryFault = EntryFault {
    text: [
        "wait that no acknowledgement ends",
        "waits that no acknowledgement ends",
    ],
    advice: "TASK.LIST with WAITING shows the tasks; TASK.REVIVE makes them ready",
    is_removable: false,
    entry_name: None,
};

static STRAY_WAIT: EntryFault = EntryFault {
    text: [
        "wait of a task that does not wait",
        "waits of tasks that do not wait",
    ],
    advice: "--deep --repair removes them",
    is_removable: true,
    entry_name: None,
};

/// Whether acknowledging what a task waits for would find the task.
async fn is_awaited(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let Ok((place, id)) = layout.read_task_awaited_key(data, &row.key) else {
        return Ok(true);
    };
    let other = layout.task_dependant_key(data, &id, place);
    let other = entries.transaction.get(&other, entries.isolation).await?;
    Ok(other.is_some())
}

/// Whether the task of a row of dependants does wait for the other task.
async fn is_wait(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let Ok(Some((id, place))) = layout.read_task_dependant_key(data, &row.key) else {
        return Ok(true);
    };
    let other = layout.task_awaited_key(data, place, &id);
    let other = entries.transaction.get(&other, entries.isolation).await?;
    Ok(other.is_some())
}

/// Whether a token or a result has its row by time.
async fn has_end(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let (Ok((kind, name)), Ok(kept)) = (
        layout.read_task_kept_key(data, &row.key),
        TaskKept::decode(&row.value),
    ) else {
        return Ok(true);
    };
    let end = layout.task_end_key(data, kept.until_ms, kind, &name);
    let end = entries.transaction.get(&end, entries.isolation).await?;
    Ok(end.is_some())
}

/// Whether a schedule has the row by its next moment.
async fn has_moment(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let (Ok(name), Ok(schedule)) = (
        layout.read_task_schedule_key(data, &row.key),
        TaskSchedule::decode(&row.value),
    ) else {
        return Ok(true);
    };
    if schedule.next_ms == 0 {
        return Ok(true);
    }
    let moment = layout.task_end_key(data, schedule.next_ms, TaskEnding::Schedule, &name);
    let moment = entries.transaction.get(&moment, entries.isolation).await?;
    Ok(moment.is_some())
}

/// Whether the thing in a row by end time exists and ends at that time.
async fn is_end(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let Ok((at_ms, kind, name)) = layout.read_task_end_key(data, &row.key) else {
        return Ok(true);
    };
    let ending = match kind {
        TaskEnding::Task => layout.task_key(data, &name),
        TaskEnding::Schedule => layout.task_schedule_key(data, &name),
        TaskEnding::Released => layout.task_released_key(data, &name),
        kind => layout.task_kept_key(data, kind, &name),
    };
    let Some(ending) = entries.transaction.get(&ending, entries.isolation).await? else {
        return Ok(false);
    };
    let ends_ms = match kind {
        TaskEnding::Task => TaskRow::decode(&ending).map(|task| task.notes.expires_ms),
        TaskEnding::Schedule => TaskSchedule::decode(&ending).map(|found| Some(found.next_ms)),
        TaskEnding::Released => Ok(Some(at_ms)),
        _ => TaskKept::decode(&ending).map(|kept| Some(kept.until_ms)),
    };
    Ok(ends_ms.map_or(true, |ends_ms| ends_ms == Some(at_ms)))
}

/// Checks rows by place whose value is a task's id.
const BY_ID: EntryCheck = EntryCheck::new(&STRAY_PLACE, |entries| {
    let checks = entries.rows.iter();
    let checks = checks.map(move |row| is_in_place(entries, row, row.value.clone()));
    Box::pin(try_join_all(checks))
});

/// Whether the row at a task's place has the task's id.
async fn has_place(entries: Entries<'_>, row: &KeyValue) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let (Ok(id), Ok(task)) = (
        layout.read_task_key(data, &row.key),
        TaskRow::decode(&row.value),
    ) else {
        return Ok(true);
    };
    let place = place_row(layout, data, &task);
    let place = entries.transaction.get(&place, entries.isolation).await?;
    if let Some(lease) = group_lease_row(layout, data, &task) {
        let lease = entries.transaction.get(&lease, entries.isolation).await?;
        if lease.is_none_or(|value| value != id) {
            return Ok(false);
        }
    }
    Ok(place.is_some_and(|value| match task.state {
        TaskState::Ready => OrderRow::decode(task.amounts.len(), &value)
            .is_ok_and(|order| order.id == id && order.amounts == task.amounts),
        _ => value == id,
    }))
}

/// Whether the tasks of rows of the order are ready, and at these places.
async fn are_of_ready_tasks(entries: Entries<'_>) -> Result<Vec<bool>, StoreError> {
    let Entries { layout, data, .. } = entries;
    // Entries of the registry are never removed.
    let registry = layout.task_registry_key(data);
    let registry = entries.transaction.get(&registry, Isolation::Snapshot);
    let registry = TaskRegistry::decode(registry.await?.as_ref())?;
    let id = |row: &KeyValue| {
        let class = layout.read_task_order_class(data, &row.key).ok()?;
        let resources = registry.classes.get(class)?.mask.count_ones() as usize;
        Some(OrderRow::decode(resources, &row.value).ok()?.id)
    };
    let checks = entries.rows.iter().map(async |row| match id(row) {
        Some(id) => is_in_place(entries, row, id).await,
        None => Ok(true),
    });
    try_join_all(checks).await
}

/// Whether this row is one by which its task is found.
async fn is_in_place(entries: Entries<'_>, row: &KeyValue, id: Bytes) -> Result<bool, StoreError> {
    let Entries { layout, data, .. } = entries;
    let task = layout.task_key(data, &id);
    let task = entries.transaction.get(&task, entries.isolation).await?;
    Ok(match task.map(|value| TaskRow::decode(&value)) {
        None => false,
        Some(Ok(task)) => {
            let lease = group_lease_row(layout, data, &task);
            place_row(layout, data, &task) == row.key || lease.is_some_and(|lease| lease == row.key)
        }
        Some(Err(_)) => true,
    })
}

/// Number of classes that metrics examine. A queue whose tasks need no resources has one.
const CLASSES_EXAMINED_MAX: usize = 16;

/// The ends of the classes of ready tasks, and the number of tasks in each state.
async fn figures(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Vec<StateFigures>, StoreError> {
    let length =
        |prefix_length, key: &Bytes| context.layout().task_priority_length(prefix_length, key);
    let queue = TaskQueue::open(context, key);
    let registry = queue.registry(Isolation::Snapshot).await?;
    let classes = (0_u32..).take(registry.classes.len().min(CLASSES_EXAMINED_MAX));
    let spans = classes.map(async |class| {
        let prefix = context.layout().task_order_prefix(key.data(), class);
        context.outer_parts(&prefix, &length).await
    });
    let spans = try_join_all(spans).await?.into_iter().flatten();
    let ready = spans.map(|(span, _)| span).collect();
    let counts = queue.counts().await?;
    let dead_since_ms = queue.dead_since_ms().await?;
    let figures = |state: TaskState, length, since_ms| StateFigures {
        state: state.name(),
        length,
        since_ms,
        spans: Vec::new(),
    };
    Ok(vec![
        StateFigures {
            spans: ready,
            ..figures(TaskState::Ready, counts.ready, None)
        },
        figures(TaskState::Leased, counts.leased, None),
        figures(TaskState::Delayed, counts.delayed, None),
        figures(TaskState::Dead, counts.dead, dead_since_ms),
        figures(TaskState::Waiting, counts.waiting, None),
    ])
}
