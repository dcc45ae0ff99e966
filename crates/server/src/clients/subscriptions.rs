//! The subscriptions of one client.

use std::collections::BTreeSet;

use bytes::Bytes;

/// The kind of a name that a client subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A channel: SUBSCRIBE.
    Channel,
    /// A glob pattern of channels: PSUBSCRIBE.
    Pattern,
    /// A shard channel: SSUBSCRIBE.
    Shard,
}

/// About what a subscription takes beyond the bytes of its name, here and in the table of all.
const ENTRY_BYTES: usize = 200;

/// The subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Bytes>,
    patterns: BTreeSet<Bytes>,
    shards: BTreeSet<Bytes>,
    name_bytes: usize,
}

impl Subscriptions {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty()
    }

    /// The number of subscriptions of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }

    /// The memory that they take.
    pub(crate) fn held_bytes(&self) -> usize {
        self.name_bytes + self.len() * ENTRY_BYTES
    }

    /// Names of one kind.
    pub(crate) fn names(&self, scope: Scope) -> &BTreeSet<Bytes> {
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

    /// The number of subscriptions as replies give it: channels and patterns together.
    pub(crate) fn count(&self, scope: Scope) -> usize {
        match scope {
            Scope::Channel | Scope::Pattern => self.channels.len() + self.patterns.len(),
            Scope::Shard => self.shards.len(),
        }
    }

    pub(crate) fn insert(&mut self, scope: Scope, name: Bytes) {
        let bytes = name.len();
        if self.names_mut(scope).insert(name) {
            self.name_bytes += bytes;
        }
    }

    pub(crate) fn remove(&mut self, scope: Scope, name: &[u8]) -> bool {
        let is_removed = self.names_mut(scope).remove(name);
        if is_removed {
            self.name_bytes -= name.len();
        }
        is_removed
    }

    pub(crate) fn take(&mut self, scope: Scope) -> BTreeSet<Bytes> {
        let names = std::mem::take(self.names_mut(scope));
        self.name_bytes -= names.iter().map(Bytes::len).sum::<usize>();
        names
    }
}
