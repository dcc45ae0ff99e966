//! How long the store takes for small things.

use std::time::{Duration, Instant};

use crate::doctor::report::Line;
use crate::doctor::target::{DoctorTarget, LATENCY_TRIES};
use quoin_store::{Isolation, ReadTransaction, StoreError, Transaction};

pub(super) async fn check(
    target: &DoctorTarget<'_>,
    name: &'static str,
) -> Result<Line, StoreError> {
    // Of its own, so that several may measure at once.
    let key = target.layout.scratch_key(target.random.next_u64());
    let measured = measure(target, &key).await;
    // Also where measuring it failed.
    let cleared = target
        .write(async |transaction: &dyn Transaction| {
            transaction.clear(&key);
            Ok(())
        })
        .await;
    let text = measured?;
    cleared?;
    Ok(Line::ok(name, text))
}

async fn measure(target: &DoctorTarget<'_>, key: &[u8]) -> Result<String, StoreError> {
    let mut reads = Vec::with_capacity(LATENCY_TRIES);
    let mut commits = Vec::with_capacity(LATENCY_TRIES);
    for number in 0..LATENCY_TRIES as u64 {
        let begun = Instant::now();
        target
            .read(async |transaction: &dyn ReadTransaction| {
                transaction.get(key, Isolation::Snapshot).await.map(drop)
            })
            .await?;
        reads.push(begun.elapsed());
        let begun = Instant::now();
        target
            .write(async |transaction: &dyn Transaction| {
                transaction.set(key, &number.to_be_bytes());
                Ok(())
            })
            .await?;
        commits.push(begun.elapsed());
    }
    Ok(format!(
        "snapshot and read of a row {}, commit of a row {} (median, 99th percentile of {})",
        percentiles(reads),
        percentiles(commits),
        LATENCY_TRIES
    ))
}

/// Median and 99th percentile, for people.
pub(in crate::doctor) fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| {
        let index = (times.len() * part / 100).min(times.len().saturating_sub(1));
        times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    format!("{:.2}, {:.2} ms", at(50), at(99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentiles(times), "51.00, 100.00 ms");
        assert_eq!(percentiles(Vec::new()), "0.00, 0.00 ms");
    }
}
