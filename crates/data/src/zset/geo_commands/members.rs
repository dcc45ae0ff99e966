//! GEOPOS, GEOHASH, GEODIST.

use bytes::Bytes;

use super::arguments::unit_m;
use super::results::{distance, place};
use crate::command::arguments::rest;
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use crate::zset::commands::scores;
use crate::zset::geo::{Coordinates, distance_m};
use quoin_resp::reply::Reply;

/// `GEOPOS key [member …]` → longitude and latitude of each, or nothing.
pub(super) async fn geopos(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let places = places(context, arguments).await?.into_iter();
    let replies = places.map(|found| found.map_or(Reply::NullArray, place));
    Ok(Reply::Array(replies.collect()))
}

/// `GEOHASH key [member …]` → the geohash of each, or nothing.
pub(super) async fn geohash(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let places = places(context, arguments).await?.into_iter();
    let replies = places.map(|found| found.map_or(Reply::Null, |one| Reply::bulk(one.geohash())));
    Ok(Reply::Array(replies.collect()))
}

/// `GEODIST key member member [unit]` → how far one is from the other, or nothing.
pub(super) async fn geodist(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let unit_m = match rest(arguments, 4) {
        [] => 1.0,
        [unit] => unit_m(unit)?,
        _ => return Err(CommandError::Syntax),
    };
    match places(context, arguments.get(..4).unwrap_or_default()).await?[..] {
        [Some(one), Some(other)] => Ok(distance(distance_m(one, other) / unit_m)),
        _ => Ok(Reply::Null),
    }
}

/// Where the members of `name key [member …]` are.
async fn places(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Vec<Option<Coordinates>>, CommandError> {
    let scores = scores(context, arguments).await?.into_iter();
    Ok(scores
        .map(|score| score.map(Coordinates::of_score))
        .collect())
}
