//! What one client is subscribed to.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::server::clients::ClientRecord;

/// What a name that a client subscribes to stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A channel: SUBSCRIBE.
    Channel,
    /// A glob pattern of channels: PSUBSCRIBE.
    Pattern,
    /// A shard channel: SSUBSCRIBE.
    Shard,
}

/// What one client is subscribed to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    channels: BTreeSet<Bytes>,
    patterns: BTreeSet<Bytes>,
    shards: BTreeSet<Bytes>,
}

impl Subscriptions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty()
    }

    /// How many there are of all kinds.
    pub fn len(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }

    /// Names of one kind.
    pub fn names(&self, scope: Scope) -> &BTreeSet<Bytes> {
        match scope {
            Scope::Channel => &self.channels,
            Scope::Pattern => &self.patterns,
            Scope::Shard => &self.shards,
        }
    }

    fn names_mut(&mut self, scope: Scope) -> &mut BTreeSet<Bytes> {
        match scope {
            Scope::Channel => &mut self.channels,
            Scope::Pattern => &mut self.patterns,
            Scope::Shard => &mut self.shards,
        }
    }

    /// How many there are, as replies count them: channels and patterns together.
    pub fn count(&self, scope: Scope) -> usize {
        match scope {
            Scope::Channel | Scope::Pattern => self.channels.len() + self.patterns.len(),
            Scope::Shard => self.shards.len(),
        }
    }

    pub(super) fn insert(&mut self, scope: Scope, name: Bytes) -> bool {
        self.names_mut(scope).insert(name)
    }

    pub(super) fn remove(&mut self, scope: Scope, name: &[u8]) -> bool {
        self.names_mut(scope).remove(name)
    }

    pub(super) fn take(&mut self, scope: Scope) -> BTreeSet<Bytes> {
        std::mem::take(self.names_mut(scope))
    }

    /// Shows the numbers in the client's record, for CLIENT LIST.
    pub(super) fn show(&self, client: &ClientRecord) {
        for scope in [Scope::Channel, Scope::Pattern, Scope::Shard] {
            if let Some(count) = client.subscribed.get(scope as usize) {
                count.store(self.names(scope).len(), Ordering::Relaxed);
            }
        }
    }
}
