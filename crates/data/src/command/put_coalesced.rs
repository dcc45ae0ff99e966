//! Executes several commands that add elements, fields or members to one key.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// The result of a command that adds to a key.
pub(crate) struct Put {
    /// The key afterwards, if it exists.
    pub(crate) key: Option<OpenKey>,
    pub(crate) reply: Reply,
}

/// Executes commands on one key, which is looked up once. `put` receives the key's name, the key found, and a command's
/// arguments.
pub(crate) async fn put_coalesced<P: Into<Put>>(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
    value_type: ValueType,
    put: impl AsyncFn(&Bytes, Option<OpenKey>, &[Bytes]) -> Result<P, CommandError>,
) -> Result<Vec<Reply>, CommandError> {
    let name = argument(commands.first().ok_or(CommandError::Syntax)?, 1)?;
    let mut found = context.find(name, value_type).await?;
    let mut replies = Vec::with_capacity(commands.len());
    for arguments in commands {
        let Put { key, reply } = put(name, found, arguments).await?.into();
        replies.push(reply);
        found = key;
    }
    Ok(replies)
}

/// The replies of pushes that were executed as one. `length` is the final length; `pushed` has the number of elements
/// of each push.
pub(crate) fn coalesced_lengths(
    mut length: i64,
    pushed: impl DoubleEndedIterator<Item = usize>,
) -> Vec<Reply> {
    let from_last = pushed.rev().map(|count| {
        let reply = Reply::Integer(length);
        length -= i64::try_from(count).unwrap_or(i64::MAX);
        reply
    });
    let mut replies: Vec<Reply> = from_last.collect();
    replies.reverse();
    replies
}
