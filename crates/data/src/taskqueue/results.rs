//! Results of tasks: TASK.ACK with RESULT keeps them for a time, and clients wait for them with TASK.RESULT.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use super::{TaskQueue, endings};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use crate::unit::signals::{Offer, Wants};
use quoin_layout::{TaskEnding, TaskKept, ValueType};
use quoin_store::StoreError;

/// A result to keep.
#[derive(Debug)]
pub(super) struct NewResult {
    pub(super) value: Bytes,
    pub(super) keep_ms: i64,
}

/// The result of the task with this id. A client waits for it, and an acknowledgement offers it.
#[derive(Debug, PartialEq)]
pub(super) struct ResultOf(pub(super) Bytes);

fn result_in(value: &dyn Any) -> Option<&ResultOf> {
    value.downcast_ref()
}

impl Offer for ResultOf {
    fn is_same(&self, other: &dyn Offer) -> bool {
        result_in(other) == Some(self)
    }
}

impl Wants for ResultOf {
    fn accepts(&self, offer: &dyn Offer) -> bool {
        result_in(offer) == Some(self)
    }

    fn is_same(&self, other: &dyn Wants) -> bool {
        result_in(other) == Some(self)
    }
}

/// Keeps the result of a task that was acknowledged, and offers it to the clients that wait for it.
pub(super) async fn keep(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    id: &Bytes,
    result: NewResult,
) -> Result<(), StoreError> {
    let kept = TaskKept {
        until_ms: context.now_ms.saturating_add(result.keep_ms),
        value: result.value,
    };
    endings::remember(context, key, TaskEnding::Result, id, &kept).await?;
    if let Some(client_key) = key.client_key() {
        let row = context
            .layout()
            .task_kept_key(key.data(), TaskEnding::Result, id);
        let offer = Arc::new(ResultOf(id.clone()));
        let value_type = ValueType::TaskQueue;
        context
            .signals
            .item_ready(client_key, value_type, offer, row.into());
    }
    Ok(())
}

impl TaskQueue<'_, '_> {
    /// The result of a task, if it is kept.
    pub(super) async fn result(&self, id: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let kept = self
            .kept(TaskEnding::Result, id, self.context.isolation)
            .await?;
        let kept = kept.filter(|kept| kept.until_ms > self.context.now_ms);
        Ok(kept.map(|kept| kept.value))
    }
}
