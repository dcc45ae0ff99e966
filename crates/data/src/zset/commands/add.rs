//! ZADD and ZINCRBY.

use bytes::Bytes;

use crate::command::arguments::{argument, double, is_word, rest};
use crate::command::plan::Plan;
use crate::command::put_coalesced::{Put, put_coalesced};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use crate::zset::{AddOptions, AddOutcome, ScoredMember, SortedSetMut};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// What ZADD, ZINCRBY or GEOADD adds.
pub(crate) struct Addition {
    pub(crate) members: Vec<ScoredMember>,
    pub(crate) options: AddOptions,
    /// Whether the reply counts changed members too (CH).
    pub(crate) counts_changes: bool,
}

/// `ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member …]` → number of
/// new members (CH: or changed ones); with INCR the score, or null if a condition forbids it.
pub(super) async fn zadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let addition = Addition::parse(arguments, AddOptions::default())?;
    add(context, argument(arguments, 1)?, &addition).await
}

/// Several ZADD commands on one sorted set.
pub(super) async fn zadd_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let put = async |name: &Bytes, found, arguments: &[Bytes]| {
        let addition = Addition::parse(arguments, AddOptions::default())?;
        add_to(context, name, found, &addition).await
    };
    put_coalesced(context, commands, ValueType::SortedSet, put).await
}

/// `ZINCRBY key increment member` → score.
pub(super) async fn zincrby(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = AddOptions {
        increment: true,
        ..AddOptions::default()
    };
    let addition = Addition::parse(arguments, options)?;
    add(context, argument(arguments, 1)?, &addition).await
}

impl Addition {
    /// Reads `command key [option …] score member [score member …]`.
    fn parse(arguments: &[Bytes], options: AddOptions) -> Result<Self, CommandError> {
        let (options, counts_changes, pairs) = parse_options(rest(arguments, 2), options);
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Err(CommandError::Syntax);
        }
        check_options(options, pairs.len() / 2)?;
        Ok(Self {
            members: parse_members(pairs)?,
            options,
            counts_changes,
        })
    }
}

/// Adds members to the sorted set of this name, with ZADD's event and reply.
pub(crate) async fn add(
    context: &WriteContext<'_>,
    name: &Bytes,
    addition: &Addition,
) -> Result<Reply, CommandError> {
    let found = context.find(name, ValueType::SortedSet).await?;
    Ok(add_to(context, name, found, addition).await?.reply)
}

/// [`add`] to a key that was looked up.
async fn add_to(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    addition: &Addition,
) -> Result<Put, CommandError> {
    let options = addition.options;
    let key = match found {
        Some(key) => {
            if !options.only_existing {
                context.notify_if_reborn(&key, name).await?;
            }
            Some(key)
        }
        None if options.only_existing => None,
        None => Some(context.create(name, ValueType::SortedSet, None).await?),
    };
    let outcome = match &key {
        Some(key) => {
            SortedSetMut::open(context, key)
                .add(&addition.members, options)
                .await?
        }
        None => AddOutcome::default(),
    };
    if outcome.added + outcome.updated > 0 {
        let event = if options.increment { "zincr" } else { "zadd" };
        context.notify(EventClasses::SORTED_SET, event, name);
    }
    let reply = if options.increment {
        outcome.score.map_or(Reply::Null, Reply::Double)
    } else if addition.counts_changes {
        Reply::Integer(outcome.added + outcome.updated)
    } else {
        Reply::Integer(outcome.added)
    };
    Ok(Put { key, reply })
}

/// The plan of ZADD and ZINCRBY.
pub(super) fn plan_add(arguments: &[Bytes]) -> Option<Plan> {
    let (_, _, pairs) = parse_options(rest(arguments, 2), AddOptions::default());
    let members = pairs.chunks_exact(2).filter_map(|pair| pair.get(1));
    Some(Plan::Read(vec![Prefetch::members(
        ValueType::SortedSet,
        members,
    )]))
}

/// Reads the options: these, whether changes count (CH), and the words after them.
fn parse_options(mut words: &[Bytes], mut options: AddOptions) -> (AddOptions, bool, &[Bytes]) {
    let mut counts_changes = false;
    while let Some((word, others)) = words.split_first() {
        if is_word(word, "nx") {
            options.only_new = true;
        } else if is_word(word, "xx") {
            options.only_existing = true;
        } else if is_word(word, "ch") {
            counts_changes = true;
        } else if is_word(word, "incr") {
            options.increment = true;
        } else if is_word(word, "gt") {
            options.only_greater = true;
        } else if is_word(word, "lt") {
            options.only_less = true;
        } else {
            break;
        }
        words = others;
    }
    (options, counts_changes, words)
}

fn check_options(options: AddOptions, members: usize) -> Result<(), CommandError> {
    let AddOptions {
        only_new,
        only_existing,
        only_greater,
        only_less,
        increment,
    } = options;
    if only_new && only_existing {
        return Err(CommandError::text(
            "ERR XX and NX options at the same time are not compatible",
        ));
    }
    if (only_new && (only_greater || only_less)) || (only_greater && only_less) {
        return Err(CommandError::text(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if increment && members > 1 {
        return Err(CommandError::text(
            "ERR INCR option supports a single increment-element pair",
        ));
    }
    Ok(())
}

fn parse_members(pairs: &[Bytes]) -> Result<Vec<ScoredMember>, CommandError> {
    let mut members = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        let [score, member] = pair else {
            return Err(CommandError::Syntax);
        };
        members.push(ScoredMember {
            score: double(score)?,
            member: member.clone(),
        });
    }
    Ok(members)
}
