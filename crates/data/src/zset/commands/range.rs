//! ZRANGE in all its forms, ZRANGESTORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.

use bytes::Bytes;

use super::bounds::{lex_selection, rank_selection, score_selection};
use super::members_reply;
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::unit::context::{ReadContext, WriteContext};
use crate::zset::{ScoredMember, Selection, SortedRange, SortedSet, store};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The properties of a command.
#[derive(Debug, Clone, Copy)]
struct Form {
    by: Option<By>,
    reverse: Option<bool>,
    stores: bool,
}

const ZRANGE: Form = Form {
    by: None,
    reverse: None,
    stores: false,
};

/// `ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]` → members.
pub(super) async fn zrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, ZRANGE).await
}

/// `ZREVRANGE key start stop [WITHSCORES]` → members.
pub(super) async fn zrevrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, fixed(By::Rank, true)).await
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]` → members.
pub(super) async fn zrangebyscore(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, fixed(By::Score, false)).await
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]` → members.
pub(super) async fn zrevrangebyscore(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, fixed(By::Score, true)).await
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]` → members.
pub(super) async fn zrangebylex(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, fixed(By::Lex, false)).await
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]` → members.
pub(super) async fn zrevrangebylex(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, fixed(By::Lex, true)).await
}

/// `ZRANGESTORE destination source start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]` → number
/// of stored members.
pub(super) async fn zrangestore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = Form {
        stores: true,
        ..ZRANGE
    };
    let query = Query::parse(rest(arguments, 2), form)?;
    let mut members = query.run(context).await?;
    if query.range.reverse {
        members.reverse();
    }
    let name = argument(arguments, 1)?;
    let stored = store(context, name, &members).await?;
    if stored > 0 {
        context.notify(EventClasses::SORTED_SET, "zrangestore", name);
    }
    Ok(Reply::Integer(stored))
}

const fn fixed(by: By, reverse: bool) -> Form {
    Form {
        by: Some(by),
        reverse: Some(reverse),
        stores: false,
    }
}

async fn read(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    form: Form,
) -> Result<Reply, CommandError> {
    let query = Query::parse(rest(arguments, 1), form)?;
    let members = query.run(context).await?;
    Ok(members_reply(members, query.with_scores))
}

struct Query<'a> {
    source: &'a Bytes,
    range: SortedRange,
    with_scores: bool,
}

impl<'a> Query<'a> {
    /// Reads `source min max [option …]`, in Redis's order of checks.
    fn parse(words: &'a [Bytes], form: Form) -> Result<Self, CommandError> {
        let (mut by, mut reverse) = (form.by, form.reverse);
        let mut with_scores = false;
        let (mut offset, mut limit) = (0, -1);
        let mut options = rest(words, 3);
        while let Some((option, mut others)) = options.split_first() {
            if !form.stores && is_word(option, "withscores") {
                with_scores = true;
            } else if let ([first, second, rest @ ..], true) = (others, is_word(option, "limit")) {
                offset = integer(first)?;
                limit = integer(second)?;
                others = rest;
            } else if reverse.is_none() && is_word(option, "rev") {
                reverse = Some(true);
            } else if by.is_none() && is_word(option, "bylex") {
                by = Some(By::Lex);
            } else if by.is_none() && is_word(option, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            options = others;
        }
        let by = by.unwrap_or(By::Rank);
        let reverse = reverse.unwrap_or(false);
        if limit != -1 && by == By::Rank {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(CommandError::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (first, second) = (argument(words, 1)?, argument(words, 2)?);
        // A reverse range by value is given as max and min.
        let (min, max) = if reverse && by != By::Rank {
            (second, first)
        } else {
            (first, second)
        };
        let selection = match by {
            By::Rank => rank_selection(min, max)?,
            By::Score => score_selection(min, max)?,
            By::Lex => lex_selection(min, max)?,
        };
        Ok(Self {
            source: argument(words, 0)?,
            range: SortedRange {
                selection,
                reverse,
                offset,
                count: (limit >= 0).then(|| to_usize(limit)),
            },
            with_scores,
        })
    }

    async fn run(&self, context: &ReadContext<'_>) -> Result<Vec<ScoredMember>, CommandError> {
        match context.find(self.source, ValueType::SortedSet).await? {
            Some(key) => Ok(SortedSet::open(context, &key).range(&self.range).await?),
            None => Ok(Vec::new()),
        }
    }
}

/// `ZRANK key member [WITHSCORE]` → rank.
pub(super) async fn zrank(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    rank(context, arguments, false, "zrank").await
}

/// `ZREVRANK key member [WITHSCORE]` → rank, from the highest score.
pub(super) async fn zrevrank(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    rank(context, arguments, true, "zrevrank").await
}

async fn rank(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    reverse: bool,
    name: &'static str,
) -> Result<Reply, CommandError> {
    if arguments.len() > 4 {
        return Err(CommandError::WrongArity(name.to_owned()));
    }
    let with_score = match arguments.get(3) {
        None => false,
        Some(word) if is_word(word, "withscore") => true,
        Some(_) => return Err(CommandError::Syntax),
    };
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    let found = match key {
        Some(key) => {
            let set = SortedSet::open(context, &key);
            set.rank(argument(arguments, 2)?, reverse).await?
        }
        None => None,
    };
    Ok(match (found, with_score) {
        (Some((rank, _)), false) => Reply::Integer(rank),
        (Some((rank, score)), true) => {
            Reply::Array(vec![Reply::Integer(rank), Reply::Double(score)])
        }
        (None, false) => Reply::Null,
        (None, true) => Reply::NullArray,
    })
}

/// `ZCOUNT key min max` → number of members.
pub(super) async fn zcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = score_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    count(context, arguments, &selection).await
}

/// `ZLEXCOUNT key min max` → number of members.
pub(super) async fn zlexcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = lex_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    count(context, arguments, &selection).await
}

async fn count(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    selection: &Selection,
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => SortedSet::open(context, &key).count(selection).await?,
        None => 0,
    }))
}
