//! Writing hashes: HSET, HMSET, HSETNX, HDEL, HINCRBY, HINCRBYFLOAT.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, rest};
use crate::command::plan::Plan;
use crate::command::put_coalesced::put_coalesced;
use crate::error::CommandError;
use crate::fields::{self, Changed};
use crate::hash::{Hash, HashType};
use crate::keyspace::key::OpenKey;
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::number::{LongDouble, parse_i64};
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

/// `HSET key field value [field value …]` → number of new fields.
pub(super) async fn hset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    Ok(Reply::Integer(put(context, arguments, "hset").await?))
}

/// Several HSET commands on one hash.
pub(super) async fn hset_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let put = async |name: &Bytes, found, arguments: &[Bytes]| {
        put_entries(context, name, found, entries(arguments, "hset")?).await
    };
    put_coalesced(context, commands, ValueType::Hash, put).await
}

/// `HMSET key field value [field value …]` → OK.
pub(super) async fn hmset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    put(context, arguments, "hmset").await?;
    Ok(Reply::OK)
}

async fn put(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    command: &str,
) -> Result<i64, CommandError> {
    let entries = entries(arguments, command)?;
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let changed = put_entries(context, name, found, entries).await?;
    Ok(changed.added)
}

/// Reads `command key field value [field value …]`.
fn entries(arguments: &[Bytes], command: &str) -> Result<Vec<Entry>, CommandError> {
    let (pairs, odd) = rest(arguments, 2).as_chunks::<2>();
    if !odd.is_empty() {
        return Err(CommandError::WrongArity(command.to_owned()));
    }
    let entries = pairs.iter();
    let entries = entries.map(|[name, value]| Entry::new(name.clone(), value.clone()));
    Ok(entries.collect())
}

async fn put_entries(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    entries: Vec<Entry>,
) -> Result<Changed, CommandError> {
    let changed = fields::put::<HashType>(context, name, found, entries).await?;
    context.notify(EventClasses::HASH, "hset", name);
    Ok(changed)
}

/// `HSETNX key field value` → 1, or 0 if the field exists.
pub(super) async fn hsetnx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, field) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let found = context.find(name, ValueType::Hash).await?;
    if let Some(key) = &found
        && Hash::open(context, key).contains(field).await?
    {
        return Ok(Reply::Integer(0));
    }
    let entry = Entry::new(field.clone(), argument(arguments, 3)?.clone());
    put_entries(context, name, found, vec![entry]).await?;
    Ok(Reply::Integer(1))
}

/// `HDEL key field [field …]` → number of removed fields.
pub(super) async fn hdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let event = (EventClasses::HASH, "hdel");
    fields::commands::remove::<HashType>(context, arguments, event).await
}

/// `HINCRBY key field increment` → value.
pub(super) async fn hincrby(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let increment = integer(argument(arguments, 3)?)?;
    let field = Field::look_up(context, arguments).await?;
    let value = match &field.value {
        Some(value) => {
            parse_i64(value).ok_or(CommandError::text("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let sum = value.checked_add(increment).ok_or(CommandError::text(
        "ERR increment or decrement would overflow",
    ))?;
    field.set(context, sum.to_string().into()).await?;
    context.notify(EventClasses::HASH, "hincrby", argument(arguments, 1)?);
    Ok(Reply::Integer(sum))
}

/// `HINCRBYFLOAT key field increment` → value.
pub(super) async fn hincrbyfloat(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let increment = LongDouble::parse(argument(arguments, 3)?).ok_or(CommandError::NotAFloat)?;
    if !increment.is_finite() {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let field = Field::look_up(context, arguments).await?;
    let value = match &field.value {
        Some(value) => {
            LongDouble::parse(value).ok_or(CommandError::text("ERR hash value is not a float"))?
        }
        None => LongDouble::ZERO,
    };
    let sum = value + increment;
    if !sum.is_finite() {
        return Err(CommandError::text(
            "ERR increment would produce NaN or Infinity",
        ));
    }
    let sum = Bytes::from(sum.to_string());
    field.set(context, sum.clone()).await?;
    context.notify(EventClasses::HASH, "hincrbyfloat", argument(arguments, 1)?);
    Ok(Reply::Bulk(sum))
}

/// The field that HINCRBY or HINCRBYFLOAT changes.
struct Field<'a> {
    key_name: &'a Bytes,
    key: Option<OpenKey>,
    name: &'a Bytes,
    value: Option<Bytes>,
    /// It stays, as in Redis.
    expire_at_ms: Option<i64>,
}

impl<'a> Field<'a> {
    async fn look_up(
        context: &WriteContext<'_>,
        arguments: &'a [Bytes],
    ) -> Result<Self, CommandError> {
        let (key_name, name) = (argument(arguments, 1)?, argument(arguments, 2)?);
        let key = context.find(key_name, ValueType::Hash).await?;
        let entry = match &key {
            Some(key) => Hash::open(context, key).get_entry(name).await?,
            None => None,
        };
        let expire_at_ms = entry.as_ref().and_then(|entry| entry.expire_at_ms);
        Ok(Self {
            key_name,
            key,
            name,
            value: entry.map(|entry| entry.value),
            expire_at_ms,
        })
    }

    async fn set(self, context: &WriteContext<'_>, value: Bytes) -> Result<(), CommandError> {
        let entries = vec![Entry {
            name: self.name.clone(),
            value,
            expire_at_ms: self.expire_at_ms,
        }];
        fields::put::<HashType>(context, self.key_name, self.key, entries).await?;
        Ok(())
    }
}

/// The plan of HSET and HMSET.
pub(super) fn plan_put(arguments: &[Bytes]) -> Option<Plan> {
    let (pairs, _) = rest(arguments, 2).as_chunks::<2>();
    let fields = pairs.iter().map(|[field, _]| field);
    Some(Plan::Read(vec![Prefetch::members(ValueType::Hash, fields)]))
}
