//! Searching members by place.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_store::StoreError;

use super::super::range::ScoreBound;
use super::super::score_rows;
use super::area::Shape;
use super::cell::{Cell, Coordinates};
use super::order::sort_first;

/// The order of what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Cell by cell, the one of the center first, and in a cell by score.
    Cells,
    /// The nearest first.
    Nearest,
    /// The farthest first.
    Farthest,
}

/// A search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoQuery {
    /// Where.
    pub shape: Shape,
    /// In which order.
    pub order: Order,
    /// Most members to answer.
    pub count: Option<usize>,
    /// The first `count` members that are found will do, which need not be the nearest or farthest.
    pub any: bool,
}

/// A member that is inside.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMember {
    /// The member's bytes.
    pub member: Bytes,
    /// Its score.
    pub score: f64,
    /// Where it is.
    pub place: Coordinates,
    /// Metres from the center.
    pub distance_m: f64,
}

impl ReadContext<'_> {
    /// The members inside a shape.
    pub async fn geo_search(
        &self,
        key: &OpenKey,
        query: &GeoQuery,
    ) -> Result<Vec<FoundMember>, StoreError> {
        let enough = query.count.filter(|_| query.any).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for cell in query.shape.cells() {
            if found.len() >= enough {
                break;
            }
            self.geo_search_cell(key, cell, &query.shape, enough, &mut found)
                .await?;
        }
        let wanted = query.count.unwrap_or(usize::MAX).min(found.len());
        let nearest = |one: &FoundMember, other: &FoundMember| {
            let order = one.distance_m.partial_cmp(&other.distance_m);
            order.unwrap_or(Ordering::Equal)
        };
        match query.order {
            Order::Cells => {}
            Order::Nearest => sort_first(&mut found, wanted, nearest),
            Order::Farthest => sort_first(&mut found, wanted, |one, other| nearest(other, one)),
        }
        found.truncate(wanted);
        Ok(found)
    }

    async fn geo_search_cell(
        &self,
        key: &OpenKey,
        cell: Cell,
        shape: &Shape,
        enough: usize,
        found: &mut Vec<FoundMember>,
    ) -> Result<(), StoreError> {
        let (first, end) = cell.scores();
        let bound = |score: f64, is_exclusive: bool| ScoreBound {
            score,
            is_exclusive,
        };
        let Some(rows) = self.zset_score_span(key, bound(first, false), bound(end, true)) else {
            return Ok(());
        };
        let (_, prefix_length) = score_rows(self, key.data());
        let mut pages = Pages::new(self, rows, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let score = self.layout().read_score_key(prefix_length, &row.key)?.score;
                let place = Coordinates::of_score(score);
                let Some(distance_m) = shape.distance_inside_m(place) else {
                    continue;
                };
                // Long members are read only where they are inside.
                let scored = self.zset_scored_member(key.data(), prefix_length, &row);
                found.push(FoundMember {
                    member: scored.await?.member,
                    score,
                    place,
                    distance_m,
                });
                if found.len() >= enough {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
