//! Commands on the ends of lists: pushes, pops, moves from list to list, and their blocking forms.
//!
//! A blocking command returns null if it finds nothing. Outside of MULTI its client then waits: the
//! command runs again until it returns something else (`engine::waiters`).

use std::any::Any;
use std::iter;
use std::sync::Arc;

use bytes::Bytes;

use crate::command::arguments::{
    argument, integer_at_least, is_word, optional_count, rest, to_usize,
};
use crate::command::plan::Plan;
use crate::command::popping::{FIRST, LAST, Movable, Moving, Poppable, move_elements, take};
use crate::command::put_coalesced::coalesced_lengths;
use crate::command::waits::{WaitSpec, keys_and_timeout, timeout};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::list::{End, ListMut, ListType};
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use crate::unit::signals::{Offer, Wants};
use quoin_base::events::EventClasses;
use quoin_base::limits::TAKEN_AHEAD_MAX;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

pub(super) const LEFT: bool = FIRST;
pub(super) const RIGHT: bool = LAST;

impl Poppable for ListType {
    type Element = Bytes;
    const VALUE_TYPE: ValueType = ValueType::List;
    const EVENTS: EventClasses = EventClasses::LIST;

    fn from_end(word: &[u8]) -> Result<bool, CommandError> {
        if is_word(word, "left") {
            Ok(LEFT)
        } else if is_word(word, "right") {
            Ok(RIGHT)
        } else {
            Err(CommandError::Syntax)
        }
    }

    fn pop_event(from_end: bool) -> &'static str {
        if from_end { "rpop" } else { "lpop" }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        from_end: bool,
    ) -> Result<Vec<Bytes>, StoreError> {
        let list = ListMut::open(context, key);
        list.pop(count, End::new(from_end)).await
    }

    fn reply(element: Bytes) -> Reply {
        Reply::Bulk(element)
    }

    fn popped_reply(mut elements: impl Iterator<Item = Bytes>, limit: Option<usize>) -> Reply {
        if limit.is_none() {
            return elements.next().map_or(Reply::Null, Reply::Bulk);
        }
        let replies: Vec<Reply> = elements.map(Reply::Bulk).collect();
        match replies.is_empty() {
            true => Reply::NullArray,
            false => Reply::Array(replies),
        }
    }
}

impl Movable for ListType {
    fn push_event(at_end: bool) -> &'static str {
        if at_end { "rpush" } else { "lpush" }
    }

    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[Bytes],
        at_end: bool,
    ) -> Result<(), CommandError> {
        let list = ListMut::open(context, key);
        list.push(elements, End::new(at_end)).await?;
        Ok(())
    }
}

/// `LPUSH key element [element …]` → length.
pub(super) async fn push<const AT_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find_or_create(name, ValueType::List).await?;
    push_and_notify::<AT_END>(context, name, &key, rest(arguments, 2)).await
}

/// Several [`push`] commands on one list, as one push of all elements.
pub(super) async fn push_coalesced<const AT_END: bool>(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let name = commands.first().ok_or(CommandError::Syntax)?;
    let name = argument(name, 1)?;
    let key = context.find_or_create(name, ValueType::List).await?;
    let elements = commands.iter().flat_map(|arguments| rest(arguments, 2));
    let list = ListMut::open(context, &key);
    let length = list.push(elements, End::new(AT_END)).await?;
    let pushed = commands.iter().map(|arguments| rest(arguments, 2).len());
    Ok(coalesced_lengths(length, pushed))
}

/// `LPUSHX key element [element …]` → length, or 0 if the list does not exist.
pub(super) async fn push_existing<const AT_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::List).await? else {
        return Ok(Reply::Integer(0));
    };
    if !context.has_elements(&key).await? {
        return Ok(Reply::Integer(0));
    }
    push_and_notify::<AT_END>(context, name, &key, rest(arguments, 2)).await
}

async fn push_and_notify<const AT_END: bool>(
    context: &WriteContext<'_>,
    name: &Bytes,
    key: &OpenKey,
    elements: &[Bytes],
) -> Result<Reply, CommandError> {
    let list = ListMut::open(context, key);
    let length = list.push(elements, End::new(AT_END)).await?;
    context.notify(EventClasses::LIST, ListType::push_event(AT_END), name);
    Ok(Reply::Integer(length))
}

/// The plan of a push. It reads the length too, for its reply.
pub(super) fn plan_push<const AT_END: bool>(_: &[Bytes]) -> Option<Plan> {
    Some(Plan::Read(vec![prefetch_end(AT_END, 0)]))
}

/// The reads of a command that pops `count` elements from an end, or of one that pushes there
/// (`count` 0).
fn prefetch_end(from_end: bool, count: usize) -> Prefetch {
    Prefetch::End {
        value_type: ValueType::List,
        from_end,
        count,
        with_length: true,
    }
}

/// `LPOP key [count]` → element, or elements if a count is given.
pub(super) async fn pop<const FROM_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    if arguments.len() > 3 {
        // The event has the name of the command.
        let name = ListType::pop_event(FROM_END).to_owned();
        return Err(CommandError::WrongArity(name));
    }
    let limit = optional_count(arguments)?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::List).await? else {
        return Ok(ListType::popped_reply(iter::empty(), limit));
    };
    if limit == Some(0) && context.has_elements(&key).await? {
        return Ok(Reply::Array(Vec::new()));
    }
    let elements = take::<ListType>(context, name, &key, limit.unwrap_or(1), FROM_END).await?;
    Ok(ListType::popped_reply(elements.into_iter(), limit))
}

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT` → the element moved.
pub(super) async fn lmove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    move_element(context, arguments, ends(arguments)?).await
}

/// `BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout` → the element moved.
pub(super) async fn blmove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    // Redis reads the ends first, then the timeout.
    let ends = ends(arguments)?;
    timeout(argument(arguments, 5)?, context.now_ms)?;
    move_element(context, arguments, ends).await
}

/// `RPOPLPUSH source destination` → the element moved.
pub(super) async fn rpoplpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    move_element(context, arguments, (RIGHT, LEFT)).await
}

/// `BRPOPLPUSH source destination timeout` → the element moved.
pub(super) async fn brpoplpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    timeout(argument(arguments, 3)?, context.now_ms)?;
    rpoplpush(context, arguments).await
}

async fn move_element(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    (from, to): (bool, bool),
) -> Result<Reply, CommandError> {
    let moving = Moving::one(from, to);
    let mut moved = move_elements::<ListType>(context, arguments, moving).await?;
    Ok(moved.pop().map_or(Reply::Null, Reply::Bulk))
}

/// `LMOVEM source destination LEFT|RIGHT LEFT|RIGHT [COUNT|EXACTLY count OBO|BULK]` → the elements moved, in the order
/// that they have in the destination.
pub(super) async fn lmovem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    move_many(context, arguments, moving(arguments, 5)?).await
}

/// `BLMOVEM source destination LEFT|RIGHT LEFT|RIGHT timeout [COUNT|EXACTLY count OBO|BULK]` → as LMOVEM.
pub(super) async fn blmovem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let moving = moving_with_timeout(arguments)?;
    timeout(argument(arguments, TIMEOUT_OF_BLMOVEM)?, context.now_ms)?;
    move_many(context, arguments, moving).await
}

/// Index of BLMOVEM's timeout. The options follow it.
const TIMEOUT_OF_BLMOVEM: usize = 5;

fn moving_with_timeout(arguments: &[Bytes]) -> Result<Moving, CommandError> {
    moving(arguments, TIMEOUT_OF_BLMOVEM + 1)
}

async fn move_many(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    moving: Moving,
) -> Result<Reply, CommandError> {
    let mut moved = move_elements::<ListType>(context, arguments, moving).await?;
    if moved.is_empty() {
        return Ok(Reply::NullArray);
    }
    // The element that was pushed to the head last is the first one there.
    if moving.to_end == LEFT {
        moved.reverse();
    }
    Ok(Reply::Array(moved.into_iter().map(Reply::Bulk).collect()))
}

/// What LMOVEM and BLMOVEM move. The options begin at index `at`.
fn moving(arguments: &[Bytes], at: usize) -> Result<Moving, CommandError> {
    let (from, to) = ends(arguments)?;
    let [selector, count, order] = rest(arguments, at) else {
        return match rest(arguments, at) {
            [] => Ok(Moving::one(from, to)),
            _ => Err(CommandError::Syntax),
        };
    };
    let is_exact = is_word(selector, "exactly");
    let keeps_order = is_word(order, "bulk");
    if !is_exact && !is_word(selector, "count") || !keeps_order && !is_word(order, "obo") {
        return Err(CommandError::Syntax);
    }
    let message = "ERR count should be greater than 0";
    Ok(Moving {
        limit: to_usize(integer_at_least(count, 1, message)?),
        is_exact,
        keeps_order,
        ..Moving::one(from, to)
    })
}

/// The ends of the source and the destination in LMOVE and similar commands.
fn ends(arguments: &[Bytes]) -> Result<(bool, bool), CommandError> {
    let from = ListType::from_end(argument(arguments, 3)?)?;
    let to = ListType::from_end(argument(arguments, 4)?)?;
    Ok((from, to))
}

/// The plan of LMOVE and BLMOVE.
pub(super) fn plan_lmove(arguments: &[Bytes]) -> Option<Plan> {
    ends(arguments).ok().and_then(plan_move)
}

/// The plan of LMOVEM.
pub(super) fn plan_lmovem(arguments: &[Bytes]) -> Option<Plan> {
    moving(arguments, TIMEOUT_OF_BLMOVEM)
        .ok()
        .and_then(plan_moves)
}

/// The plan of BLMOVEM.
pub(super) fn plan_blmovem(arguments: &[Bytes]) -> Option<Plan> {
    moving_with_timeout(arguments).ok().and_then(plan_moves)
}

/// The plan of RPOPLPUSH and BRPOPLPUSH.
pub(super) fn plan_rpoplpush(_: &[Bytes]) -> Option<Plan> {
    plan_move((RIGHT, LEFT))
}

fn plan_move((from, to): (bool, bool)) -> Option<Plan> {
    plan_moves(Moving::one(from, to))
}

/// Only a few elements are read ahead.
fn plan_moves(moving: Moving) -> Option<Plan> {
    (moving.limit <= TAKEN_AHEAD_MAX).then(|| {
        Plan::Read(vec![
            prefetch_end(moving.from_end, moving.limit),
            prefetch_end(moving.to_end, 0),
        ])
    })
}

/// BLMOVE and BRPOPLPUSH wait for their source. The timeout is their last argument.
pub(super) fn wait_for_source(
    arguments: &[Bytes],
    now_ms: i64,
) -> Result<Option<WaitSpec>, CommandError> {
    let (keys, timeout) = keys_and_timeout(arguments, now_ms)?;
    let source = keys.get(..1).unwrap_or_default();
    Ok(Some(WaitSpec::to_take(ValueType::List, source, timeout)))
}

/// BLMOVEM waits until its source has an element, or with EXACTLY, as many as it moves.
pub(super) fn wait_for_length(
    arguments: &[Bytes],
    now_ms: i64,
) -> Result<Option<WaitSpec>, CommandError> {
    let moving = moving_with_timeout(arguments)?;
    let timeout = timeout(argument(arguments, TIMEOUT_OF_BLMOVEM)?, now_ms)?;
    let source = arguments.get(1..2).unwrap_or_default();
    let spec = WaitSpec::to_take(ValueType::List, source, timeout);
    Ok(Some(match moving.is_exact {
        false => spec,
        true => WaitSpec {
            wants: Some(Arc::new(Length(moving.limit))),
            ..spec
        },
    }))
}

/// A client that waits for a list to reach this length. Even if the list is too short for it, other
/// clients may find something.
#[derive(Debug, PartialEq)]
struct Length(usize);

impl Wants for Length {
    fn accepts(&self, _: &dyn Offer) -> bool {
        // Lists offer no items.
        true
    }

    fn is_same(&self, other: &dyn Wants) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}
