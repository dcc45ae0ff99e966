//! Reads rows before they are needed.

use futures_util::future::join_all;

use crate::unit::context::WriteContext;
use quoin_store::{Isolation, NotedRead, RangeQuery};

impl WriteContext<'_> {
    /// Loads these rows into the transaction's cache. Read errors are left to the commands.
    pub async fn read_ahead(&self, reads: &[NotedRead]) {
        let read = async |read: &NotedRead| match read {
            NotedRead::Key(key) => {
                let _ = self.transaction.get(key, Isolation::Snapshot).await;
            }
            NotedRead::Range {
                begin,
                end,
                limit,
                reverse,
            } => {
                let query = RangeQuery {
                    begin,
                    end,
                    limit: *limit,
                    reverse: *reverse,
                    isolation: Isolation::Snapshot,
                };
                let _ = self.transaction.get_range(query).await;
            }
        };
        join_all(reads.iter().map(read)).await;
    }
}
