//! ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD.

use bytes::Bytes;

use super::members_reply;
use crate::command::arguments::{
    argument, double, integer, integer_at_least, is_word, rest, to_usize,
};
use crate::error::CommandError;
use crate::unit::context::{ReadContext, WriteContext};
use crate::zset::{self, Aggregate, Operand, ScoredMember, algebra};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// The properties of a command.
#[derive(Debug, Clone, Copy)]
struct Form {
    name: &'static str,
    operation: Operation,
    stores: bool,
    counts: bool,
}

const fn form(name: &'static str, operation: Operation) -> Form {
    Form {
        name,
        operation,
        stores: false,
        counts: false,
    }
}

const fn storing(name: &'static str, operation: Operation) -> Form {
    Form {
        stores: true,
        ..form(name, operation)
    }
}

/// `ZUNION numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]` →
/// members.
pub(super) async fn zunion(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, form("zunion", Operation::Union)).await
}

/// `ZINTER numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]` →
/// members.
pub(super) async fn zinter(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, form("zinter", Operation::Intersection)).await
}

/// `ZDIFF numkeys key [key …] [WITHSCORES]` → members.
pub(super) async fn zdiff(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, form("zdiff", Operation::Difference)).await
}

/// `ZINTERCARD numkeys key [key …] [LIMIT limit]` → number of members.
pub(super) async fn zintercard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = Form {
        counts: true,
        ..form("zintercard", Operation::Intersection)
    };
    let query = Query::parse(context, rest(arguments, 1), form).await?;
    let count = algebra::intersection_length(context, &query.operands, query.limit).await?;
    Ok(Reply::count(count))
}

/// `ZUNIONSTORE destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]` →
/// number of members.
pub(super) async fn zunionstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    store(context, arguments, storing("zunionstore", Operation::Union)).await
}

/// `ZINTERSTORE destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]` →
/// number of members.
pub(super) async fn zinterstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = storing("zinterstore", Operation::Intersection);
    store(context, arguments, form).await
}

/// `ZDIFFSTORE destination numkeys key [key …]` → number of members.
pub(super) async fn zdiffstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = storing("zdiffstore", Operation::Difference);
    store(context, arguments, form).await
}

async fn read(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    form: Form,
) -> Result<Reply, CommandError> {
    let query = Query::parse(context, rest(arguments, 1), form).await?;
    let members = query.run(context).await?;
    Ok(members_reply(members, query.with_scores))
}

async fn store(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    form: Form,
) -> Result<Reply, CommandError> {
    let query = Query::parse(context, rest(arguments, 2), form).await?;
    let members = query.run(context).await?;
    let name = argument(arguments, 1)?;
    let stored = zset::store(context, name, &members).await?;
    if stored > 0 {
        let event = match query.operation {
            Operation::Union => "zunionstore",
            Operation::Intersection => "zinterstore",
            Operation::Difference => "zdiffstore",
        };
        context.notify(EventClasses::SORTED_SET, event, name);
    }
    Ok(Reply::Integer(stored))
}

struct Query {
    operation: Operation,
    operands: Vec<Operand>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: Option<usize>,
}

impl Query {
    /// Reads `numkeys key [key …] [option …]`. As in Redis, the types of the keys are checked before
    /// the options.
    async fn parse(
        context: &ReadContext<'_>,
        words: &[Bytes],
        form: Form,
    ) -> Result<Self, CommandError> {
        let number_of_keys = integer(argument(words, 0)?)?;
        if number_of_keys < 1 {
            return Err(CommandError::Text(
                format!(
                    "ERR at least 1 input key is needed for '{}' command",
                    form.name
                )
                .into(),
            ));
        }
        let after_keys = to_usize(number_of_keys).saturating_add(1);
        let Some(names) = words.get(1..after_keys) else {
            return Err(CommandError::Syntax);
        };
        let keys = context
            .find_each_of(names, &[ValueType::SortedSet, ValueType::Set])
            .await?;
        let operands = keys.into_iter().map(|key| Operand { key, weight: 1.0 });
        let mut query = Self {
            operation: form.operation,
            operands: operands.collect(),
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: None,
        };
        query.parse_options(rest(words, after_keys), form)?;
        Ok(query)
    }

    fn parse_options(&mut self, mut options: &[Bytes], form: Form) -> Result<(), CommandError> {
        let has_scores = form.operation != Operation::Difference && !form.counts;
        while let Some((option, values)) = options.split_first() {
            if has_scores && is_word(option, "weights") && values.len() >= self.operands.len() {
                for (operand, weight) in self.operands.iter_mut().zip(values) {
                    operand.weight = double(weight)
                        .map_err(|_| CommandError::text("ERR weight value is not a float"))?;
                }
                options = rest(values, self.operands.len());
                continue;
            }
            if !form.stores && !form.counts && is_word(option, "withscores") {
                self.with_scores = true;
                options = values;
                continue;
            }
            let Some((value, others)) = values.split_first() else {
                return Err(CommandError::Syntax);
            };
            if has_scores && is_word(option, "aggregate") {
                self.aggregate = aggregate(value)?;
            } else if form.counts && is_word(option, "limit") {
                let limit = integer_at_least(value, 0, "ERR LIMIT can't be negative")?;
                self.limit = (limit > 0).then(|| to_usize(limit));
            } else {
                return Err(CommandError::Syntax);
            }
            options = others;
        }
        Ok(())
    }

    async fn run(&self, context: &ReadContext<'_>) -> Result<Vec<ScoredMember>, CommandError> {
        let operands = &self.operands;
        Ok(match self.operation {
            Operation::Union => algebra::union(context, operands, self.aggregate).await?,
            Operation::Intersection => {
                algebra::intersection(context, operands, self.aggregate).await?
            }
            Operation::Difference => {
                let mut keys = operands.iter().map(|operand| operand.key.as_ref());
                let Some(first) = keys.next().flatten() else {
                    return Ok(Vec::new());
                };
                let others: Vec<_> = keys.flatten().collect();
                algebra::difference(context, first, &others).await?
            }
        })
    }
}

fn aggregate(word: &[u8]) -> Result<Aggregate, CommandError> {
    if is_word(word, "sum") {
        Ok(Aggregate::Sum)
    } else if is_word(word, "min") {
        Ok(Aggregate::Min)
    } else if is_word(word, "max") {
        Ok(Aggregate::Max)
    } else {
        Err(CommandError::Syntax)
    }
}
