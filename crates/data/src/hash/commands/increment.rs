//! HINCRBY and HINCRBYFLOAT.

use bytes::Bytes;

use crate::command::arguments::{argument, integer};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::number::{LongDouble, parse_i64};
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

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

/// The field that a command changes.
struct Field<'a> {
    key_name: &'a Bytes,
    key: Option<OpenKey>,
    name: &'a Bytes,
    value: Option<Bytes>,
}

impl<'a> Field<'a> {
    async fn look_up(
        context: &WriteContext<'_>,
        arguments: &'a [Bytes],
    ) -> Result<Self, CommandError> {
        let (key_name, name) = (argument(arguments, 1)?, argument(arguments, 2)?);
        let key = context.find(key_name, ValueType::Hash).await?;
        let value = match &key {
            Some(key) => context.field_get(key, name).await?,
            None => None,
        };
        Ok(Self {
            key_name,
            key,
            name,
            value,
        })
    }

    async fn set(self, context: &WriteContext<'_>, value: Bytes) -> Result<(), CommandError> {
        let name = self.name.clone();
        let entries = vec![Entry { name, value }];
        context
            .fields_put(self.key_name, ValueType::Hash, self.key, entries)
            .await?;
        Ok(())
    }
}
