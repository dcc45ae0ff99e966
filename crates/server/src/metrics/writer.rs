//! Writes metrics in the OpenMetrics text format.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use quoin_base::counter::{BUCKET_FIRST_NS, DURATION_BUCKETS, Durations};

/// The first bucket of durations that is shown: up to 16 µs. It includes all shorter ones.
const BUCKET_SHOWN_FIRST: usize = 4;
/// The last bucket with an upper bound: 17 s.
const BUCKET_SHOWN_LAST: usize = 24;

/// A distribution of durations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Histogram {
    sum_us: u64,
    counts: [u64; DURATION_BUCKETS],
}

impl Histogram {
    /// Adds durations that were counted.
    pub(super) fn add(&mut self, durations: &Durations) {
        self.sum_us += durations.sum_us();
        for (sum, count) in self.counts.iter_mut().zip(durations.counts()) {
            *sum += count;
        }
    }

    /// The number of durations.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper bounds of buckets in seconds, with the number of durations in each.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let mut buckets = Vec::new();
        let mut count = 0;
        for (at, of_bucket) in self.counts.iter().enumerate() {
            count += of_bucket;
            if (BUCKET_SHOWN_FIRST..=BUCKET_SHOWN_LAST).contains(&at) {
                let end_ns = BUCKET_FIRST_NS << at;
                buckets.push((end_ns as f64 / 1e9, std::mem::take(&mut count)));
            }
        }
        buckets.push((f64::INFINITY, count));
        buckets
    }
}

pub(super) struct Writer<'e>(pub(super) DescriptorEncoder<'e>);

impl Writer<'_> {
    /// `_info` is appended to the name. The value is 1.
    pub(super) fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Info)?;
        metric.encode_info(&labels)
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    /// `_total` is appended to the name.
    pub(super) fn counter<N>(&mut self, name: &str, help: &str, value: N) -> fmt::Result
    where
        ConstCounter<N>: EncodeMetric,
    {
        let metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    /// One counter for each value of a label.
    pub(super) fn counters<'v, N>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'v str, N)>,
    ) -> fmt::Result
    where
        ConstCounter<N>: EncodeMetric,
    {
        let mut metrics = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let labels = [(label, of)];
            let metric = metrics.encode_family(&labels)?;
            ConstCounter::new(value).encode(metric)?;
        }
        Ok(())
    }

    /// One counter for each set of labels.
    pub(super) fn labelled_counters<'l, L: EncodeLabelSet + 'l>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (&'l L, u64)>,
    ) -> fmt::Result {
        let mut metrics = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            let metric = metrics.encode_family(labels)?;
            ConstCounter::new(value).encode(metric)?;
        }
        Ok(())
    }

    /// One gauge for each set of labels.
    pub(super) fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut metrics = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            let metric = metrics.encode_family(&labels)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }

    /// How long something took, in seconds.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        durations: &Durations,
    ) -> fmt::Result {
        let mut histogram = Histogram::default();
        histogram.add(durations);
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Histogram)?;
        let sum_s = histogram.sum_us as f64 / 1e6;
        let buckets = histogram.buckets();
        metric.encode_histogram::<NoLabelSet>(sum_s, histogram.count(), &buckets, None)
    }

    /// One histogram for each value of a label.
    pub(super) fn histograms<'v>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'v str, Histogram)>,
    ) -> fmt::Result {
        let mut metrics = self
            .0
            .encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (of, histogram) in values {
            let labels = [(label, of)];
            let mut metric = metrics.encode_family(&labels)?;
            let sum_s = histogram.sum_us as f64 / 1e6;
            let buckets = histogram.buckets();
            metric.encode_histogram::<NoLabelSet>(sum_s, histogram.count(), &buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn short_and_long_durations_are_in_the_first_and_the_last_bucket() {
        let durations = Durations::default();
        for duration_us in [0, 15, 17, 1_000, 60_000_000] {
            durations.record(Duration::from_micros(duration_us));
        }
        let mut histogram = Histogram::default();
        histogram.add(&durations);
        let buckets = histogram.buckets();
        assert_eq!(buckets[0], (0.000_016_384, 2));
        assert_eq!(buckets[1], (0.000_032_768, 1));
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, 1)));
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 5);
        assert_eq!(histogram.count(), 5);
    }
}
