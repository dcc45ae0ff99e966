//! Subscriptions by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use crate::clients::{ClientRecord, Scope};
use quoin_base::glob::{self, Case, Glob};
use quoin_base::sparse::Sparse;
use quoin_data::unit::signals::ChannelKind;

/// In the order of their numbers, so that one is found quickly.
type Clients = Vec<Arc<ClientRecord>>;

/// All subscriptions of a server. A name without subscribers is removed.
#[derive(Default)]
pub(super) struct Table {
    channels: HashMap<Bytes, Clients>,
    shards: HashMap<Bytes, Clients>,
    patterns: BTreeMap<Bytes, Clients>,
}

impl Table {
    /// Returns the name as it is kept here, once for all of its subscribers.
    pub(super) fn insert(
        &mut self,
        scope: Scope,
        name: &[u8],
        client: &Arc<ClientRecord>,
    ) -> Bytes {
        let known = match scope {
            Scope::Channel => self.channels.get_key_value(name),
            Scope::Shard => self.shards.get_key_value(name),
            Scope::Pattern => self.patterns.get_key_value(name),
        };
        // A copy: the argument may keep a whole request in memory.
        let kept = known.map_or_else(|| Bytes::copy_from_slice(name), |(name, _)| name.clone());
        let name = kept.clone();
        let clients = match scope {
            Scope::Channel => self.channels.entry(name).or_default(),
            Scope::Shard => self.shards.entry(name).or_default(),
            Scope::Pattern => self.patterns.entry(name).or_default(),
        };
        if let Err(at) = clients.binary_search_by_key(&client.id, |other| other.id) {
            if clients.is_empty() {
                // Most channels have one subscriber.
                clients.reserve_exact(1);
            }
            clients.insert(at, Arc::clone(client));
        }
        kept
    }

    pub(super) fn remove(&mut self, scope: Scope, name: &[u8], client: &ClientRecord) {
        match scope {
            Scope::Channel => remove_from_channels(&mut self.channels, name, client),
            Scope::Shard => remove_from_channels(&mut self.shards, name, client),
            Scope::Pattern => {
                if let Some(clients) = self.patterns.get_mut(name)
                    && take_out(clients, client)
                {
                    self.patterns.remove(name);
                }
            }
        }
    }

    fn by_channel(&self, kind: ChannelKind) -> &HashMap<Bytes, Clients> {
        match kind {
            ChannelKind::Global => &self.channels,
            ChannelKind::Shard => &self.shards,
        }
    }

    pub(super) fn subscribers(&self, kind: ChannelKind, channel: &[u8]) -> &[Arc<ClientRecord>] {
        self.by_channel(kind)
            .get(channel)
            .map_or(&[], Vec::as_slice)
    }

    /// The patterns that a channel matches, with their subscribers. Shard channels match none.
    pub(super) fn matching<'t>(
        &'t self,
        kind: ChannelKind,
        channel: &'t [u8],
    ) -> impl Iterator<Item = (&'t Bytes, &'t [Arc<ClientRecord>])> {
        let patterns = (kind == ChannelKind::Global).then_some(&self.patterns);
        patterns
            .into_iter()
            .flatten()
            .filter(move |(pattern, _)| glob::matches(pattern, channel, Case::Sensitive))
            .map(|(pattern, clients)| (pattern, clients.as_slice()))
    }

    /// All names with their subscribers.
    pub(super) fn all(&self) -> impl Iterator<Item = (Scope, &Bytes, &[Arc<ClientRecord>])> {
        let channels = self.channels.iter().map(|one| (Scope::Channel, one));
        let shards = self.shards.iter().map(|one| (Scope::Shard, one));
        let patterns = self.patterns.iter().map(|one| (Scope::Pattern, one));
        let all = channels.chain(shards).chain(patterns);
        all.map(|(scope, (name, clients))| (scope, name, clients.as_slice()))
    }

    pub(super) fn channels(&self, kind: ChannelKind, pattern: Option<&[u8]>) -> Vec<Bytes> {
        let pattern = pattern.map(|pattern| Glob::new(pattern, Case::Sensitive));
        let is_asked_for = |channel: &&Bytes| {
            let pattern = pattern.as_ref();
            pattern.is_none_or(|pattern| pattern.matches(channel))
        };
        self.by_channel(kind)
            .keys()
            .filter(is_asked_for)
            .cloned()
            .collect()
    }

    pub(super) fn channel_count(&self, kind: ChannelKind) -> usize {
        self.by_channel(kind).len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.shards.is_empty() && self.patterns.is_empty()
    }

    pub(super) fn pattern_count(&self) -> usize {
        self.patterns.len()
    }
}

fn remove_from_channels(
    channels: &mut HashMap<Bytes, Clients>,
    name: &[u8],
    client: &ClientRecord,
) {
    if let Some(clients) = channels.get_mut(name)
        && take_out(clients, client)
    {
        channels.remove(name);
        channels.shrink_if_sparse();
    }
}

/// Removes a client. Whether none is left.
fn take_out(clients: &mut Clients, client: &ClientRecord) -> bool {
    if let Ok(at) = clients.binary_search_by_key(&client.id, |other| other.id) {
        clients.remove(at);
    }
    clients.is_empty()
}
