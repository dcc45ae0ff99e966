//! FCALL and FCALL_RO.

use bytes::Bytes;

use super::eval::{check_enabled, keys_and_values, may_only_read};
use super::run::{Call, run};
use crate::command::arguments::argument;
use crate::error::CommandError;
use crate::unit::AnyUnit;
use quoin_base::number::parse_i64;
use quoin_lua::Caller;
use quoin_resp::reply::Reply;

/// `FCALL function numkeys [key ...] [arg ...]`.
pub(super) async fn fcall(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    call(unit, database, arguments, false).await
}

/// `FCALL_RO function numkeys [key ...] [arg ...]`.
pub(super) async fn fcall_ro(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    call(unit, database, arguments, true).await
}

async fn call(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
    is_ro: bool,
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let libraries = unit.read_context(database).libraries().await?;
    let Some(program) = libraries.function(argument(arguments, 1)?) else {
        return Err(CommandError::text("ERR Function not found"));
    };
    if parse_i64(argument(arguments, 2)?).is_none() {
        return Err(CommandError::text("ERR Bad number of keys provided"));
    }
    let (keys, values) = keys_and_values(arguments)?;
    let call = Call {
        only_reads: may_only_read(program.flags(), is_ro)?,
        caller: Caller::Function(program.name().to_owned(), arguments.to_vec()),
        program: &program,
        keys,
        arguments: values,
        database,
    };
    run(unit, call).await
}
