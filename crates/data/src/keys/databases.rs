//! FLUSHDB, FLUSHALL, SWAPDB.

use bytes::Bytes;

use crate::command::arguments::{argument, integer_or, is_word, rest};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use quoin_resp::reply::Reply;

/// `FLUSHDB [ASYNC|SYNC]` → OK. Always behaves as if asynchronous: the keys are gone at once, and their space is freed
/// gradually.
pub(super) async fn flushdb(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_flush_option(arguments)?;
    context.flush_database(context.database).await?;
    Ok(Reply::OK)
}

/// `FLUSHALL [ASYNC|SYNC]` → OK.
pub(super) async fn flushall(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_flush_option(arguments)?;
    for database in 0..context.environment.databases {
        context.flush_database(database).await?;
    }
    Ok(Reply::OK)
}

fn check_flush_option(arguments: &[Bytes]) -> Result<(), CommandError> {
    match rest(arguments, 1) {
        [] => Ok(()),
        [option] if is_word(option, "sync") || is_word(option, "async") => Ok(()),
        _ => Err(CommandError::Syntax),
    }
}

/// `SWAPDB index1 index2` → OK.
pub(super) async fn swapdb(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let first = database_or(argument(arguments, 1)?, "ERR invalid first DB index")?;
    let second = database_or(argument(arguments, 2)?, "ERR invalid second DB index")?;
    let first = context.for_database(first)?.database;
    let second = context.for_database(second)?.database;
    context.swap_databases(first, second).await?;
    Ok(Reply::OK)
}

/// A number that fits C's `int`. `message` is the error.
fn database_or(argument: &[u8], message: &'static str) -> Result<i64, CommandError> {
    let number = integer_or(argument, message)?;
    match i32::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(CommandError::text(message)),
    }
}

/// A database number as MOVE and COPY read it. Its existence is not checked yet.
///
/// # Errors
/// `NotAnInteger`, or Redis's text if it does not fit C's `int`.
pub(super) fn database_number(argument: &[u8]) -> Result<i64, CommandError> {
    let number = crate::command::arguments::integer(argument)?;
    match i32::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(CommandError::text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        )),
    }
}
