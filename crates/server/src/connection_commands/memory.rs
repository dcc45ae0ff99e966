//! MEMORY STATS, and figures that INFO shows too: the memory of the process and the number of keys.

use std::time::{Duration, Instant};

use crate::connection_commands::shared::number;
use crate::procfs;
use crate::state::{DatabaseCount, ServerState};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// The memory of the process. Data is in the store, so all of it counts as overhead. Memory that
/// was touched counts as allocated, because the allocator is not asked.
pub(super) struct Figures {
    /// Memory that is allocated.
    pub(super) used_bytes: u64,
    /// All memory, with the store's cached pages.
    pub(super) resident_bytes: u64,
    /// The highest use of memory so far.
    pub(super) peak_bytes: u64,
    /// Memory that was allocated at the start of the server.
    pub(super) startup_bytes: u64,
    /// Memory that the server holds for clients.
    pub(super) clients_bytes: u64,
}

impl Figures {
    /// The current figures.
    pub(super) fn of(state: &ServerState) -> Self {
        let memory = procfs::memory();
        Self {
            used_bytes: memory.allocated_bytes,
            resident_bytes: memory.resident_bytes,
            peak_bytes: state.samples.memory_peak_bytes(memory.allocated_bytes),
            startup_bytes: state.startup_bytes,
            clients_bytes: state.clients.memory().bytes() as u64,
        }
    }

    /// Used memory in percent of its peak.
    pub(super) fn peak_percent(&self) -> f64 {
        100.0 * self.used_bytes as f64 / self.peak_bytes.max(1) as f64
    }

    /// Resident memory that is not allocated.
    pub(super) fn other_bytes(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.used_bytes)
    }

    /// Resident memory divided by allocated memory.
    pub(super) fn resident_ratio(&self) -> f64 {
        self.resident_bytes as f64 / self.used_bytes.max(1) as f64
    }
}

/// `MEMORY STATS`: Redis's fields. Fields for what Quoin does not have are zero.
pub(super) async fn stats(state: &ServerState) -> Reply {
    let figures = Figures::of(state);
    let databases = count_keys(state).await;
    let keys: i64 = databases.iter().map(|counted| counted.keys).sum();
    let zero = || Reply::Integer(0);
    let mut fields = Vec::new();
    let mut put = |name: &str, value: Reply| fields.push((Reply::bulk(name.to_owned()), value));
    put("peak.allocated", number(figures.peak_bytes));
    put("total.allocated", number(figures.used_bytes));
    put("startup.allocated", number(figures.startup_bytes));
    put("replication.backlog", zero());
    put("clients.slaves", zero());
    put("clients.normal", number(figures.clients_bytes));
    for name in [
        "cluster.links",
        "aof.buffer",
        "lua.caches",
        "functions.caches",
    ] {
        put(name, zero());
    }
    for counted in databases {
        let parts = ["main", "expires", "slot-to-keys"];
        let overhead =
            parts.map(|part| (Reply::bulk(format!("overhead.hashtable.{part}")), zero()));
        put(
            &format!("db.{}", counted.database),
            Reply::Map(overhead.into()),
        );
    }
    put("overhead.total", number(figures.used_bytes));
    put("keys.count", Reply::Integer(keys));
    put("keys.bytes-per-key", zero());
    put("dataset.bytes", zero());
    put("dataset.percentage", Reply::Double(0.0));
    put("peak.percentage", Reply::Double(figures.peak_percent()));
    put("allocator.allocated", number(figures.used_bytes));
    put("allocator.active", number(figures.used_bytes));
    put("allocator.resident", number(figures.used_bytes));
    put("allocator-fragmentation.ratio", Reply::Double(1.0));
    put("allocator-fragmentation.bytes", zero());
    put("allocator-rss.ratio", Reply::Double(1.0));
    put("allocator-rss.bytes", zero());
    // Redis has two names for the same.
    for (ratio, other) in [
        ("rss-overhead.ratio", "rss-overhead.bytes"),
        ("fragmentation", "fragmentation.bytes"),
    ] {
        put(ratio, Reply::Double(figures.resident_ratio()));
        put(other, number(figures.other_bytes()));
    }
    Reply::Map(fields)
}

/// Counts that take at most this time are not cached.
const COUNT_SHORT: Duration = Duration::from_millis(5);
/// A count is shown for this number of times its duration.
const COUNT_REST_FACTOR: u32 = 10;

/// The databases that have keys.
///
/// Counting reads all keys, which takes long if there are many. So a count stays valid for
/// [`COUNT_REST_FACTOR`] times as long as it took, and frequent requests do not keep the store
/// busy. If the store cannot count or is unreachable, the last count is shown.
pub(super) async fn count_keys(state: &ServerState) -> Vec<DatabaseCount> {
    // Simultaneous requests share one count.
    let mut counted = state.keyspace.lock().await;
    if counted.is_due() && state.store.is_reachable() {
        let started = Instant::now();
        match count_all(state).await {
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

async fn count_all(state: &ServerState) -> Result<Vec<DatabaseCount>, CommandError> {
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
