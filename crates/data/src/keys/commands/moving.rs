//! RENAME, RENAMENX, MOVE, COPY.

use bytes::Bytes;

use super::databases::database_number;
use crate::command::arguments::{argument, is_word, rest};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_resp::reply::Reply;

const SAME_OBJECT: CommandError =
    CommandError::text("ERR source and destination objects are the same");

/// `RENAME key newkey` → OK.
pub(super) async fn rename(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let new_name = argument(arguments, 2)?;
    let key = context
        .find_any(name)
        .await?
        .ok_or(CommandError::NoSuchKey)?;
    if name != new_name {
        rename_key(context, &key, name, new_name).await?;
    }
    Ok(Reply::OK)
}

/// `RENAMENX key newkey` → 1, or 0 where the new name is taken.
pub(super) async fn renamenx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let new_name = argument(arguments, 2)?;
    let key = context
        .find_any(name)
        .await?
        .ok_or(CommandError::NoSuchKey)?;
    if name == new_name || context.find_any(new_name).await?.is_some() {
        return Ok(Reply::Integer(0));
    }
    rename_key(context, &key, name, new_name).await?;
    Ok(Reply::Integer(1))
}

async fn rename_key(
    context: &WriteContext<'_>,
    key: &OpenKey,
    name: &Bytes,
    new_name: &Bytes,
) -> Result<(), CommandError> {
    context.move_key(key, context, new_name).await?;
    context.notify(EventClasses::GENERIC, "rename_from", name);
    context.notify(EventClasses::GENERIC, "rename_to", new_name);
    Ok(())
}

/// `MOVE key db` → 1, or 0 where there is no such key or the other database has one.
pub(super) async fn move_key(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let target = context.for_database(database_number(argument(arguments, 2)?)?)?;
    if target.database == context.database {
        return Err(SAME_OBJECT);
    }
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Integer(0));
    };
    if target.find_any(name).await?.is_some() {
        return Ok(Reply::Integer(0));
    }
    context.move_key(&key, &target, name).await?;
    context.notify(EventClasses::GENERIC, "move_from", name);
    target.notify(EventClasses::GENERIC, "move_to", name);
    Ok(Reply::Integer(1))
}

/// `COPY source destination [DB destination-db] [REPLACE]` → 1, or 0 where there is no such key
/// or the destination is taken.
pub(super) async fn copy(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let new_name = argument(arguments, 2)?;
    let mut target = context.for_database(i64::from(context.database))?;
    let mut replaces = false;
    let mut options = rest(arguments, 3);
    loop {
        options = match options {
            [] => break,
            [option, behind @ ..] if is_word(option, "replace") => {
                replaces = true;
                behind
            }
            [option, number, behind @ ..] if is_word(option, "db") => {
                target = context.for_database(database_number(number)?)?;
                behind
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    if target.database == context.database && name == new_name {
        return Err(SAME_OBJECT);
    }
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Integer(0));
    };
    if target.find_any(new_name).await?.is_some() && !replaces {
        return Ok(Reply::Integer(0));
    }
    context.copy_key(&key, &target, new_name).await?;
    target.notify(EventClasses::GENERIC, "copy_to", new_name);
    Ok(Reply::Integer(1))
}
