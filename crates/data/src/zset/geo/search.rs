//! Searching members by place (GEOSEARCH).

use std::cmp::Ordering;

use bytes::Bytes;

use crate::rows::pages::Pages;
use quoin_store::StoreError;

use super::geohash::{Cell, Coordinates};
use super::partial_sort::sort_first;
use super::shape::Shape;
use crate::zset::{ScoreBound, SortedSet};

/// The order of the found members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Cell by cell, that of the center first, and in a cell by score.
    Cells,
    /// The nearest first.
    Nearest,
    /// The farthest first.
    Farthest,
}

/// A search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoQuery {
    /// The area.
    pub shape: Shape,
    /// The order of the result.
    pub order: Order,
    /// The most members to return.
    pub count: Option<usize>,
    /// Stop after `count` members, which need not be the nearest or farthest.
    pub any: bool,
}

/// A member inside the area.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMember {
    /// The member's bytes.
    pub member: Bytes,
    /// Its score.
    pub score: f64,
    /// Its place.
    pub place: Coordinates,
    /// Metres from the center.
    pub distance_m: f64,
}

impl SortedSet<'_, '_> {
    /// The members inside a shape.
    pub async fn search(&self, query: &GeoQuery) -> Result<Vec<FoundMember>, StoreError> {
        let enough = query.count.filter(|_| query.any).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for cell in query.shape.cells() {
            if found.len() >= enough {
                break;
            }
            self.search_cell(cell, &query.shape, enough, &mut found)
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

    /// Adds the members of a cell that are inside a shape, until `enough` are found.
    async fn search_cell(
        &self,
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
        let Some(rows) = self.score_span(bound(first, false), bound(end, true)) else {
            return Ok(());
        };
        let (_, prefix_length) = self.score_rows();
        let mut pages = Pages::new(self.context, rows, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let layout = self.context.layout();
                let score = layout.read_score_key(prefix_length, &row.key)?.score;
                let place = Coordinates::of_score(score);
                let Some(distance_m) = shape.distance_inside_m(place) else {
                    continue;
                };
                // Reads long members only if they are inside.
                let scored = self.scored_member(prefix_length, &row).await?;
                found.push(FoundMember {
                    member: scored.member,
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
