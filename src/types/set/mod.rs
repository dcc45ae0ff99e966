//! Sets: fields without values.
//!
//! What they share is in [`super::fields`].

mod kind;

pub use kind::KIND;
