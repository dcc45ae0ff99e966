//! The metrics: what INFO shows and is known without asking the store. Read at each request.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::queues::WatchedKeys;
use super::writer::Writer;
use crate::state::ServerState;

mod clients;
mod commands;
mod process;
mod queues;
mod server;
mod store;

/// The beginning of every name, except those that all programs have in common.
const PREFIX: &str = "quoin";

/// A registry with the metrics of a server.
pub(super) fn registry(state: Arc<ServerState>, keys: Arc<WatchedKeys>) -> Registry {
    let mut registry = Registry::default();
    let process = ProcessCollector(Arc::clone(&state));
    registry.register_collector(Box::new(process));
    let own = registry.sub_registry_with_prefix(PREFIX);
    own.register_collector(Box::new(StateCollector { state, keys }));
    registry
}

struct StateCollector {
    state: Arc<ServerState>,
    keys: Arc<WatchedKeys>,
}

impl fmt::Debug for StateCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateCollector")
    }
}

impl Collector for StateCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        server::write(&self.state, &mut writer)?;
        clients::write(&self.state, &mut writer)?;
        commands::write(&self.state, &mut writer)?;
        store::write(&self.state, &mut writer)?;
        queues::write(&self.state, &self.keys, &mut writer)
    }
}

struct ProcessCollector(Arc<ServerState>);

impl fmt::Debug for ProcessCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessCollector")
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        process::write(&self.0, &mut Writer(encoder))
    }
}
