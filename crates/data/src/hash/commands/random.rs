//! HRANDFIELD.

use bytes::Bytes;

use crate::command::arguments::{argument, rest};
use crate::command::random_draw::{Draw, OUT_OF_RANGE};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `HRANDFIELD key [count [WITHVALUES]]` → field, or fields where a count is given.
pub(super) async fn hrandfield(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(count) = arguments.get(2) else {
        let Some(key) = context.find(name, ValueType::Hash).await? else {
            return Ok(Reply::Null);
        };
        let field = context.fields_random(&key, 1).await?.pop();
        return Ok(field.map_or(Reply::Null, |one| Reply::Bulk(one.name)));
    };
    let (draw, with_values) = Draw::parse_with(count, rest(arguments, 3), "withvalues")?;
    let Some(key) = context.find(name, ValueType::Hash).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let fields = match draw {
        Draw::Distinct(count) => context.fields_random_distinct(&key, count).await?,
        Draw::Repeated(count) => context.fields_random(&key, count).await?,
        Draw::TooMany if context.has_elements(&key).await? => return Err(OUT_OF_RANGE),
        Draw::TooMany => Vec::new(),
    };
    let fields = fields.into_iter();
    Ok(if with_values {
        Reply::Pairs(
            fields
                .map(|one| (Reply::Bulk(one.name), Reply::Bulk(one.value)))
                .collect(),
        )
    } else {
        Reply::Array(fields.map(|one| Reply::Bulk(one.name)).collect())
    })
}
