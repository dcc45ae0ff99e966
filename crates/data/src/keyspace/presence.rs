//! Whether a key exists, by its metadata and its length: the one place that says what it means
//! that a key has no elements.

use crate::keyspace::kind::TypeKind;
use quoin_layout::Meta;
use quoin_store::{Capabilities, Isolation, StoreError};

use crate::unit::context::ReadContext;

/// What a key is that has metadata. (One past its time does not exist whatever it is.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It exists.
    Exists,
    /// It has ceased to exist with its last element, and its metadata was kept for the next push
    /// (*retained metadata*, see [`crate::keyspace`]). Clients see no key.
    Retained,
    /// It is to be removed in the transaction that takes its last element. Only a wrong count
    /// leaves it there, and clients see it.
    Emptied,
}

/// What a key with this metadata and length is on a store with these capabilities. A value that lies
/// in metadata is removed in the transaction that takes its last element, so it always exists.
pub fn presence(meta: &Meta, length: i64, capabilities: &Capabilities) -> Presence {
    let is_small = meta.body.is_some();
    if length != 0 || is_small || meta.value_type.kind().exists_when_empty {
        Presence::Exists
    } else if !capabilities.single_writer && meta.expire_at_ms.is_none() {
        Presence::Retained
    } else {
        Presence::Emptied
    }
}

impl ReadContext<'_> {
    /// What a key with this metadata and length is.
    pub(crate) fn presence(&self, meta: &Meta, length: i64) -> Presence {
        presence(meta, length, &self.environment.capabilities)
    }

    /// Whether metadata may be retained, which its length tells.
    pub(crate) fn may_be_retained(&self, meta: &Meta) -> bool {
        self.presence(meta, 0) == Presence::Retained
    }

    /// Whether the metadata there is retained. Reads the length where it matters.
    pub(crate) async fn is_retained(
        &self,
        meta_key: &[u8],
        meta: &Meta,
        isolation: Isolation,
    ) -> Result<bool, StoreError> {
        Ok(self.may_be_retained(meta) && {
            let length = self.length_at(meta_key, isolation).await?;
            self.presence(meta, length) == Presence::Retained
        })
    }
}

#[cfg(test)]
mod tests;
