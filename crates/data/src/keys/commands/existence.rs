//! DEL, UNLINK, EXISTS, TOUCH, TYPE.

use std::collections::HashSet;

use bytes::Bytes;

use crate::command::arguments::{argument, rest};
use crate::error::CommandError;
use crate::keyspace::kind::TypeKind;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_resp::reply::Reply;

/// `DEL key [key …]` and `UNLINK key [key …]` → number of keys removed. Both put large values
/// into the trash, where the store cannot clear them at once.
pub(super) async fn del(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let names = rest(arguments, 1);
    let mut removed = HashSet::new();
    for (name, key) in names.iter().zip(context.find_each(names).await?) {
        let Some(key) = key else {
            continue;
        };
        // A name that is given twice is there once.
        if !removed.contains(&key.meta_key) {
            context.remove(&key);
            context.notify(EventClasses::GENERIC, "del", name);
            removed.insert(key.meta_key);
        }
    }
    Ok(Reply::count(removed.len()))
}

/// `EXISTS key [key …]` and `TOUCH key [key …]` → number of keys that exist; one that is named
/// twice counts twice.
pub(super) async fn exists(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let found = context.find_each(rest(arguments, 1)).await?;
    Ok(Reply::count(found.iter().flatten().count()))
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
