//! How many elements enter and leave queues, for QUEUE.TOP and metrics
//! (docs/understand/decisions/051-activity.md).

use std::cell::RefCell;

use quoin_layout::ValueType;

use crate::keyspace::key::ClientKey;

/// A change is merged into one of this many latest flows if it is of the same queue. Commands that
/// move elements alternate between two queues.
const FOLDED: usize = 2;

/// What happened to the elements of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Elements that were added.
    pub elements_in: u64,
    /// Elements that were popped, acknowledged or removed.
    pub elements_out: u64,
    /// Tasks that will be tried again, because their lease ended without success.
    pub retries: u64,
    /// Tasks whose last try failed.
    pub deaths: u64,
}

impl FlowCounts {
    /// Adds other counts.
    pub fn add(&mut self, other: FlowCounts) {
        self.elements_in = self.elements_in.saturating_add(other.elements_in);
        self.elements_out = self.elements_out.saturating_add(other.elements_out);
        self.retries = self.retries.saturating_add(other.retries);
        self.deaths = self.deaths.saturating_add(other.deaths);
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        let elements = self.elements_in.saturating_add(self.elements_out);
        elements
            .saturating_add(self.retries)
            .saturating_add(self.deaths)
    }
}

/// What happened to the elements of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The queue.
    pub key: ClientKey,
    /// Its type.
    pub value_type: ValueType,
    /// What happened.
    pub counts: FlowCounts,
}

/// What the commands of one attempt at a batch did to the elements of queues, in order. A queue may
/// appear several times.
#[derive(Debug, Default)]
pub struct Flows(RefCell<Vec<Flow>>);

/// A state of [`Flows`] that can be restored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowsSavepoint {
    length: usize,
    /// The counts of the last flows, the last one first.
    last: [FlowCounts; FOLDED],
}

impl Flows {
    /// Adds what happened to a queue.
    pub(crate) fn note(&self, key: &ClientKey, value_type: ValueType, counts: FlowCounts) {
        let mut flows = self.0.borrow_mut();
        let mut last = flows.iter_mut().rev().take(FOLDED);
        match last.find(|flow| flow.key == *key && flow.value_type == value_type) {
            Some(flow) => flow.counts.add(counts),
            None => flows.push(Flow {
                key: key.clone(),
                value_type,
                counts,
            }),
        }
    }

    pub(crate) fn savepoint(&self) -> FlowsSavepoint {
        let flows = self.0.borrow();
        let mut last = [FlowCounts::default(); FOLDED];
        for (kept, flow) in last.iter_mut().zip(flows.iter().rev()) {
            *kept = flow.counts;
        }
        FlowsSavepoint {
            length: flows.len(),
            last,
        }
    }

    /// Discards what was added since the savepoint.
    pub(crate) fn rollback(&self, savepoint: &FlowsSavepoint) {
        let mut flows = self.0.borrow_mut();
        flows.truncate(savepoint.length);
        for (flow, kept) in flows.iter_mut().rev().zip(savepoint.last) {
            flow.counts = kept;
        }
    }

    /// Takes all flows.
    pub fn take(&self) -> Vec<Flow> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn key(name: &'static str) -> ClientKey {
        ClientKey {
            database: 0,
            key: Bytes::from_static(name.as_bytes()),
        }
    }

    fn add(flows: &Flows, name: &'static str, elements_in: u64) {
        let counts = FlowCounts {
            elements_in,
            ..FlowCounts::default()
        };
        flows.note(&key(name), ValueType::List, counts);
    }

    fn taken(flows: &Flows) -> Vec<(ClientKey, u64)> {
        let flows = flows.take().into_iter();
        flows
            .map(|flow| (flow.key, flow.counts.elements_in))
            .collect()
    }

    #[test]
    fn turns_between_two_queues_are_two_flows() {
        let flows = Flows::default();
        for _ in 0..100 {
            add(&flows, "a", 1);
            add(&flows, "b", 2);
        }
        assert_eq!(taken(&flows), [(key("a"), 100), (key("b"), 200)]);
        assert!(taken(&flows).is_empty());
    }

    #[test]
    fn a_rollback_restores_the_counts_at_the_savepoint() {
        let flows = Flows::default();
        for name in ["a", "b", "c"] {
            add(&flows, name, 1);
        }
        let savepoint = flows.savepoint();
        for name in ["c", "b", "d", "a", "b", "e"] {
            add(&flows, name, 5);
        }
        flows.rollback(&savepoint);
        let kept = [(key("a"), 1), (key("b"), 1), (key("c"), 1)];
        assert_eq!(taken(&flows), kept);
    }

    #[test]
    fn a_key_with_another_type_is_another_flow() {
        let flows = Flows::default();
        add(&flows, "a", 1);
        flows.note(&key("a"), ValueType::Stream, FlowCounts::default());
        let types = flows.take().into_iter().map(|flow| flow.value_type);
        assert_eq!(
            types.collect::<Vec<_>>(),
            [ValueType::List, ValueType::Stream]
        );
    }
}
