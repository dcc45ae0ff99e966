//! Amounts of resources.

use std::any::Any;

use bytes::Bytes;

use crate::unit::wants::{Offer, Wants};

/// Amounts of named resources: what a task needs, or what a consumer has. No name twice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amounts(pub Vec<(Bytes, f64)>);

impl Amounts {
    /// How much there is of a resource. One that is not named counts as zero.
    pub fn of(&self, name: &[u8]) -> f64 {
        let named = self.0.iter().find(|(known, _)| known == name);
        named.map_or(0.0, |(_, amount)| *amount)
    }

    /// Whether a task with these needs fits a consumer that has so much.
    pub fn fit(&self, having: &Amounts) -> bool {
        self.0
            .iter()
            .all(|(name, amount)| *amount <= having.of(name))
    }
}

fn amounts_in(value: &dyn Any) -> Option<&Amounts> {
    value.downcast_ref()
}

/// What a task needs that has become ready.
impl Offer for Amounts {
    fn is_same(&self, other: &dyn Offer) -> bool {
        amounts_in(other) == Some(self)
    }
}

/// What a consumer has that waits for a task.
impl Wants for Amounts {
    fn accepts(&self, offer: &dyn Offer) -> bool {
        amounts_in(offer).is_some_and(|needs| needs.fit(self))
    }

    fn is_same(&self, other: &dyn Wants) -> bool {
        amounts_in(other) == Some(self)
    }
}
