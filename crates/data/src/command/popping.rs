//! Pops from one end of a value, and moves, as shared by lists, sorted sets and priority queues.

use bytes::Bytes;

use crate::command::arguments::{
    argument, integer_at_least, is_word, optional_count, rest, to_usize,
};
use crate::command::plan::Plan;
use crate::command::waits::{WaitSpec, keys_and_timeout, timeout};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// Pops for several commands end once their replies reach this size.
const COALESCED_REPLY_BYTES_MAX: usize = 256 * 1024;
/// Elements of the first pop for several commands, when their size is still unknown.
const STEP_MIN: usize = 16;
/// Growth from one pop to the next, if the elements are small.
const STEP_GROWTH: usize = 16;
/// Maximum number of elements popped at once for several commands. Later elements may be larger
/// than earlier ones.
const STEP_MAX: usize = 512;

/// The end with the first or lowest elements.
pub(crate) const FIRST: bool = false;
/// The end with the last or highest elements.
pub(crate) const LAST: bool = true;

/// A type whose commands pop from both ends of a value.
pub(crate) trait Poppable {
    /// A popped element.
    type Element;
    /// The type.
    const VALUE_TYPE: ValueType;
    /// The event class of the type.
    const EVENTS: EventClasses;

    /// Parses the word for an end. True for [`LAST`].
    fn from_end(word: &[u8]) -> Result<bool, CommandError>;

    /// The event of a pop.
    fn pop_event(from_end: bool) -> &'static str;

    /// Pops up to `count` elements, outermost first.
    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        from_end: bool,
    ) -> Result<Vec<Self::Element>, StoreError>;

    /// An element in a reply: an array if elements have a number.
    fn reply(element: Self::Element) -> Reply;

    /// The reply of a command that popped these elements: at most one if there is no `limit`.
    fn popped_reply(elements: impl Iterator<Item = Self::Element>, limit: Option<usize>) -> Reply;
}

/// A type whose elements have a number.
pub(crate) trait Numbered: Poppable {
    /// An element and its number in a reply.
    fn with_number(element: Self::Element) -> (Reply, Reply);
}

/// A type whose elements commands can move from one key to another.
pub(crate) trait Movable: Poppable {
    /// The event of a push.
    fn push_event(at_end: bool) -> &'static str;

    /// Pushes elements at one end. A sorted type uses its own order instead.
    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[Self::Element],
        at_end: bool,
    ) -> Result<(), CommandError>;
}

/// Pops, and removes the key if it becomes empty.
pub(crate) async fn take<P: Poppable>(
    context: &WriteContext<'_>,
    name: &Bytes,
    key: &OpenKey,
    count: usize,
    from_end: bool,
) -> Result<Vec<P::Element>, CommandError> {
    let elements = P::pop(context, key, count, from_end).await?;
    if !elements.is_empty() {
        context.notify(P::EVENTS, P::pop_event(from_end), name);
        context.remove_if_empty(key).await?;
    }
    Ok(elements)
}

/// Pops from the first of these keys that has elements. Also returns its name.
async fn take_from_first<'k, P: Poppable>(
    context: &WriteContext<'_>,
    names: &'k [Bytes],
    count: usize,
    from_end: bool,
) -> Result<Option<(&'k Bytes, Vec<P::Element>)>, CommandError> {
    let known = context.known_keys;
    for name in names.iter().filter(|name| !known.leaves_out(name)) {
        let Some(key) = context.find(name, P::VALUE_TYPE).await? else {
            continue;
        };
        let elements = take::<P>(context, name, &key, count, from_end).await?;
        if !elements.is_empty() {
            return Ok(Some((name, elements)));
        }
    }
    Ok(None)
}

/// `key [count]` → elements with their numbers: ZPOPMIN, ZPOPMAX.
pub(crate) async fn pop_numbered<P: Numbered, const FROM_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let limit = optional_count(arguments)?;
    let name = argument(arguments, 1)?;
    let elements = match context.find(name, P::VALUE_TYPE).await? {
        Some(key) => take::<P>(context, name, &key, limit.unwrap_or(1), FROM_END).await?,
        None => Vec::new(),
    };
    Ok(P::popped_reply(elements.into_iter(), limit))
}

/// Accepts any arguments.
pub(crate) fn is_any(_: &[Bytes]) -> bool {
    true
}

/// Whether the only argument is `key`.
pub(crate) fn has_no_count(arguments: &[Bytes]) -> bool {
    arguments.len() == 2
}

/// Whether the arguments are `key`, optionally with a count of at least one.
pub(crate) fn has_no_zero_count(arguments: &[Bytes]) -> bool {
    optional_count(arguments).is_ok_and(|limit| limit != Some(0))
}

/// Executes several commands that pop from one end of one key. Each is `key [count]` with a count of at least one.
pub(crate) async fn pop_coalesced<P: Poppable, const FROM_END: bool>(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let name = argument(commands.first().ok_or(CommandError::Syntax)?, 1)?;
    let limits = commands.iter().map(|arguments| optional_count(arguments));
    let limits: Vec<Option<usize>> = limits.collect::<Result<_, _>>()?;
    let found = context.find(name, P::VALUE_TYPE).await?;
    let pop = async |wanted| match &found {
        Some(key) => P::pop(context, key, wanted, FROM_END).await,
        None => Ok(Vec::new()),
    };
    let reply = |elements: &mut ForCommand<'_, P::Element>, limit| P::popped_reply(elements, limit);
    let (replies, has_popped) = pop_each(&limits, pop, reply).await?;
    if let Some(key) = found.filter(|_| has_popped) {
        context.remove_if_empty(&key).await?;
    }
    Ok(replies)
}

/// The elements of one of several commands.
pub(crate) type ForCommand<'e, E> = std::iter::Take<&'e mut std::vec::IntoIter<E>>;

/// Pops for commands with these limits (`None`: one element), for several commands at a time. Ends early if the replies
/// are large. `reply` builds a command's reply. Returns the replies and whether any element was popped.
pub(crate) async fn pop_each<E>(
    limits: &[Option<usize>],
    mut pop: impl AsyncFnMut(usize) -> Result<Vec<E>, StoreError>,
    reply: impl Fn(&mut ForCommand<'_, E>, Option<usize>) -> Reply,
) -> Result<(Vec<Reply>, bool), CommandError> {
    let mut replies = Vec::with_capacity(limits.len());
    let (mut step, mut bytes, mut popped) = (STEP_MIN, 0, 0);
    while let Some(left) = limits.get(replies.len()..)
        && !left.is_empty()
        && bytes < COALESCED_REPLY_BYTES_MAX
    {
        let (commands, wanted) = commands_of_step(left, step);
        let elements = pop(wanted).await?;
        let has_more = elements.len() == wanted;
        popped += elements.len();
        let mut elements = elements.into_iter();
        // The queue is exhausted, so the other commands find nothing.
        let commands = if has_more { commands } else { left.len() };
        for limit in left.iter().take(commands) {
            let mut of_command = elements.by_ref().take(limit.unwrap_or(1));
            let reply = reply(&mut of_command, *limit);
            bytes += reply.size_hint();
            replies.push(reply);
        }
        let room = COALESCED_REPLY_BYTES_MAX.saturating_sub(bytes);
        let fitting = room / (bytes / popped.max(1)).max(1);
        step = fitting.clamp(1, STEP_MAX).min(step * STEP_GROWTH);
    }
    Ok((replies, popped > 0))
}

/// How many of the commands (at least one) together want at most `step` elements, and how many elements they want.
fn commands_of_step(limits: &[Option<usize>], step: usize) -> (usize, usize) {
    let (mut commands, mut wanted) = (0, 0_usize);
    for limit in limits {
        let with_it = wanted.saturating_add(limit.unwrap_or(1));
        if commands > 0 && with_it > step {
            break;
        }
        commands += 1;
        wanted = with_it;
    }
    (commands, wanted)
}

/// Pairs if a limit was given. Otherwise a flat array, in both protocol versions.
pub(crate) fn numbered_reply<P: Numbered>(
    elements: impl Iterator<Item = P::Element>,
    limit: Option<usize>,
) -> Reply {
    let pairs = elements.map(P::with_number);
    match limit {
        Some(_) => Reply::Pairs(pairs.collect()),
        None => Reply::Array(
            pairs
                .flat_map(|(element, number)| [element, number])
                .collect(),
        ),
    }
}

/// `key [key …] timeout` → the first key with elements, and a popped element: BLPOP, BZPOPMIN.
pub(crate) async fn blocking_pop<P: Poppable, const FROM_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (names, _) = keys_and_timeout(arguments, context.now_ms)?;
    let taken = take_from_first::<P>(context, names, 1, FROM_END).await?;
    Ok(taken.map_or(Reply::NullArray, |(name, elements)| {
        let mut parts = vec![Reply::Bulk(name.clone())];
        for element in elements {
            match P::reply(element) {
                Reply::Array(of_element) => parts.extend(of_element),
                value => parts.push(value),
            }
        }
        Reply::Array(parts)
    }))
}

/// `numkeys key [key …] END [COUNT count]` → the first key with elements, and the popped elements: LMPOP, ZMPOP.
pub(crate) async fn multi_pop<P: Poppable>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_from_first::<P>(context, &MultiPop::parse(arguments, 1, P::from_end)?).await
}

/// [`multi_pop`] with a timeout as the first argument: BLMPOP, BZMPOP.
pub(crate) async fn blocking_multi_pop<P: Poppable>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let query = MultiPop::parse(arguments, 2, P::from_end)?;
    timeout(argument(arguments, 1)?, context.now_ms)?;
    pop_from_first::<P>(context, &query).await
}

/// The arguments of LMPOP and ZMPOP: `numkeys key [key …] END [COUNT count]`.
struct MultiPop<'a> {
    /// The keys, in search order.
    keys: &'a [Bytes],
    /// Whether to pop from the end with the last or highest elements.
    from_end: bool,
    /// Most elements to pop.
    limit: usize,
}

impl<'a> MultiPop<'a> {
    /// Parses the arguments from `at` on. `from_end` parses the word for an end.
    ///
    /// # Errors
    /// Redis's, if a number is not positive or the syntax is wrong.
    fn parse(
        arguments: &'a [Bytes],
        at: usize,
        from_end: impl FnOnce(&[u8]) -> Result<bool, CommandError>,
    ) -> Result<Self, CommandError> {
        let number_of_keys = to_usize(integer_at_least(
            argument(arguments, at)?,
            1,
            "ERR numkeys should be greater than 0",
        )?);
        let end_at = number_of_keys
            .checked_add(at + 1)
            .ok_or(CommandError::Syntax)?;
        let from_end = from_end(argument(arguments, end_at)?)?;
        let keys = arguments.get(at + 1..end_at).unwrap_or(&[]);
        let mut limit = None;
        let mut options = rest(arguments, end_at.saturating_add(1));
        while let Some((option, values)) = options.split_first() {
            match values.split_first() {
                Some((value, after)) if limit.is_none() && is_word(option, "count") => {
                    let message = "ERR count should be greater than 0";
                    limit = Some(to_usize(integer_at_least(value, 1, message)?));
                    options = after;
                }
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(Self {
            keys,
            from_end,
            limit: limit.unwrap_or(1),
        })
    }
}

async fn pop_from_first<P: Poppable>(
    context: &WriteContext<'_>,
    query: &MultiPop<'_>,
) -> Result<Reply, CommandError> {
    let taken = take_from_first::<P>(context, query.keys, query.limit, query.from_end).await?;
    Ok(taken.map_or(Reply::NullArray, |(name, elements)| {
        let elements = elements.into_iter().map(P::reply).collect();
        Reply::Array(vec![Reply::Bulk(name.clone()), Reply::Array(elements)])
    }))
}

/// What a command moves from one end of its source to one end of its destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moving {
    /// The end of the source.
    pub(crate) from_end: bool,
    /// The end of the destination.
    pub(crate) to_end: bool,
    /// Most elements to move.
    pub(crate) limit: usize,
    /// Moves that many or none.
    pub(crate) is_exact: bool,
    /// Whether the elements keep their order. Otherwise they move one by one.
    pub(crate) keeps_order: bool,
}

impl Moving {
    /// Moves one element.
    pub(crate) fn one(from_end: bool, to_end: bool) -> Self {
        Self {
            from_end,
            to_end,
            limit: 1,
            is_exact: false,
            keeps_order: false,
        }
    }
}

/// `source destination …` → the elements moved, in the order in which they were pushed. None if the source has none, or
/// too few.
pub(crate) async fn move_elements<P: Movable>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    moving: Moving,
) -> Result<Vec<P::Element>, CommandError> {
    let source_name = argument(arguments, 1)?;
    let destination_name = argument(arguments, 2)?;
    let Some(source) = context.find(source_name, P::VALUE_TYPE).await? else {
        return Ok(Vec::new());
    };
    // Refuses a destination of another type before the pop, but only if the source has elements. That check comes last
    // because it conflicts with every push and pop.
    let destination = match context.find(destination_name, P::VALUE_TYPE).await {
        Err(CommandError::WrongType) if !context.has_elements(&source).await? => {
            return Ok(Vec::new());
        }
        found => found?,
    };
    let Moving {
        from_end, to_end, ..
    } = moving;
    if moving.is_exact {
        // The pop conflicts on what it takes, and a waiting client is woken by what is added. So
        // outside of EXEC a relaxed read is enough.
        let length = context.length(&source, context.relaxed()).await?;
        if usize::try_from(length).is_ok_and(|length| length < moving.limit) {
            return Ok(Vec::new());
        }
    }
    context.transaction.conflict_on_own_rows();
    let mut elements = P::pop(context, &source, moving.limit, from_end).await?;
    if elements.is_empty() {
        return Ok(Vec::new());
    }
    let destination = match destination {
        Some(destination) => {
            if destination.meta_key != source.meta_key {
                context
                    .notify_if_reborn(&destination, destination_name)
                    .await?;
            }
            destination
        }
        None => {
            context
                .create(destination_name, P::VALUE_TYPE, None)
                .await?
        }
    };
    if moving.keeps_order && from_end == to_end {
        elements.reverse();
    }
    P::push(context, &destination, &elements, to_end).await?;
    context.notify(P::EVENTS, P::push_event(to_end), destination_name);
    context.notify(P::EVENTS, P::pop_event(from_end), source_name);
    // After the push, because a move from a key to itself must not remove the key, which keeps its expiry.
    context.remove_if_empty(&source).await?;
    Ok(elements)
}

/// The plan of `key [count]`.
pub(crate) fn plan_pop<P: Poppable, const FROM_END: bool>(arguments: &[Bytes]) -> Option<Plan> {
    let count = optional_count(arguments).ok()?.unwrap_or(1);
    Plan::pop(P::VALUE_TYPE, FROM_END, count)
}

/// The plan of [`blocking_pop`].
pub(crate) fn plan_blocking_pop<P: Poppable, const FROM_END: bool>(_: &[Bytes]) -> Option<Plan> {
    Plan::pop(P::VALUE_TYPE, FROM_END, 1)
}

/// The plan of [`multi_pop`].
pub(crate) fn plan_multi_pop<P: Poppable>(arguments: &[Bytes]) -> Option<Plan> {
    let query = MultiPop::parse(arguments, 1, P::from_end).ok()?;
    Plan::pop(P::VALUE_TYPE, query.from_end, query.limit)
}

/// The plan of [`blocking_multi_pop`], whose arguments are a timeout and those of [`multi_pop`].
pub(crate) fn plan_blocking_multi_pop<P: Poppable>(arguments: &[Bytes]) -> Option<Plan> {
    plan_multi_pop::<P>(arguments.get(1..)?)
}

/// The keys that [`blocking_pop`] waits for.
pub(crate) fn wait_to_pop<P: Poppable>(
    arguments: &[Bytes],
    now_ms: i64,
) -> Result<Option<WaitSpec>, CommandError> {
    let (keys, timeout) = keys_and_timeout(arguments, now_ms)?;
    Ok(Some(WaitSpec::to_take_first(P::VALUE_TYPE, keys, timeout)))
}

/// The keys that [`blocking_multi_pop`] waits for.
pub(crate) fn wait_to_multi_pop<P: Poppable>(
    arguments: &[Bytes],
    now_ms: i64,
) -> Result<Option<WaitSpec>, CommandError> {
    let keys = MultiPop::parse(arguments, 2, P::from_end)?.keys;
    let timeout = timeout(argument(arguments, 1)?, now_ms)?;
    Ok(Some(WaitSpec::to_take_first(P::VALUE_TYPE, keys, timeout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For commands with these limits and elements of `bytes` bytes: the number of replies, and the size of each pop.
    async fn steps(limits: &[Option<usize>], bytes: usize) -> (usize, Vec<usize>) {
        let mut steps = Vec::new();
        let pop = async |wanted| {
            steps.push(wanted);
            Ok(vec![Bytes::from(vec![b'x'; bytes]); wanted])
        };
        let reply = |elements: &mut ForCommand<'_, Bytes>, _| {
            Reply::Array(elements.map(Reply::Bulk).collect())
        };
        let (replies, has_popped) = pop_each(limits, pop, reply).await.unwrap();
        assert!(has_popped);
        (replies.len(), steps)
    }

    #[tokio::test]
    async fn small_elements_are_popped_more_and_more_at_a_time_but_not_too_many() {
        let (replies, steps) = steps(&[None; 1500], 1).await;
        assert_eq!((replies, steps), (1500, vec![16, 256, 512, 512, 204]));
    }

    #[tokio::test]
    async fn a_command_gets_all_that_it_wants() {
        let (replies, steps) = steps(&[Some(2000), Some(300), Some(200), Some(20)], 1).await;
        assert_eq!((replies, steps), (4, vec![2000, 300, 220]));
    }

    #[tokio::test]
    async fn coalescing_ends_after_large_replies() {
        let (replies, steps) = steps(&[Some(3); 200], COALESCED_REPLY_BYTES_MAX / 64).await;
        assert_eq!((replies, steps), (22, vec![15, 48, 3]));
    }
}
