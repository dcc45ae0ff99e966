//! Things that a queue has for a limited time: tasks with a time to live, tokens of additions, and
//! results. Also the next moments of [schedules](super::schedules). [Background work](super::ended)
//! removes what has ended.

use futures_util::future::try_join;

use super::TaskQueue;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{TaskEnding, TaskKept};
use quoin_store::{Isolation, StoreError};

impl TaskQueue<'_, '_> {
    /// Whether the queue has tokens or results.
    pub(super) async fn has_kept(&self) -> Result<bool, StoreError> {
        let range = self.context.layout().task_remembered(self.key.data());
        let row = self
            .context
            .outermost(&range, false, Isolation::Serializable);
        Ok(row.await?.is_some())
    }

    /// Whether the queue has tokens, results or schedules.
    pub(super) async fn remembers(&self) -> Result<bool, StoreError> {
        let (kept, scheduled) = try_join(self.has_kept(), self.has_schedules()).await?;
        Ok(kept || scheduled)
    }

    /// A token or a result, even if its time is over.
    pub(super) async fn kept(
        &self,
        kind: TaskEnding,
        name: &[u8],
        isolation: Isolation,
    ) -> Result<Option<TaskKept>, StoreError> {
        let row = self
            .context
            .layout()
            .task_kept_key(self.key.data(), kind, name);
        let value = self.context.transaction.get(&row, isolation).await?;
        Ok(value.as_ref().map(TaskKept::decode).transpose()?)
    }

    /// When the next of all this is over. Without conflict.
    pub(super) async fn next_end_ms(&self) -> Result<Option<i64>, StoreError> {
        let layout = self.context.layout();
        let range = layout.task_ends(self.key.data());
        let row = self
            .context
            .outermost(&range, false, Isolation::Snapshot)
            .await?;
        let at_ms = row.map(|row| layout.read_task_end_key(self.key.data(), &row.key));
        Ok(at_ms.transpose()?.map(|(at_ms, ..)| at_ms))
    }
}

/// Remembers a token or a result, and replaces what the queue has of this kind and name. From then
/// on the key exists without tasks, until everything that it remembers has ended.
pub(super) async fn remember(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    kind: TaskEnding,
    name: &[u8],
    kept: &TaskKept,
) -> Result<(), StoreError> {
    let (layout, data, transaction) = (context.layout(), key.data(), context.transaction);
    let queue = TaskQueue::open(context, key);
    if let Some(former) = queue.kept(kind, name, Isolation::Serializable).await? {
        transaction.clear(&layout.task_end_key(data, former.until_ms, kind, name));
    }
    transaction.set(&layout.task_kept_key(data, kind, name), &kept.encode());
    transaction.set(&layout.task_end_key(data, kept.until_ms, kind, name), b"");
    if !key.meta.is_kept {
        context.set_kept(key, true);
    }
    context.set_timer(key, kept.until_ms);
    Ok(())
}

/// Removes a key that has no tasks, after it has forgotten a token, a result or a schedule, if that was the last and it
/// has no options.
pub(super) async fn remove_if_forgotten(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
) -> Result<(), StoreError> {
    let queue = TaskQueue::open(context, key);
    if key.meta.is_kept && queue.options().await?.is_empty() && !queue.remembers().await? {
        context.set_kept(key, false);
    }
    context.remove_if_empty(key).await
}
