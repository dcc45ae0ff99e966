//! Adding tasks.

use bytes::Bytes;

use super::resources::{Classified, Classifying, classify};
use super::waits::Awaited;
use super::{ID_EXISTS, TaskQueue, TaskQueueMut, endings};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{
    TaskCounter, TaskEnding, TaskKept, TaskNotes, TaskNumber, TaskOptions, TaskPlace, TaskRegistry,
    TaskRow, TaskSpec, TaskState, TaskUnique, ValueType, decode_counter,
};
use quoin_store::{Isolation, StoreError};

/// A task to add.
#[derive(Debug, Clone)]
pub(super) struct NewTask {
    /// Its id. `None` if the server should choose one.
    pub(super) id: Option<Bytes>,
    /// The task waits until the tasks with these ids are acknowledged. Ids that the queue does not
    /// have count as acknowledged.
    pub(super) after: Vec<Bytes>,
    /// The `traceparent` that it carries to its consumers.
    pub(super) traceparent: Option<Bytes>,
    pub(super) spec: TaskSpec,
}

/// The outcome of an addition.
#[derive(Debug, Clone)]
pub(super) struct Added {
    /// The id of the task, or of the one that was already added with the same token.
    pub(super) id: Bytes,
    /// Whether a task was added.
    pub(super) is_new: bool,
}

/// Adds a task to a queue, unless one was already added with its token. Creates the queue if it
/// does not exist.
///
/// Concurrent additions conflict only if they have the same id or token, or both add a resource or
/// a class.
///
/// # Errors
/// `Text` if a task with this id exists, or if the queue has too many resources or is full.
/// `WrongType`.
pub(super) async fn add(
    context: &WriteContext<'_>,
    name: &Bytes,
    task: &NewTask,
) -> Result<Added, CommandError> {
    let found = context.find(name, ValueType::TaskQueue).await?;
    let adding = match Adding::begin(context, found.as_ref(), task).await? {
        Begun::Known(id) => return Ok(Added { id, is_new: false }),
        Begun::New(adding) => adding,
    };
    let mut key = match found {
        Some(key) => {
            context.notify_if_reborn(&key, name).await?;
            key
        }
        None => context.create(name, ValueType::TaskQueue, None).await?,
    };
    adding.finish(context, &mut key, task).await
}

/// [`add`] to an existing queue.
///
/// # Errors
/// Those of [`add`]. After an error nothing was written, except that a full queue that drops tasks
/// may have dropped some.
pub(super) async fn add_to(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    task: &NewTask,
) -> Result<Added, CommandError> {
    match Adding::begin(context, Some(key), task).await? {
        Begun::Known(id) => Ok(Added { id, is_new: false }),
        Begun::New(adding) => adding.finish(context, key, task).await,
    }
}

/// Whether a task should be added.
enum Begun {
    /// It was added before, with this id.
    Known(Bytes),
    New(Box<Adding>),
}

/// An addition that passed all checks. Nothing is written yet.
struct Adding {
    options: TaskOptions,
    classifying: Classifying,
    /// Whether tasks already wait for a task with this id.
    is_awaited: bool,
}

impl Adding {
    /// `key`: the queue if it exists.
    async fn begin(
        context: &WriteContext<'_>,
        key: Option<&OpenKey>,
        task: &NewTask,
    ) -> Result<Begun, CommandError> {
        let queue = key.map(|key| TaskQueue::open(context, key));
        let registry = match &queue {
            Some(queue) => queue.registry(context.relaxed()).await?,
            None => TaskRegistry::default(),
        };
        if let (Some(queue), Some(unique)) = (&queue, &task.spec.unique) {
            let kept = queue.kept(TaskEnding::Unique, &unique.token, Isolation::Serializable);
            if let Some(kept) = kept.await?.filter(|kept| kept.until_ms > context.now_ms) {
                return Ok(Begun::Known(kept.value));
            }
        }
        let options = registry.options.clone();
        let has_waits = registry.has_waits;
        let classifying = classify(registry, &task.spec.needs)?
            .noting(task.spec.group.is_some(), !task.after.is_empty());
        if let (Some(queue), Some(id)) = (&queue, &task.id)
            && queue.row(id, Isolation::Serializable).await?.is_some()
        {
            return Err(ID_EXISTS);
        }
        let awaited = match (&queue, &task.id) {
            (Some(queue), Some(id)) if has_waits => queue.awaited(id).await?,
            _ => Awaited::No,
        };
        if awaited == Awaited::Released {
            return Err(ID_EXISTS);
        }
        Ok(Begun::New(Box::new(Self {
            options,
            classifying,
            is_awaited: awaited == Awaited::Yes,
        })))
    }

    async fn finish(
        self,
        context: &WriteContext<'_>,
        key: &mut OpenKey,
        task: &NewTask,
    ) -> Result<Added, CommandError> {
        let Self {
            options,
            classifying,
            is_awaited,
        } = self;
        let spec = &task.spec;
        let queue = TaskQueueMut::open(context, key);
        queue.make_room(&options, spec.group.as_ref()).await?;
        let awaited = queue.known(&task.after).await?;
        if is_awaited && !awaited.is_empty() {
            // So no two tasks wait for each other.
            return Err(CommandError::text(
                "ERR task cannot wait for others, as others wait for its id",
            ));
        }
        let classified = queue.register(classifying).await?;
        let place = queue.next_place(spec.priority).await?;
        let id = match &task.id {
            Some(id) => id.clone(),
            // The random part cannot be guessed, so an id that a client has chosen does not collide.
            None => {
                let random = context.environment.random.next_u64();
                Bytes::from(format!("{}-{random:016x}", place.index))
            }
        };
        let is_delayed = spec.delay_ms > 0;
        let default = |number| options.number(number);
        let ttl_ms = spec.ttl_ms.unwrap_or_else(|| default(TaskNumber::TtlMs));
        let tries_max = { spec.tries_max }.unwrap_or_else(|| default(TaskNumber::TriesMax));
        let row = TaskRow {
            state: match is_delayed {
                _ if !awaited.is_empty() => TaskState::Waiting,
                true => TaskState::Delayed,
                false => TaskState::Ready,
            },
            place,
            class: classified.class,
            mask: classified.mask,
            amounts: classified.amounts,
            tries: 0,
            tries_max,
            // Without a delay it is ready now.
            at_ms: context.now_ms.saturating_add(spec.delay_ms),
            token: 0,
            notes: TaskNotes {
                expires_ms: (ttl_ms > 0).then(|| context.now_ms.saturating_add(ttl_ms)),
                group: spec.group.clone(),
                is_awaited,
                traceparent: task.traceparent.clone(),
                ..TaskNotes::default()
            },
            payload: context.store_value(key.data(), &spec.payload).into(),
        };
        queue.enter(&id, &row).await?;
        queue.wait_for(&id, &row, &awaited).await?;
        queue.set_end(&id, &row);
        queue.show_addition(&id, &row);
        context.count_change(key, 1);
        if let Some(TaskUnique { token, window_ms }) = &spec.unique {
            let kept = TaskKept {
                until_ms: context.now_ms.saturating_add(*window_ms),
                value: id.clone(),
            };
            endings::remember(context, key, TaskEnding::Unique, token, &kept).await?;
        }
        Ok(Added { id, is_new: true })
    }
}

impl TaskQueueMut<'_, '_> {
    /// The place of a task that is added now, after all others of its priority.
    pub(super) async fn next_place(&self, priority: f64) -> Result<TaskPlace, StoreError> {
        let context = self.context;
        let layout = context.layout();
        let added_row = layout.task_counter_key(self.key.data(), TaskCounter::Added);
        let added = context.transaction.get(&added_row, context.relaxed());
        let index = decode_counter(added.await?.as_ref())?;
        context.transaction.atomic_add(&added_row, 1);
        Ok(TaskPlace {
            priority,
            index,
            random: context.environment.position_random(),
        })
    }

    /// Writes a changed registry. Conflicts with other changes of it.
    pub(super) async fn register(
        &self,
        classifying: Classifying,
    ) -> Result<Classified, StoreError> {
        if classifying.is_new {
            // This read makes concurrent changes conflict.
            self.registry(Isolation::Serializable).await?;
            let row = self.context.layout().task_registry_key(self.key.data());
            self.context
                .transaction
                .set(&row, &classifying.registry.encode());
        }
        Ok(classifying.classified)
    }
}
