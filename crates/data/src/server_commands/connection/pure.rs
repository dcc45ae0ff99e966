//! Commands that need neither data nor the state of a connection: PING, ECHO, TIME.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::error::CommandError;
use crate::unit::context::Environment;
use quoin_resp::reply::Reply;

/// `PING [message]`.
pub(super) fn ping(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    match arguments.len() {
        1 => Ok(Reply::Simple("PONG")),
        2 => Ok(Reply::Bulk(argument(arguments, 1)?.clone())),
        _ => Err(CommandError::WrongArity("ping".to_owned())),
    }
}

/// `ECHO message`.
pub(super) fn echo(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Bulk(argument(arguments, 1)?.clone()))
}

/// `TIME`: seconds and the microseconds of the present one.
pub(super) fn time(environment: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    let now_us = environment.clock.now_us();
    let text = |number: i64| Reply::bulk(number.to_string());
    Ok(Reply::Array(vec![
        text(now_us.div_euclid(1_000_000)),
        text(now_us.rem_euclid(1_000_000)),
    ]))
}
