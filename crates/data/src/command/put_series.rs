//! Several commands that put elements, fields or members into one key.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// What a command did that puts something into a key.
pub(crate) struct Put {
    /// The key after it, if there is one.
    pub(crate) key: Option<OpenKey>,
    pub(crate) reply: Reply,
}

/// Runs commands on one key, which is looked up once. `put` is given its name, what is there, and a
/// command's arguments.
pub(crate) async fn put_series<P: Into<Put>>(
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

/// The replies of pushes that ran as one and left so many elements: the length after each of them, which
/// pushed these numbers of elements.
pub(crate) fn lengths_of_series(
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
