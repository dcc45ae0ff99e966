//! The GEO commands.

mod arguments;
mod places;
mod rows;
mod search;

pub use rows::ROWS;

use crate::zset::geo::Coordinates;
use quoin_base::redis_version::RedisVersion;
use quoin_resp::reply::Reply;

/// A place as the configured version of Redis writes it: since 8.0 with the shortest digits, before
/// that with up to 17 decimals.
fn place(place: Coordinates, told: RedisVersion) -> Reply {
    let number = |number: f64| match told {
        RedisVersion::V7_2 => Reply::Decimal(number.into()),
        RedisVersion::V8_4 => Reply::Double(number),
    };
    Reply::Array(vec![number(place.longitude), number(place.latitude)])
}

/// A distance with four digits after the point, as Redis rounds it (`fixedpoint_d2string`).
fn distance(distance: f64) -> Reply {
    const SCALE: u64 = 10_000;
    // At most half the earth's circumference.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )]
    let scaled = (distance * SCALE as f64).round_ties_even() as u64;
    Reply::bulk(format!("{}.{:04}", scaled / SCALE, scaled % SCALE))
}
