//! What a client waits for within a key, and what has become ready there, where not all of it is
//! for every client. Only the key's type knows what they mean.

use std::any::Any;
use std::fmt::Debug;

/// Something that has become ready in a key.
pub trait Offer: Any + Debug + Send + Sync {
    /// Whether the other is for the same clients.
    fn is_same(&self, other: &dyn Offer) -> bool;
}

/// What a client can use of what becomes ready in a key.
pub trait Wants: Any + Debug + Send + Sync {
    /// Whether it can use what has become ready.
    fn accepts(&self, offer: &dyn Offer) -> bool;

    /// Whether the other wants the same: where one finds nothing the other would not either.
    fn is_same(&self, other: &dyn Wants) -> bool;
}

impl PartialEq for dyn Offer {
    fn eq(&self, other: &dyn Offer) -> bool {
        self.is_same(other)
    }
}

impl PartialEq for dyn Wants {
    fn eq(&self, other: &dyn Wants) -> bool {
        self.is_same(other)
    }
}
