//! DEL, UNLINK, EXISTS, TOUCH, TYPE.

use bytes::Bytes;

use crate::commands::arguments::{argument, rest};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::{ReadContext, WriteContext};

/// `DEL key [key …]` and `UNLINK key [key …]` → number of keys removed. Both put large values
/// into the trash, where the store cannot clear them at once.
pub(super) async fn del(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let mut removed = 0;
    for name in rest(arguments, 1) {
        if let Some(key) = context.find_any(name).await? {
            context.remove(&key);
            removed += 1;
        }
    }
    Ok(Reply::Integer(removed))
}

/// `EXISTS key [key …]` and `TOUCH key [key …]` → number of keys that exist; one that is named
/// twice counts twice.
pub(super) async fn exists(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let mut found = 0;
    for name in rest(arguments, 1) {
        found += i64::from(context.find_any(name).await?.is_some());
    }
    Ok(Reply::Integer(found))
}

/// `TYPE key` → the type's name, or `none`.
pub(super) async fn type_of(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find_any(argument(arguments, 1)?).await?;
    Ok(Reply::Simple(
        key.map_or("none", |key| key.meta.value_type.name()),
    ))
}
