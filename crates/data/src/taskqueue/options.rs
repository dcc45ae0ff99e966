//! What clients set for a whole queue: TASK.PAUSE, TASK.RESUME.
//!
//! Options are in the registry, which additions and takes read anyway. A queue with options exists without tasks, so that
//! they hold for tasks that come later.

use super::TaskQueueMut;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::TaskOptions;
use quoin_store::{Isolation, StoreError};

/// Sets the options of a queue. Returns the former ones. If it has no options afterwards, the caller calls
/// [`remove_if_empty`](WriteContext::remove_if_empty).
///
/// Conflicts with everything that is done to the queue at the same time.
pub(super) async fn set(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    options: TaskOptions,
) -> Result<TaskOptions, StoreError> {
    let queue = TaskQueueMut::open(context, key);
    let mut registry = queue.registry(Isolation::Serializable).await?;
    let former = std::mem::replace(&mut registry.options, options);
    if former == registry.options {
        return Ok(former);
    }
    let row = context.layout().task_registry_key(key.data());
    context.transaction.set(&row, &registry.encode());
    context.set_kept(key, !registry.options.is_empty());
    if former.is_paused && !registry.options.is_paused {
        context.wake_waiting(key);
    }
    Ok(former)
}
