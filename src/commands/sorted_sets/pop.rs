//! ZPOPMIN, ZPOPMAX, ZMPOP.

use bytes::Bytes;

use super::{member_and_score, members_reply};
use crate::commands::arguments::{argument, count, integer_at_least, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::sorted_set::{Extreme, ScoredMember};
use crate::types::{OpenKey, WriteContext};

/// `ZPOPMIN key [count]` → members with scores.
pub(super) async fn zpopmin(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Min).await
}

/// `ZPOPMAX key [count]` → members with scores.
pub(super) async fn zpopmax(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Max).await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: Extreme,
) -> Result<Reply, CommandError> {
    if arguments.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let limit = match arguments.get(2) {
        Some(word) => Some(to_usize(count(word)?)),
        None => None,
    };
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    let members = match key {
        Some(key) => take(context, &key, limit.unwrap_or(1), end).await?,
        None => Vec::new(),
    };
    Ok(match limit {
        Some(_) => members_reply(members, true),
        // Without a count flat in both versions of the protocol.
        None => Reply::Array(
            members
                .into_iter()
                .map(member_and_score)
                .flat_map(|(member, score)| [member, score])
                .collect(),
        ),
    })
}

/// Pops, and removes the key when that was the last member.
pub(super) async fn take(
    context: &WriteContext<'_>,
    key: &OpenKey,
    limit: usize,
    end: Extreme,
) -> Result<Vec<ScoredMember>, CommandError> {
    let members = context.zset_pop(key, limit, end).await?;
    if !members.is_empty() {
        context.remove_if_empty(key).await?;
    }
    Ok(members)
}

/// `ZMPOP numkeys key [key …] MIN|MAX [COUNT count]` → the first key that has members, and those
/// popped.
pub(super) async fn zmpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let query = MultiPop::parse(arguments, 1)?;
    query.run(context).await
}

/// The arguments of ZMPOP, which BZMPOP has behind its timeout.
pub(super) struct MultiPop<'a> {
    keys: &'a [Bytes],
    end: Extreme,
    limit: usize,
}

impl<'a> MultiPop<'a> {
    pub(super) fn parse(arguments: &'a [Bytes], at: usize) -> Result<Self, CommandError> {
        let number_of_keys = to_usize(integer_at_least(
            argument(arguments, at)?,
            1,
            "ERR numkeys should be greater than 0",
        )?);
        let where_at = number_of_keys
            .checked_add(at + 1)
            .ok_or(CommandError::Syntax)?;
        let word = argument(arguments, where_at)?;
        let end = if is_word(word, "min") {
            Extreme::Min
        } else if is_word(word, "max") {
            Extreme::Max
        } else {
            return Err(CommandError::Syntax);
        };
        let keys = arguments.get(at + 1..where_at).unwrap_or(&[]);
        let mut limit = None;
        let mut options = rest(arguments, where_at.saturating_add(1));
        while let Some((option, values)) = options.split_first() {
            match values.split_first() {
                Some((value, behind)) if limit.is_none() && is_word(option, "count") => {
                    let message = "ERR count should be greater than 0";
                    limit = Some(to_usize(integer_at_least(value, 1, message)?));
                    options = behind;
                }
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(Self {
            keys,
            end,
            limit: limit.unwrap_or(1),
        })
    }

    pub(super) async fn run(&self, context: &WriteContext<'_>) -> Result<Reply, CommandError> {
        for name in self.keys {
            let Some(key) = context.find(name, ValueType::SortedSet).await? else {
                continue;
            };
            let members = take(context, &key, self.limit, self.end).await?;
            if !members.is_empty() {
                // Nested in both versions of the protocol.
                let pairs = members
                    .into_iter()
                    .map(member_and_score)
                    .map(|(member, score)| Reply::Array(vec![member, score]))
                    .collect();
                return Ok(Reply::Array(vec![
                    Reply::Bulk(name.clone()),
                    Reply::Array(pairs),
                ]));
            }
        }
        Ok(Reply::NullArray)
    }
}
