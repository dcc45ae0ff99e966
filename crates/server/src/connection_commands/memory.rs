//! MEMORY STATS, and the same figures for INFO.

use super::keyspace_count;
use crate::procfs;
use crate::state::ServerState;
use quoin_resp::reply::Reply;

/// The memory of the process. Data is in the store, so all of it is overhead. The allocator is not asked:
/// what is allocated is what is touched.
pub(super) struct Figures {
    /// Memory that is allocated.
    pub(super) used_bytes: u64,
    /// All memory, with the store's cached pages.
    pub(super) resident_bytes: u64,
    /// The highest use of memory so far.
    pub(super) peak_bytes: u64,
    /// What was allocated when the server started.
    pub(super) startup_bytes: u64,
    /// What clients make the server keep.
    pub(super) clients_bytes: u64,
}

impl Figures {
    /// As they are now.
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

    /// What is used, of its peak.
    pub(super) fn peak_percent(&self) -> f64 {
        100.0 * self.used_bytes as f64 / self.peak_bytes.max(1) as f64
    }

    /// Memory beside what is allocated.
    pub(super) fn other_bytes(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.used_bytes)
    }

    /// All memory, of what is allocated.
    pub(super) fn resident_ratio(&self) -> f64 {
        self.resident_bytes as f64 / self.used_bytes.max(1) as f64
    }
}

/// `MEMORY STATS`: Redis's fields. They are zero for what Quoin does not have.
pub(super) async fn stats(state: &ServerState) -> Reply {
    let figures = Figures::of(state);
    let databases = keyspace_count::databases(state).await;
    let keys: i64 = databases.iter().map(|counted| counted.keys).sum();
    let bytes = |bytes: u64| Reply::Integer(i64::try_from(bytes).unwrap_or(i64::MAX));
    let zero = || Reply::Integer(0);
    let mut fields = Vec::new();
    let mut put = |name: &str, value: Reply| fields.push((Reply::bulk(name.to_owned()), value));
    put("peak.allocated", bytes(figures.peak_bytes));
    put("total.allocated", bytes(figures.used_bytes));
    put("startup.allocated", bytes(figures.startup_bytes));
    put("replication.backlog", zero());
    put("clients.slaves", zero());
    put("clients.normal", bytes(figures.clients_bytes));
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
    put("overhead.total", bytes(figures.used_bytes));
    put("keys.count", Reply::Integer(keys));
    put("keys.bytes-per-key", zero());
    put("dataset.bytes", zero());
    put("dataset.percentage", Reply::Double(0.0));
    put("peak.percentage", Reply::Double(figures.peak_percent()));
    put("allocator.allocated", bytes(figures.used_bytes));
    put("allocator.active", bytes(figures.used_bytes));
    put("allocator.resident", bytes(figures.used_bytes));
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
        put(other, bytes(figures.other_bytes()));
    }
    Reply::Map(fields)
}
