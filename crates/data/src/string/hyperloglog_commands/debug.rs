//! PFDEBUG and PFSELFTEST.

use bytes::Bytes;

use super::find;
use crate::command::arguments::{argument, is_word};
use crate::error::CommandError;
use crate::string::hyperloglog::{Encoding, Registers, self_test};
use crate::unit::context::{Environment, WriteContext};
use quoin_resp::reply::Reply;

/// `PFDEBUG GETREG|DECODE|ENCODING|TODENSE key` → registers, runs, the encoding, or whether it
/// became dense. GETREG makes it dense too, as in Redis.
pub(super) async fn pfdebug(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let subcommand = argument(arguments, 1)?;
    let Some((mut key, mut one)) = find(context, argument(arguments, 2)?).await? else {
        return Err(CommandError::text("ERR The specified key does not exist"));
    };
    if is_word(subcommand, "decode") {
        let runs = one.describe_runs();
        return runs
            .map(Reply::bulk)
            .ok_or(CommandError::text("ERR HLL encoding is not sparse"));
    }
    if is_word(subcommand, "encoding") {
        return Ok(Reply::Simple(match one.encoding() {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        }));
    }
    let wants_registers = is_word(subcommand, "getreg");
    if !wants_registers && !is_word(subcommand, "todense") {
        let shown = String::from_utf8_lossy(subcommand);
        return Err(CommandError::Text(
            format!("ERR Unknown PFDEBUG subcommand '{shown}'").into(),
        ));
    }
    let was_sparse = one.make_dense()?;
    let mut registers = Registers::default();
    registers.merge(&one)?;
    if was_sparse {
        context.string_replace(&mut key, &one.into_bytes()).await?;
    }
    if !wants_registers {
        return Ok(Reply::Integer(was_sparse.into()));
    }
    let values = registers.values().iter();
    Ok(Reply::Array(
        values
            .map(|value| Reply::Integer((*value).into()))
            .collect(),
    ))
}

/// `PFSELFTEST` → `OK`.
pub(super) fn pfselftest(environment: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    match self_test(environment.random.next_u64()) {
        Ok(()) => Ok(Reply::OK),
        Err(failure) => Err(CommandError::Text(format!("ERR {failure}").into())),
    }
}
