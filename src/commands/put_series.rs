//! Several commands that put fields or members into one key.

use bytes::Bytes;

use super::arguments::argument;
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::fields::Changed;
use crate::types::{OpenKey, WriteContext};

/// Runs commands on one key, which is looked up once. `put` is given its name, what is there, and a
/// command's arguments. Each command answers how many fields or members are new.
pub(super) async fn put_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
    value_type: ValueType,
    put: impl AsyncFn(&Bytes, Option<OpenKey>, &[Bytes]) -> Result<Changed, CommandError>,
) -> Result<Vec<Reply>, CommandError> {
    let name = argument(commands.first().ok_or(CommandError::Syntax)?, 1)?;
    let mut found = context.find(name, value_type).await?;
    let mut replies = Vec::with_capacity(commands.len());
    for arguments in commands {
        let changed = put(name, found, arguments).await?;
        replies.push(Reply::Integer(changed.added));
        found = Some(changed.key);
    }
    Ok(replies)
}
