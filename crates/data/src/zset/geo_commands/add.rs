//! GEOADD.

use bytes::Bytes;

use super::arguments::coordinates;
use crate::command::arguments::{argument, is_word, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use crate::zset::commands::{Addition, add};
use crate::zset::{AddOptions, ScoredMember};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member …]` → how many
/// were added (CH: or moved).
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

/// The plan of GEOADD: it looks its members up.
pub(super) fn plan_add(arguments: &[Bytes]) -> Option<Plan> {
    let (_, _, triples) = parse_options(rest(arguments, 2));
    let members = triples.chunks_exact(3).filter_map(|triple| triple.get(2));
    Some(Plan::Read(vec![Prefetch::members(
        ValueType::SortedSet,
        members,
    )]))
}

/// The options, whether changes count (CH), and the words after them.
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
