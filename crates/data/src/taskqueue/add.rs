//! Adding tasks.

use bytes::Bytes;

use super::resources::{Amounts, Classified, Classifying, classify};
use super::{TaskQueue, TaskQueueMut};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use quoin_layout::{
    TaskCounter, TaskNotes, TaskPlace, TaskRegistry, TaskRow, TaskState, ValueType, decode_counter,
};
use quoin_store::{Isolation, StoreError};

/// The error of a task whose id the queue has.
pub(super) const ID_EXISTS: CommandError = CommandError::text("EXISTS Task id already exists");

/// A task to be added.
#[derive(Debug, Clone)]
pub(super) struct NewTask {
    /// Its id; `None` if the server is to choose one.
    pub(super) id: Option<Bytes>,
    /// Lower ones come first; not NaN.
    pub(super) priority: f64,
    /// Positive, finite amounts of distinct resources.
    pub(super) needs: Amounts,
    /// How long until it is ready.
    pub(super) delay_ms: i64,
    /// How often it may be taken with a lease before it is dead; 0 means no limit.
    pub(super) tries_max: i64,
    pub(super) payload: Bytes,
}

/// Adds a task to a queue and returns its id. Creates the queue if it does not exist.
///
/// Concurrent additions conflict only if they have the same id or both add a resource or a class.
///
/// # Errors
/// `Text` if there is a task with this id, or if the queue has too many resources; `WrongType`.
pub(super) async fn add(
    context: &WriteContext<'_>,
    name: &Bytes,
    task: &NewTask,
) -> Result<Bytes, CommandError> {
    let found = context.find(name, ValueType::TaskQueue).await?;
    let registry = match &found {
        Some(key) => {
            TaskQueue::open(context, key)
                .registry(context.relaxed())
                .await?
        }
        None => TaskRegistry::default(),
    };
    let classifying = classify(registry, &task.needs)?;
    if let (Some(key), Some(id)) = (&found, &task.id)
        && TaskQueue::open(context, key)
            .row(id, Isolation::Serializable)
            .await?
            .is_some()
    {
        return Err(ID_EXISTS);
    }
    let key = match found {
        Some(key) => {
            context.notify_if_reborn(&key, name).await?;
            key
        }
        None => context.create(name, ValueType::TaskQueue, None).await?,
    };
    let queue = TaskQueueMut::open(context, &key);
    let classified = queue.register(classifying).await?;
    let place = queue.next_place(task.priority).await?;
    let id = match &task.id {
        Some(id) => id.clone(),
        // The random part cannot be guessed, so an id that a client has chosen does not collide.
        None => {
            let random = context.environment.random.next_u64();
            Bytes::from(format!("{}-{random:016x}", place.index))
        }
    };
    let is_delayed = task.delay_ms > 0;
    let row = TaskRow {
        state: if is_delayed {
            TaskState::Delayed
        } else {
            TaskState::Ready
        },
        place,
        class: classified.class,
        mask: classified.mask,
        amounts: classified.amounts,
        tries: 0,
        tries_max: task.tries_max,
        // Without a delay it is ready now.
        at_ms: context.now_ms.saturating_add(task.delay_ms),
        token: 0,
        notes: TaskNotes::default(),
        payload: context.store_value(key.data(), &task.payload).into(),
    };
    queue.enter(&id, &row).await?;
    context.count_change(&key, 1);
    Ok(id)
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

    /// Writes a registry that was changed. Conflicts with other changes of it.
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
