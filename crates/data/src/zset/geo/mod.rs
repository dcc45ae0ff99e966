//! Places on the earth in sorted sets: a member's score numbers the cell of a grid in which it is.
//!
//! The numbers are Redis's, bit by bit. A search reads the scores of up to nine cells and keeps
//! the members that are inside its shape, in Redis's order.

mod area;
mod cell;
mod order;
mod search;

pub use area::{Form, Shape, distance_m};
pub use cell::Coordinates;
pub use search::{FoundMember, GeoQuery, Order};
