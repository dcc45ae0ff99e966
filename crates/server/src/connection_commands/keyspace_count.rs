//! How many keys there are, for INFO and MEMORY STATS.

use std::time::{Duration, Instant};

use crate::state::{DatabaseCount, ServerState};
use quoin_data::error::CommandError;

/// Counts that take no longer than this are not kept.
const COUNT_SHORT: Duration = Duration::from_millis(5);
/// A count is shown for so many times its duration.
const COUNT_REST_FACTOR: u32 = 10;

/// The databases that have keys.
///
/// Counting reads all keys, which takes long if there are many. So a count is shown again for
/// [`COUNT_REST_FACTOR`] times as long as it took, and frequent requests do not keep the store busy. If
/// the store cannot count, or is not reachable, the last count is shown.
pub(super) async fn databases(state: &ServerState) -> Vec<DatabaseCount> {
    // Simultaneous requests wait for one count.
    let mut counted = state.keyspace.lock().await;
    if counted.is_due() && state.store.is_reachable() {
        let started = Instant::now();
        match count(state).await {
            Ok(databases) => counted.databases = databases,
            Err(error) => tracing::warn!("keys could not be counted: {}", error.to_line()),
        }
        let elapsed = started.elapsed();
        counted.shown_until = (elapsed >= COUNT_SHORT)
            .then(|| Instant::now().checked_add(elapsed * COUNT_REST_FACTOR))
            .flatten();
    }
    counted.databases.clone()
}

async fn count(state: &ServerState) -> Result<Vec<DatabaseCount>, CommandError> {
    let mut databases = Vec::new();
    for database in 0..state.executor.environment().databases {
        let count = state.executor.read(database, |context| {
            Box::pin(async { Ok(context.count_keys().await?) })
        });
        let (keys, expiring) = count.await?;
        if keys > 0 {
            databases.push(DatabaseCount {
                database,
                keys,
                expiring,
            });
        }
    }
    Ok(databases)
}
