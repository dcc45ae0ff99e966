//! Sorted-set commands.

mod add;
mod algebra;
mod blocking;
mod bounds;
mod pop;
mod random;
mod range;
mod rank;
mod remove;
mod rows;
mod scan;
mod score;
#[cfg(test)]
mod tests;

pub(crate) use add::{Addition, add};
pub use blocking::ROWS as BLOCKING_ROWS;
pub(crate) use bounds::c_double;
pub(crate) use pop::{extreme, is_max};
pub use rows::ROWS;
pub(crate) use score::scores;

use crate::zset::ScoredMember;
use quoin_resp::reply::Reply;

/// Members, with their scores where WITHSCORES asks for them.
fn members_reply(members: Vec<ScoredMember>, with_scores: bool) -> Reply {
    if with_scores {
        Reply::Pairs(members.into_iter().map(member_and_score).collect())
    } else {
        Reply::Array(
            members
                .into_iter()
                .map(|one| Reply::Bulk(one.member))
                .collect(),
        )
    }
}

fn member_and_score(one: ScoredMember) -> (Reply, Reply) {
    (Reply::Bulk(one.member), Reply::Double(one.score))
}
