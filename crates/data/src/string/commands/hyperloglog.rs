//! PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST.

use bytes::Bytes;

use crate::command::arguments::{argument, is_word, rest};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::hyperloglog::{Encoding, HyperLogLog, Registers, self_test};
use crate::string::{self, StringValue, StringValueMut};
use crate::unit::context::{Environment, ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `PFADD key [element …]` → 1 if that creates the key or changes a register, else 0.
pub(super) async fn pfadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let (old, found) = find(context, name).await?.unzip();
    let mut all = found.unwrap_or_else(HyperLogLog::empty);
    let sparse_bytes_max = context.environment.hll_sparse_bytes_max();
    let mut changes = old.is_none();
    for element in rest(arguments, 2) {
        changes |= all.add(element, sparse_bytes_max)?;
    }
    if changes {
        all.mark_stale();
        string::put(context, name, old, &all.into_bytes()).await?;
        context.notify(EventClasses::STRING, "pfadd", name);
    }
    Ok(Reply::Integer(changes.into()))
}

/// `PFCOUNT key [key …]` → the estimated number of different elements in all of them. As in Redis,
/// the value of a single key keeps it.
pub(super) async fn pfcount(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let names = rest(arguments, 1);
    if let [name] = names {
        let Some((mut key, mut one)) = find(context, name).await? else {
            return Ok(Reply::Integer(0));
        };
        if let Some(count) = one.cached_count() {
            return Ok(reply(count));
        }
        let count = one.count()?;
        StringValueMut::open(context, &mut key)
            .replace(&one.into_bytes())
            .await?;
        return Ok(reply(count));
    }
    let mut registers = Registers::default();
    for name in names {
        if let Some((_, one)) = find(context, name).await? {
            registers.merge(&one)?;
        }
    }
    Ok(reply(registers.count()))
}

/// `PFMERGE destination [source …]` → `OK`.
pub(super) async fn pfmerge(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let mut registers = Registers::default();
    let mut is_dense = false;
    for source in rest(arguments, 1) {
        if let Some((_, one)) = find(context, source).await? {
            is_dense |= one.encoding() == Encoding::Dense;
            registers.merge(&one)?;
        }
    }
    let (old, found) = find(context, name).await?.unzip();
    let mut merged = found.unwrap_or_else(HyperLogLog::empty);
    if is_dense {
        merged.make_dense()?;
    }
    merged.raise_to(&registers, context.environment.hll_sparse_bytes_max());
    merged.mark_stale();
    string::put(context, name, old, &merged.into_bytes()).await?;
    context.notify(EventClasses::STRING, "pfadd", name);
    Ok(Reply::OK)
}

fn reply(count: u64) -> Reply {
    Reply::Integer(count.cast_signed())
}

/// The HyperLogLog at a key.
async fn find(
    context: &ReadContext<'_>,
    name: &Bytes,
) -> Result<Option<(OpenKey, HyperLogLog)>, CommandError> {
    let Some(key) = context.find(name, ValueType::String).await? else {
        return Ok(None);
    };
    let found = HyperLogLog::parse(&StringValue::open(context, &key).get().await?)?;
    Ok(Some((key, found)))
}

/// `PFDEBUG GETREG|DECODE|ENCODING|TODENSE key` → registers, runs, the encoding, or 1 if it became
/// dense. As in Redis, GETREG makes it dense too.
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
        StringValueMut::open(context, &mut key)
            .replace(&one.into_bytes())
            .await?;
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
