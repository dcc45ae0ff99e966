//! Sorted-set commands.

mod add;
mod algebra;
mod bounds;
mod members;
mod range;
mod remove;
mod rows;

pub(super) use add::{Addition, add};
pub(crate) use bounds::c_double;
pub(super) use members::scores;
pub(crate) use remove::{extreme, is_max};
pub use rows::ROWS;

use crate::zset::ScoredMember;
use quoin_resp::reply::Reply;

/// Members, with their scores for WITHSCORES.
fn members_reply(members: Vec<ScoredMember>, with_scores: bool) -> Reply {
    let members = members.into_iter();
    match with_scores {
        true => Reply::Pairs(members.map(member_and_score).collect()),
        false => Reply::Array(members.map(|one| Reply::Bulk(one.member)).collect()),
    }
}

fn member_and_score(one: ScoredMember) -> (Reply, Reply) {
    (Reply::Bulk(one.member), Reply::Double(one.score))
}
