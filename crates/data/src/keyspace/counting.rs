//! Counts elements that enter and leave queues, as the descriptor of their type says
//! ([`ElementFlow`]).

use crate::keyspace::key::{ClientKey, OpenKey};
use crate::keyspace::kind::{ElementFlow, TypeKind};
use crate::unit::context::WriteContext;
use crate::unit::flows::FlowCounts;
use quoin_layout::ValueType;

impl WriteContext<'_> {
    /// Counts a change of a value's length: elements that were added (positive) or left (negative).
    pub(crate) fn count_length(&self, key: &ClientKey, value_type: ValueType, delta: i64) {
        if delta == 0 || !self.counts_elements {
            return;
        }
        let (elements_in, elements_out) = match (value_type.kind().flow, delta > 0) {
            (ElementFlow::ByLength | ElementFlow::Additions, true) => (delta.unsigned_abs(), 0),
            (ElementFlow::ByLength, false) => (0, delta.unsigned_abs()),
            (ElementFlow::Additions, false) | (ElementFlow::Nothing, _) => return,
        };
        let counts = FlowCounts {
            elements_in,
            elements_out,
            ..FlowCounts::default()
        };
        self.signals.flows.note(key, value_type, counts);
    }

    /// Counts what the length of a value does not show.
    pub(crate) fn count_flow(&self, key: &OpenKey, counts: FlowCounts) {
        // Nobody asks about a key that no client sees.
        if counts.total() > 0
            && let Some(name) = key.client_key()
        {
            self.signals.flows.note(&name, key.meta.value_type, counts);
        }
    }

    /// Counts elements that consumers are done with, although the length of the value does not show it.
    pub(crate) fn count_out(&self, key: &OpenKey, count: usize) {
        self.count_flow(
            key,
            FlowCounts {
                elements_out: u64::try_from(count).unwrap_or(u64::MAX),
                ..FlowCounts::default()
            },
        );
    }
}
