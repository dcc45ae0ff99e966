//! Places on the earth in sorted sets: a member's score is the geohash of its place.
//!
//! The geohashes are Redis's, bit by bit. A search reads the scores of up to nine cells and keeps
//! the members that are inside its shape, in Redis's order.

pub mod commands;
mod geohash;
mod partial_sort;
mod search;
mod shape;

pub use geohash::Coordinates;
pub use search::{FoundMember, GeoQuery, Order};
pub use shape::{Form, Shape, distance_m};
