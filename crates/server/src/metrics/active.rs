//! Metrics of the most active queues, without configuring their names.
//!
//! The setting `metrics-queues` bounds their number, because each is several time series. A queue
//! that was among the most active ones stays for a while after others become more active, so that
//! its time series do not come and go. So up to twice as many are shown.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::metrics::queues::label;
use crate::metrics::writer::Writer;
use crate::state::ServerState;
use quoin_base::limits::METRICS_QUEUES_STAY;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::keyspace::kind::TypeKind;
use quoin_data::unit::flows::FlowCounts;
use quoin_engine::QueueActivity;

/// The queues that are shown.
#[derive(Debug, Default)]
pub(super) struct ActiveQueues(Mutex<HashMap<ClientKey, Shown>>);

#[derive(Debug)]
struct Shown {
    /// The last figures. The server may have stopped counting the queue.
    activity: QueueActivity,
    /// When it was last among the most active ones.
    active_at: Instant,
}

/// Updates the figures of all counted `queues`, most active first, and chooses which are shown: the
/// first `most`, and others that were among them.
fn choose(
    shown: &mut HashMap<ClientKey, Shown>,
    queues: Vec<QueueActivity>,
    most: usize,
    now: Instant,
) {
    for (place, activity) in queues.into_iter().enumerate() {
        let is_active = place < most;
        match shown.get_mut(&activity.key) {
            Some(shown) => {
                shown.activity = activity;
                if is_active {
                    shown.active_at = now;
                }
            }
            None if is_active => {
                let key = activity.key.clone();
                let active_at = now;
                shown.insert(
                    key,
                    Shown {
                        activity,
                        active_at,
                    },
                );
            }
            None => {}
        }
    }
    shown.retain(|_, one| now.saturating_duration_since(one.active_at) < METRICS_QUEUES_STAY);
    while shown.len() > 2 * most {
        let longest = shown.iter().min_by_key(|(_, one)| one.active_at);
        let Some(key) = longest.map(|(key, _)| key.clone()) else {
            return;
        };
        shown.remove(&key);
    }
}

/// The name and description of a metric, and the function that returns its value.
type Metric = (&'static str, &'static str, fn(&FlowCounts) -> u64);

const METRICS: [Metric; 4] = [
    (
        "queue_elements_in",
        "Elements added to one of the most active queues",
        |counts| counts.elements_in,
    ),
    (
        "queue_elements_out",
        "Elements popped, acknowledged or removed from the queue",
        |counts| counts.elements_out,
    ),
    (
        "queue_retries",
        "Tasks of the queue whose lease ended or was given back, and that will be retried",
        |counts| counts.retries,
    ),
    (
        "queue_deaths",
        "Tasks of the queue whose last try failed",
        |counts| counts.deaths,
    ),
];

/// Labels of a queue.
type Labels = [(&'static str, String); 3];

/// Writes the metrics of the most active queues.
pub(super) fn write(
    state: &ServerState,
    active: &ActiveQueues,
    writer: &mut Writer<'_>,
) -> fmt::Result {
    let most = usize::try_from(state.config.settings().metrics_queues).unwrap_or(0);
    let now = Instant::now();
    let mut shown = active.0.lock().unwrap_or_else(PoisonError::into_inner);
    choose(&mut shown, state.executor.activity().queues(now), most, now);
    // A name that is not UTF-8 may look like another one.
    let mut seen = HashSet::new();
    let mut queues: Vec<(Labels, FlowCounts)> = Vec::new();
    for Shown { activity, .. } in shown.values() {
        let key = label(&activity.key.key);
        if seen.insert((activity.key.database, key.clone())) {
            let labels = [
                ("db", activity.key.database.to_string()),
                ("key", key),
                ("type", activity.value_type.kind().name.to_owned()),
            ];
            queues.push((labels, activity.counts));
        }
    }
    drop(shown);
    queues.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, help, count) in METRICS {
        let values = queues
            .iter()
            .map(|(labels, counts)| (labels, count(counts)));
        writer.labelled_counters(name, help, values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use quoin_layout::ValueType;

    /// Counted queues, the most active first.
    fn queues(names: &[&str]) -> Vec<QueueActivity> {
        let queues = names.iter().map(|name| QueueActivity {
            key: key(name),
            value_type: ValueType::List,
            counts: FlowCounts::default(),
            in_per_second: 0.0,
            out_per_second: 0.0,
            weight: 0.0,
        });
        queues.collect()
    }

    fn key(name: &str) -> ClientKey {
        ClientKey {
            database: 0,
            key: Bytes::copy_from_slice(name.as_bytes()),
        }
    }

    fn names(shown: &HashMap<ClientKey, Shown>) -> Vec<String> {
        let mut names: Vec<String> = shown.keys().map(|key| label(&key.key)).collect();
        names.sort();
        names
    }

    #[test]
    fn a_queue_stays_for_a_while_after_others_are_more_active() {
        let begun = Instant::now();
        let mut shown = HashMap::new();
        choose(&mut shown, queues(&["a", "b", "c"]), 2, begun);
        assert_eq!(names(&shown), ["a", "b"]);
        let later = begun + METRICS_QUEUES_STAY - Duration::from_secs(1);
        let mut changed = queues(&["c", "a", "b"]);
        changed[2].counts.elements_in = 7;
        choose(&mut shown, changed, 2, later);
        assert_eq!(names(&shown), ["a", "b", "c"]);
        assert_eq!(shown[&key("b")].activity.counts.elements_in, 7);
        // Also if the server counts it no more.
        choose(&mut shown, queues(&["c", "a"]), 2, later);
        assert_eq!(names(&shown), ["a", "b", "c"]);
        choose(
            &mut shown,
            queues(&["c", "a"]),
            2,
            begun + METRICS_QUEUES_STAY,
        );
        assert_eq!(names(&shown), ["a", "c"]);
    }

    #[test]
    fn no_more_than_twice_as_many_are_shown() {
        let begun = Instant::now();
        let mut shown = HashMap::new();
        for (second, name) in (0..).zip(["a", "b", "c", "d"]) {
            let now = begun + Duration::from_secs(second);
            choose(&mut shown, queues(&[name]), 1, now);
        }
        assert_eq!(names(&shown), ["c", "d"]);
        choose(&mut shown, queues(&["d"]), 0, begun);
        assert!(shown.is_empty());
    }
}
