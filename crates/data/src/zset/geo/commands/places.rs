//! Members as places: GEOADD, GEOPOS, GEOHASH, GEODIST.

use bytes::Bytes;

use super::arguments::{coordinates, unit_m};
use super::{distance, place};
use crate::command::arguments::{argument, is_word, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::unit::context::{ReadContext, WriteContext};
use crate::zset::commands::{Addition, add, scores};
use crate::zset::geo::{Coordinates, distance_m};
use crate::zset::{AddOptions, ScoredMember};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member …]` → number
/// of new members (CH: or moved ones).
pub(super) async fn geoadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (options, counts_changes, triples) = parse_options(rest(arguments, 2));
    if !triples.len().is_multiple_of(3) || (options.only_new && options.only_existing) {
        return Err(CommandError::Syntax);
    }
    let mut members = Vec::with_capacity(triples.len() / 3);
    for triple in triples.chunks_exact(3) {
        members.push(ScoredMember {
            score: coordinates(triple)?.score(),
            member: argument(triple, 2)?.clone(),
        });
    }
    if members.is_empty() {
        return Err(CommandError::Syntax);
    }
    let addition = Addition {
        members,
        options,
        counts_changes,
    };
    add(context, argument(arguments, 1)?, &addition).await
}

/// The plan of GEOADD.
pub(super) fn plan_add(arguments: &[Bytes]) -> Option<Plan> {
    let (_, _, triples) = parse_options(rest(arguments, 2));
    let members = triples.chunks_exact(3).filter_map(|triple| triple.get(2));
    Some(Plan::Read(vec![Prefetch::members(
        ValueType::SortedSet,
        members,
    )]))
}

/// Reads `[NX|XX] [CH]`: the options, whether changes count (CH), and the words after them.
fn parse_options(mut words: &[Bytes]) -> (AddOptions, bool, &[Bytes]) {
    let mut options = AddOptions::default();
    let mut counts_changes = false;
    while let Some((word, others)) = words.split_first() {
        if is_word(word, "nx") {
            options.only_new = true;
        } else if is_word(word, "xx") {
            options.only_existing = true;
        } else if is_word(word, "ch") {
            counts_changes = true;
        } else {
            break;
        }
        words = others;
    }
    (options, counts_changes, words)
}

/// `GEOPOS key [member …]` → longitude and latitude of each, or null.
pub(super) async fn geopos(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let places = places(context, arguments).await?.into_iter();
    let told = context.environment.reported_version;
    let shown = |found: Option<_>| found.map_or(Reply::NullArray, |at| place(at, told));
    let replies = places.map(shown);
    Ok(Reply::Array(replies.collect()))
}

/// `GEOHASH key [member …]` → the geohash of each, or null.
pub(super) async fn geohash(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let places = places(context, arguments).await?.into_iter();
    let replies = places.map(|found| found.map_or(Reply::Null, |one| Reply::bulk(one.geohash())));
    Ok(Reply::Array(replies.collect()))
}

/// `GEODIST key member member [unit]` → their distance, or null.
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

/// The places of the members of `command key [member …]`.
async fn places(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Vec<Option<Coordinates>>, CommandError> {
    let scores = scores(context, arguments).await?.into_iter();
    Ok(scores
        .map(|score| score.map(Coordinates::of_score))
        .collect())
}
