//! Ends of what a queue has for a time only: tasks with a time to live, tokens of additions, and results. Background
//! work removes what is over, which a [timer](super::timers) starts.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::{TaskQueue, TaskQueueMut, is_full_or_old, is_too_old, range_rows};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::REAPER_READS_AT_ONCE;
use quoin_layout::{TaskEnding, TaskKept};
use quoin_store::{Isolation, StoreError};

/// Something that is over.
pub(super) struct Ended {
    /// Its row by time.
    row: Bytes,
    at_ms: i64,
    kind: TaskEnding,
    name: Bytes,
}

impl TaskQueue<'_, '_> {
    /// Whether the queue has tokens or results.
    pub(super) async fn remembers(&self) -> Result<bool, StoreError> {
        let range = self.context.layout().task_kept(self.key.data());
        let row = self
            .context
            .outermost(&range, false, Isolation::Serializable);
        Ok(row.await?.is_some())
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

    /// Up to `limit` of what is over, and whether there may be more. Their rows are read too.
    pub(super) async fn ended(&self, limit: usize) -> Result<(Vec<Ended>, bool), StoreError> {
        let layout = self.context.layout();
        let data = self.key.data();
        let range = layout.task_ends_by(data, self.context.now_ms);
        let rows = range_rows(self.context, &range, limit, Isolation::Snapshot).await?;
        let has_more = rows.len() >= limit;
        let mut ended = Vec::with_capacity(rows.len());
        for row in rows {
            let (at_ms, kind, name) = layout.read_task_end_key(data, &row.key)?;
            let row = row.key;
            ended.push(Ended {
                row,
                at_ms,
                kind,
                name,
            });
        }
        for some in ended.chunks(REAPER_READS_AT_ONCE) {
            // Concurrently, because on a cluster each read is a round trip. Later reads are answered from memory.
            let reads = some.iter().map(async |ended| match ended.kind {
                TaskEnding::Task => self
                    .row(&ended.name, Isolation::Serializable)
                    .await
                    .map(drop),
                kind => self
                    .kept(kind, &ended.name, Isolation::Serializable)
                    .await
                    .map(drop),
            });
            try_join_all(reads).await?;
        }
        Ok((ended, has_more))
    }
}

/// Remembers a token or a result, instead of what the queue has of this kind and name. From then on the key exists
/// without tasks, until all that it remembers is over.
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

impl TaskQueueMut<'_, '_> {
    /// Removes what is over, as much as the batch has room for. Returns whether something is left. A key that exists
    /// only because of what it remembered goes with the last of it, and one whose last task was removed, also before
    /// (`has_expired`).
    pub(super) async fn remove_ended(
        &self,
        ended: &[Ended],
        has_expired: bool,
    ) -> Result<bool, StoreError> {
        if ended.is_empty() && !has_expired {
            return Ok(false);
        }
        let (context, data) = (self.context, self.key.data());
        let options = self.options().await?;
        let mut is_left = false;
        let (mut expired, mut forgotten) = (false, false);
        for (number, ended) in ended.iter().enumerate() {
            if number > 0 && is_full_or_old(context) {
                is_left = true;
                break;
            }
            let Ended {
                row,
                at_ms,
                kind,
                name,
            } = ended;
            context.transaction.clear(row);
            if *kind == TaskEnding::Task {
                // The time of the end may be ahead of this task's, or the task may be leased: then its consumer
                // decides.
                let found = self.row(name, Isolation::Serializable).await?;
                if let Some(task) = found.filter(|task| is_too_old(task, context.now_ms)) {
                    self.expire(name, task, &options).await?;
                    expired = true;
                }
                continue;
            }
            // A token may have been given out again since.
            let kept = self.kept(*kind, name, Isolation::Serializable).await?;
            if kept.is_some_and(|kept| kept.until_ms == *at_ms) {
                context
                    .transaction
                    .clear(&context.layout().task_kept_key(data, *kind, name));
                forgotten = true;
            }
        }
        if expired {
            // Takes that found many tasks too old may have given up before others.
            context.wake_waiting(self.key);
        }
        let mut key = self.key.clone();
        if forgotten && key.meta.is_kept && options.is_empty() && !self.remembers().await? {
            context.set_kept(&mut key, false);
        }
        context.remove_if_empty(&key).await?;
        Ok(is_left)
    }
}
