//! Tables.

use crate::servers::Cpu;

/// The figures of one case in a line of a table.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub servers: usize,
    pub per_s: f64,
    /// Milliseconds.
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub commits_per_s: f64,
    pub per_commit: f64,
    /// Average number of concurrent transactions.
    pub at_once: f64,
    pub conflicts: f64,
    pub retries: f64,
    pub unknown_results: f64,
    /// Pops that found nothing, per operation.
    pub empty: f64,
    /// Processors in use.
    pub load_cpus: f64,
    pub servers_cpus: f64,
    pub others_cpus: f64,
    pub bare_per_s: Option<f64>,
    pub bare_p50_ms: f64,
}

impl Row {
    pub fn set_latencies(&mut self, latencies_us: &mut [u32]) {
        latencies_us.sort_unstable();
        [self.p50_ms, self.p95_ms, self.p99_ms] =
            [0.5, 0.95, 0.99].map(|part| percentile_ms(latencies_us, part));
    }

    pub fn set_cpu(&mut self, cpu: Cpu, wall_s: f64) {
        self.load_cpus = cpu.load_s / wall_s;
        self.servers_cpus = cpu.servers_s / wall_s;
        self.others_cpus = cpu.others_s / wall_s;
    }
}

/// Of sorted times.
pub fn percentile_ms(sorted_us: &[u32], part: f64) -> f64 {
    let at = (sorted_us.len() as f64 * part) as usize;
    let at = at.min(sorted_us.len().saturating_sub(1));
    sorted_us.get(at).map_or(0.0, |us| f64::from(*us) / 1000.0)
}

pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

pub fn print_header(title: &str) {
    println!();
    println!("{title}");
    println!(
        "{:>7} {:>9} {:>6} {:>9} {:>5} | {:>7} {:>7} {:>7} {:>8} | {:>8} {:>7} {:>5} {:>9} {:>8} {:>8} {:>6} | {:>5} {:>5} {:>5}",
        "servers",
        "a second",
        "of 1",
        "bare",
        "of it",
        "p50 ms",
        "p95",
        "p99",
        "bare p50",
        "commits",
        "each",
        "under",
        "conflicts",
        "retries",
        "unknown",
        "empty",
        "load",
        "serv",
        "rest"
    );
}

/// `alone`: operations per second of a single server.
pub fn print_row(row: &Row, alone: Option<f64>) {
    let ratio = |of: Option<f64>| {
        of.filter(|of| *of > 0.0)
            .map_or("–".to_owned(), |of| format!("{:.2}", row.per_s / of))
    };
    let bare = row.bare_per_s;
    println!(
        "{:>7} {:>9.0} {:>6} {:>9} {:>5} | {:>7.2} {:>7.2} {:>7.2} {:>8} | {:>8.0} {:>7.1} {:>5.1} {:>9.4} {:>8.4} {:>8.4} {:>6.3} | {:>5.2} {:>5.2} {:>5.2}",
        row.servers,
        row.per_s,
        ratio(alone),
        bare.map_or("–".to_owned(), |bare| format!("{bare:.0}")),
        ratio(bare),
        row.p50_ms,
        row.p95_ms,
        row.p99_ms,
        bare.map_or("–".to_owned(), |_| format!("{:.2}", row.bare_p50_ms)),
        row.commits_per_s,
        row.per_commit,
        row.at_once,
        row.conflicts,
        row.retries,
        row.unknown_results,
        row.empty,
        row.load_cpus,
        row.servers_cpus,
        row.others_cpus,
    );
}

/// The round with the median throughput, and the bare client's median.
pub fn median_row(mut rows: Vec<Row>) -> Option<Row> {
    rows.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
    let mut bare: Vec<f64> = rows.iter().filter_map(|row| row.bare_per_s).collect();
    let mut row = rows.get(rows.len() / 2).cloned()?;
    if !bare.is_empty() {
        row.bare_per_s = Some(median(&mut bare));
    }
    Some(row)
}
