//! Places, distances and found members as replies.

use crate::zset::geo::{Coordinates, FoundMember};
use quoin_resp::reply::Reply;

/// What a search answers besides the members.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Details {
    pub(super) with_distance: bool,
    pub(super) with_hash: bool,
    pub(super) with_place: bool,
}

impl Details {
    pub(super) fn any(self) -> bool {
        self.with_distance || self.with_hash || self.with_place
    }

    /// A member that was found, by a search with lengths in this unit.
    pub(super) fn reply(self, found: FoundMember, unit_m: f64) -> Reply {
        let member = Reply::Bulk(found.member);
        if !self.any() {
            return member;
        }
        let mut parts = vec![member];
        if self.with_distance {
            parts.push(distance(found.distance_m / unit_m));
        }
        if self.with_hash {
            // Scores within cells are whole numbers from 0 on, unless ZADD has put others there.
            #[allow(clippy::cast_possible_truncation)]
            parts.push(Reply::Integer(found.score as i64));
        }
        if self.with_place {
            parts.push(place(found.place));
        }
        Reply::Array(parts)
    }
}

pub(super) fn place(place: Coordinates) -> Reply {
    Reply::Array(vec![
        Reply::Decimal(place.longitude),
        Reply::Decimal(place.latitude),
    ])
}

/// A distance with four digits after the point, as Redis rounds it (`fixedpoint_d2string`).
pub(super) fn distance(distance: f64) -> Reply {
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
