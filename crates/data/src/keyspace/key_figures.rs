//! How much a key holds and how old the oldest of it is, as far as the layout says it without reading
//! more than the ends of the data: for metrics.

use bytes::Bytes;

use quoin_layout::{StreamId, TaskState, ValueType};
use quoin_store::{Isolation, RangeQuery, StoreError};

use crate::cluster::queue_spans::QueueSpan;
use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// What lies in a key in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFigures {
    /// `ready`, or a state of tasks.
    pub state: &'static str,
    /// Elements.
    pub length: i64,
    /// Since when the oldest of them is in this state, in milliseconds since the Unix epoch. `None`
    /// where there is none, or where the layout does not say it: only a stream's ids and the rows of
    /// dead tasks hold a time of the past.
    pub since_ms: Option<i64>,
    /// The ends of what is there. A reader that comes again can tell ages from them.
    pub spans: Vec<QueueSpan>,
}

/// What lies in a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFigures {
    /// The key's type.
    pub value_type: ValueType,
    /// All states that the type has.
    pub states: Vec<StateFigures>,
}

impl ReadContext<'_> {
    /// The figures of a key, if it exists and holds elements, as all types do except strings. Does not
    /// count as a look-up in INFO.
    pub async fn key_figures(&self, name: &Bytes) -> Result<Option<KeyFigures>, StoreError> {
        let context = self.uncounted();
        let Some(key) = context.find_any(name).await? else {
            return Ok(None);
        };
        let value_type = key.meta.value_type;
        let spans = context.queue_spans(&key).await?;
        let ready = |length, since_ms, spans| StateFigures {
            state: TaskState::Ready.name(),
            length,
            since_ms,
            spans,
        };
        let states = match value_type {
            ValueType::String => return Ok(None),
            ValueType::TaskQueue => context.task_figures(&key, spans).await?,
            ValueType::Stream => {
                let length = context.length(&key, Isolation::Snapshot).await?;
                let first = context.stream_first_id(&key).await?;
                let since_ms = first.and_then(|id| i64::try_from(id.ms).ok());
                vec![ready(length, since_ms, spans)]
            }
            _ => vec![ready(
                context.length(&key, Isolation::Snapshot).await?,
                None,
                spans,
            )],
        };
        Ok(Some(KeyFigures { value_type, states }))
    }

    /// The id of a stream's first entry.
    async fn stream_first_id(&self, key: &OpenKey) -> Result<Option<StreamId>, StoreError> {
        let range = self
            .layout()
            .stream_entries(key.data(), StreamId::MIN, StreamId::MAX);
        let rows = self.transaction.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: 1,
            reverse: false,
            isolation: Isolation::Snapshot,
        });
        match rows.await?.first() {
            Some(row) => Ok(Some(
                self.layout().read_stream_entry_key(key.data(), &row.key)?,
            )),
            None => Ok(None),
        }
    }
}
