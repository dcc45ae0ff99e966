//! Adding tasks.

use std::sync::Arc;

use bytes::Bytes;

use super::{Amounts, classes};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{TaskCounter, TaskPlace, TaskRegistry, TaskRow, TaskState, ValueType};
use quoin_store::Isolation;

/// A task to be added.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its id; made up where it is `None`.
    pub id: Option<Bytes>,
    /// The lower the sooner; not NaN.
    pub priority: f64,
    /// What it needs: positive, finite amounts of distinct resources.
    pub needs: Amounts,
    /// How long it is to wait before it is ready.
    pub delay_ms: i64,
    /// How often it may be taken with a lease before it is dead; 0 is without limit.
    pub tries_max: i64,
    /// What it is.
    pub payload: Bytes,
}

impl WriteContext<'_> {
    /// Adds a task to a queue, which is made where there is none, and answers the task's id.
    ///
    /// Concurrent additions do not conflict, unless they name the same id or are the first to
    /// name a resource.
    ///
    /// # Errors
    /// `Text` where the id is there already, or where the queue knows too many resources;
    /// `WrongType`.
    pub async fn task_add(&self, name: &Bytes, task: &NewTask) -> Result<Bytes, CommandError> {
        let found = self.find(name, ValueType::TaskQueue).await?;
        let registry = match &found {
            Some(key) => self.task_registry(key, self.relaxed()).await?,
            None => TaskRegistry::default(),
        };
        let classifying = classes::classify(registry, &task.needs)?;
        if let (Some(key), Some(id)) = (&found, &task.id)
            && self
                .task_row(key, id, Isolation::Serializable)
                .await?
                .is_some()
        {
            return Err(CommandError::text("EXISTS Task id already exists"));
        }
        let key = match found {
            Some(key) => {
                self.notify_if_reborn(&key, name).await?;
                key
            }
            None => self.create(name, ValueType::TaskQueue, None).await?,
        };
        let classified = self.task_register(&key, classifying).await?;
        let added_row = self
            .layout()
            .task_counter_key(key.data(), TaskCounter::Added);
        let index = quoin_layout::decode_counter(
            self.transaction
                .get(&added_row, self.relaxed())
                .await?
                .as_ref(),
        )?;
        self.transaction.atomic_add(&added_row, 1);
        let id = match &task.id {
            Some(id) => id.clone(),
            // Nobody guesses the random part, so no id that a client makes up is in its way.
            None => {
                let random = self.environment.random.next_u64();
                Bytes::from(format!("{index}-{random:016x}"))
            }
        };
        let is_delayed = task.delay_ms > 0;
        let row = TaskRow {
            state: if is_delayed {
                TaskState::Delayed
            } else {
                TaskState::Ready
            },
            place: TaskPlace {
                priority: task.priority,
                index,
                random: self.environment.position_random(),
            },
            class: classified.class,
            mask: classified.mask,
            amounts: classified.amounts,
            tries: 0,
            tries_max: task.tries_max,
            at_ms: if is_delayed {
                self.now_ms.saturating_add(task.delay_ms)
            } else {
                0
            },
            token: 0,
            payload: self.store_value(key.data(), &task.payload).into(),
        };
        self.task_enter(&key, &id, &row).await?;
        self.count_change(&key, 1);
        Ok(id)
    }

    /// Offers a task that has become ready to the clients that wait. `place` is its row in the
    /// order.
    pub(super) async fn offer(
        &self,
        key: &OpenKey,
        row: &TaskRow,
        place: Bytes,
    ) -> Result<(), quoin_store::StoreError> {
        if let Some(client_key) = key.client_key() {
            let registry = self.task_registry(key, self.relaxed()).await?;
            let needs = classes::named(&registry, row.mask, &row.amounts);
            let value_type = key.meta.value_type;
            let offer = Arc::new(needs);
            self.signals
                .item_ready(client_key, value_type, offer, place);
        }
        Ok(())
    }
}
